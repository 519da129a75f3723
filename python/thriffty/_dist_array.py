"""Arrays that are this rank's part of a distributed array, with the names of mpi4py-fft.

`DistArray` and `newDistArray` take the same arguments as in mpi4py-fft. Files (`write`, `read`) and
the classes `Pencil`, `Subcomm` and `Transfer` are left out: use `DistArray.redistribute` and
`thriffty.Plan` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from numbers import Integral, Number
from typing import Any

import numpy as np

from ._groups import agree
from ._layout import AxisCut, Cuts, Layout, axis_of, layout_of
from ._mpi import Ranks
from ._options import argument
from ._plan import Plan

# Elements of these sizes can be moved, as the bits of these types.
_MOVED_AS = {4: np.float32, 8: np.float64, 16: np.complex128}


class DistArray(np.ndarray):
    """This rank's part of a distributed array.

    Parameters
    ----------
    global_shape
        The shape of the whole array, with the axes of the tensor first.
    subcomm
        The grid of ranks of MPI_COMM_WORLD: the number of parts along each axis, where 0 leaves the
        number open. Or the `subcomm` of another array. By default one axis is not cut, and the
        number of parts is open along the others.
    val
        The value of all elements, if there is no `buffer`.
    dtype
        The type of elements.
    buffer, strides
        The memory of this rank's part, as for `numpy.ndarray`.
    alignment
        The axis that is not cut, counted without the axes of the tensor: by default the last one
        possible.
    rank
        The number of leading axes for the components of a tensor. They are never cut.

    Notes
    -----
    A result keeps the distribution of its operands if its points stay in place. This holds for
    functions of single points (arithmetic and other ufuncs, `real`, `imag`), for components of a
    tensor and reductions over them, and for copies (`copy`, `astype`, `numpy.zeros_like`).
    Everything else returns an array without a distribution, often a plain one: slices, transposed
    and reshaped views, matrix products, functions that move elements, such as `numpy.sort` and
    `numpy.roll`, and arithmetic of arrays with different distributions.

    `copy.deepcopy` keeps the distribution. So does pickle on one rank; it refuses an array that
    several ranks share. An array with a single axis is not distributed.
    """

    _layout: Layout | None = None

    def __new__(
        cls,
        global_shape: Sequence[int],
        subcomm: Any = None,
        val: Any = None,
        dtype: Any = float,
        buffer: Any = None,
        strides: Any = None,
        alignment: int | None = None,
        rank: int = 0,
    ) -> DistArray:
        shape = tuple(int(length) for length in global_shape)
        if not 0 <= rank < len(shape):
            raise argument("rank", rank, f"less than the number of axes of {shape}")
        layout = layout_of(shape[rank:], subcomm, alignment)
        array = super().__new__(cls, shape[:rank] + layout.subshape, dtype, buffer, 0, strides)
        array._layout = layout
        if buffer is None and isinstance(val, Number):
            array.fill(val)
        return array

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        layout = _layout_after(ufunc, method, inputs, named.get("axis", 0))
        out = named.get("out")
        if out is not None:
            _check_out(inputs, layout, out)
            named["out"] = tuple(_plain(array) for array in out)
        if "where" in named:
            named["where"] = _plain(named["where"])
        result = getattr(ufunc, method)(*(_plain(array) for array in inputs), **named)
        if not isinstance(result, tuple):
            return out[0] if out else _distributed(result, layout)
        given = out or (None,) * len(result)
        return tuple(
            _distributed(array, layout) if mine is None else mine
            for array, mine in zip(result, given)
        )

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        result = super().__array_function__(function, types, args, named)
        if function is np.empty_like:
            return _distributed(result, self._layout)
        if function in _POINTWISE:
            return result
        # Other functions may move elements, in a copy that still has the distribution.
        given = (*args, *named.values())
        if type(result) in (list, tuple):
            return type(result)(_unless_given(part, given) for part in result)
        return _unless_given(result, given)

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        if not isinstance(part, DistArray):
            return part
        items = index if isinstance(index, tuple) else (index,)
        layout = self._layout
        if layout is None or len(items) > self.ndim - len(layout.shape):
            return _plain(part)
        are_components = all(
            isinstance(item, (Integral, slice)) and not isinstance(item, bool) for item in items
        )
        return _distributed(part, layout if are_components else None)

    def copy(self, order: Any = "C") -> DistArray:
        """A copy with the same distribution."""
        return _distributed(super().copy(order), self._layout)

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        """As in `numpy.ndarray`: a copy, or this array, with the same distribution."""
        result = super().astype(dtype, *args, **named)
        is_plain = type(result) is np.ndarray
        return result if is_plain else _distributed(result, self._layout)

    def squeeze(self, axis: Any = None) -> np.ndarray:
        """A plain array, even if there is nothing to squeeze, where NumPy returns `self`."""
        return _plain(super().squeeze(axis))

    def __copy__(self) -> DistArray:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> DistArray:
        # Distributions are immutable, and communicators are not copied.
        return self.copy("K")

    def __reduce__(self) -> Any:
        layout = self._layout
        if layout is None:
            return self.v.__reduce__()
        if prod(layout.subcomm.sizes) > 1:
            raise TypeError(
                "a DistArray of several ranks cannot be pickled; its part on this rank, `array.v`, "
                "can"
            )
        return _not_cut, (self.v, layout.shape, layout.axis)

    @property
    def real(self) -> Any:
        """The real part of each point, as a view."""
        return _distributed(super().real, self._layout)

    @real.setter
    def real(self, values: Any) -> None:
        self.v.real = values

    @property
    def imag(self) -> Any:
        """The imaginary part of each point, as a view."""
        return _distributed(super().imag, self._layout)

    @imag.setter
    def imag(self, values: Any) -> None:
        self.v.imag = values

    @property
    def pencil(self) -> Layout:
        """The distribution: `shape`, `subshape`, `substart`, `subcomm` and `axis`."""
        layout = self._layout
        # NumPy lets programs set the shape of an array.
        if layout is None or self.shape[-len(layout.shape) :] != layout.subshape:
            found = f"a view or a result of shape {self.shape} without a distribution"
            raise argument("array", found, "a whole DistArray, or components of one")
        return layout

    @property
    def v(self) -> np.ndarray:
        """This rank's part as a plain array."""
        return self.view(np.ndarray)

    @property
    def rank(self) -> int:
        """The number of axes of the tensor."""
        return self.ndim - self.dimensions

    @property
    def dimensions(self) -> int:
        """The number of axes, without the axes of the tensor."""
        return len(self.pencil.shape)

    @property
    def alignment(self) -> int:
        """The axis that is not cut, counted without the axes of the tensor."""
        return self.pencil.axis

    @property
    def global_shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return self.shape[: self.rank] + self.pencil.shape

    @property
    def substart(self) -> tuple[int, ...]:
        """The global index of the first element here."""
        return (0,) * self.rank + self.pencil.substart

    @property
    def subcomm(self) -> Cuts:
        """The number of parts of each axis, and which of them this rank has."""
        return Cuts(self.pencil.comm, (AxisCut(1, 0),) * self.rank + self.pencil.subcomm)

    @property
    def commsizes(self) -> list[int]:
        """The number of parts of each axis."""
        return list(self.subcomm.sizes)

    def local_slice(self) -> tuple[slice, ...]:
        """This rank's part of the whole array."""
        return tuple(slice(0, n) for n in self.shape[: self.rank]) + self.pencil.slices

    def get(self, gslice: Sequence[int | slice]) -> np.ndarray | None:
        """A part of the whole array. Collective.

        Parameters
        ----------
        gslice
            An index or a slice for each axis of `global_shape`.

        Returns
        -------
        numpy.ndarray or None
            The part on rank 0, and None on the others.
        """
        wanted = agree(self._ranks(), lambda: self._indices(gslice))
        kept = [len(i) for i, item in zip(wanted, gslice) if isinstance(item, slice)]
        here = [(part.start <= i) & (i < part.stop) for i, part in zip(wanted, self.local_slice())]
        local = [i[own] - start for i, own, start in zip(wanted, here, self.substart)]
        part = ([np.flatnonzero(own) for own in here], self.v[np.ix_(*local)])
        comm = self.pencil.comm
        parts = [part] if comm is None else comm.gather(part)
        if parts is None:
            return None
        whole = np.empty([len(i) for i in wanted], self.dtype)
        for places, values in parts:
            whole[np.ix_(*places)] = values
        return whole.reshape(kept)

    def _ranks(self) -> Ranks | None:
        comm = self.pencil.comm
        return None if comm is None else Ranks.of(comm)

    def _indices(self, gslice: Sequence[int | slice]) -> list[np.ndarray]:
        """The indices of a part along each axis."""
        if len(gslice) != self.ndim:
            raise argument("gslice", gslice, f"an index or slice for each of {self.ndim} axes")
        wanted = []
        for item, length in zip(gslice, self.global_shape):
            if isinstance(item, slice):
                wanted.append(np.arange(length)[item])
            else:
                wanted.append(np.array([axis_of(item, length, "an index of gslice")]))
        return wanted

    def redistribute(self, axis: int | None = None, out: DistArray | None = None) -> DistArray:
        """The same array with another distribution. Collective.

        Parameters
        ----------
        axis
            The axis that is no longer cut. The axis that was whole is cut instead.
        out
            An array for the result, with the same global shape and type, and with any distribution
            over the same communicator.

        Returns
        -------
        DistArray
            `out` if given. Otherwise a new array, or this one if `axis` is not cut.
        """
        source = self.pencil
        axis = agree(self._ranks(), lambda: self._checked_axis(axis, out))
        if out is None:
            assert axis is not None
            if source.subcomm[axis].size == 1:
                self._layout = replace(source, axis=axis)
                return self
            target = source.aligned(axis)
            out = DistArray(
                self.global_shape, target.subcomm, dtype=self.dtype, alignment=axis, rank=self.rank
            )
        _move(self, out)
        return out

    def _checked_axis(self, axis: int | None, out: Any) -> int | None:
        """The axis counted from the front, after checking the arguments of `redistribute`."""
        if self.dtype.itemsize not in _MOVED_AS:
            raise argument("dtype", self.dtype, "elements of 4, 8 or 16 bytes")
        axis = None if axis is None else axis_of(axis, self.dimensions)
        if out is None:
            if axis is None:
                raise argument("axis and out", None, "one of them")
            return axis
        if not isinstance(out, DistArray):
            raise argument("out", type(out).__name__, "a DistArray")
        for what, mine, its in (
            ("global shape", self.global_shape, out.global_shape),
            ("dtype", self.dtype, out.dtype),
            ("alignment", out.alignment if axis is None else axis, out.alignment),
        ):
            if mine != its:
                raise argument(f"{what} of out", its, mine)
        return axis


# NumPy functions that only call ufuncs or make an array like another: their results may keep a
# distribution.
_POINTWISE = frozenset(
    getattr(np, name, None)
    for name in (
        "all amax amin angle any around astype clip full_like imag max mean min ones_like prod "
        "real round std sum var zeros_like"
    ).split()
)


def _plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, DistArray) else array


def _unless_given(array: Any, given: Sequence[Any]) -> Any:
    """A plain array, unless it is one of the arguments of the function."""
    return array if any(array is one for one in given) else _plain(array)


def _distributed(array: Any, layout: Layout | None) -> Any:
    """An array with this distribution, or a plain one if there is none or the shape differs."""
    if not isinstance(array, np.ndarray):
        return array
    if layout is None or array.shape[-len(layout.shape) :] != layout.subshape:
        return _plain(array)
    if not isinstance(array, DistArray):
        array = array.view(DistArray)
    array._layout = layout
    return array


def _layout_after(ufunc: Any, method: str, inputs: Sequence[Any], axis: Any) -> Layout | None:
    """The distribution of the result of a ufunc, if any. `axis` is the axis of a reduction."""
    arrays = [array for array in inputs if isinstance(array, DistArray) and array._layout]
    if not arrays or ufunc.signature is not None:
        return None
    first, *others = (array._layout for array in arrays)
    if not all(_is_same(one, first) for one in others):
        return None
    if method == "__call__":
        return first
    if method not in ("reduce", "accumulate") or axis is None:
        return None
    # Points stay in place if the reduction is over axes of the tensor.
    (array,), axes = arrays, axis if isinstance(axis, tuple) else (axis,)
    rank = array.ndim - len(first.shape)
    return first if all(axis % array.ndim < rank for axis in axes) else None


def _check_out(inputs: Sequence[Any], layout: Layout | None, out: Sequence[Any]) -> None:
    """Refuses an `out` whose distribution differs from the distribution of the result."""
    if not any(isinstance(array, DistArray) and array._layout for array in inputs):
        return
    for array in out:
        own = array._layout if isinstance(array, DistArray) else None
        if own is not None and (layout is None or not _is_same(own, layout)):
            raise argument("distribution of out", "another", "that of the inputs")


def _is_same(one: Layout, other: Layout) -> bool:
    return (one.shape, one.subcomm) == (other.shape, other.subcomm)


def _not_cut(part: np.ndarray, shape: tuple[int, ...], axis: int) -> DistArray:
    """This array with the distribution of one that a single process has."""
    array = part.view(DistArray)
    array._layout = Layout(shape, Cuts.of_grid(None, [1] * len(shape)), axis)
    return array


def _move(source: DistArray, target: DistArray) -> None:
    """Copies a distributed array to one with another distribution."""
    before, after = source.pencil, target.pencil
    if before.subcomm == after.subcomm:
        target.v[...] = source.v
        return
    number = _MOVED_AS[source.dtype.itemsize]
    shape, inputs, outputs = _folded(before, after)
    count = prod(source.shape[: source.rank])
    with Plan(
        shape, number, comm=before.comm, input=inputs, output=outputs, kinds="none", batch=count
    ) as plan:
        sent = np.ascontiguousarray(source.v).view(number).reshape(plan.input_shape)
        got = plan.forward(sent)
    target.v[...] = got.view(source.dtype).reshape(target.shape)


def _folded(
    before: Layout, after: Layout
) -> tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]:
    """The shape and both parts of this rank, with the fewest axes that describe the same memory.

    An axis that is cut neither before nor after is merged into the one in front of it.
    """
    shape: list[int] = []
    parts: tuple[list[slice], list[slice]] = ([], [])
    for axis, length in enumerate(before.shape):
        own = (before.slices[axis], after.slices[axis])
        if shape and before.subcomm[axis].size == after.subcomm[axis].size == 1:
            shape[-1] *= length
            for kept in parts:
                kept[-1] = slice(kept[-1].start * length, kept[-1].stop * length)
        else:
            shape.append(length)
            for kept, part in zip(parts, own):
                kept.append(part)
    return tuple(shape), tuple(parts[0]), tuple(parts[1])


def newDistArray(
    pfft: Any, forward_output: bool = True, val: Any = 0, rank: int = 0, view: bool = False
) -> DistArray | np.ndarray:
    """A new array for the input or the output of a `PFFT`.

    Parameters
    ----------
    pfft
        The transform.
    forward_output
        Whether the array is for spectral data, the output of `forward`, or for physical data.
    val
        The value of all elements.
    rank
        0 for a scalar field, 1 for a vector field with one component per axis of the grid, 2 for a
        matrix field.
    view
        Whether to return a plain array, whose `base` is the `DistArray`.
    """
    layout = pfft.pencil[bool(forward_output)]
    shape = (len(layout.shape),) * rank + layout.shape
    array = DistArray(
        shape,
        subcomm=layout.subcomm,
        val=val,
        dtype=pfft.dtype(forward_output),
        alignment=layout.axis,
        rank=rank,
    )
    return array.v if view else array
