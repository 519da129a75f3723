"""Arrays that are this rank's part of a distributed one, with the names of mpi4py-fft.

`DistArray` and `newDistArray` take the arguments that they take there. Left out are files
(`write`, `read`) and the classes `Pencil`, `Subcomm` and `Transfer`: `DistArray.redistribute` and
`thriffty.Plan` do what these are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from numbers import Integral, Number
from typing import Any, NamedTuple

import numpy as np

from ._mpi import Ranks, agree
from ._options import argument
from ._plan import Plan

# Elements of these sizes can be moved, as the bits of such numbers.
_MOVED_AS = {4: np.float32, 8: np.float64, 16: np.complex128}


class AxisCut(NamedTuple):
    """Into how many parts an axis is cut, and which of them this rank has."""

    size: int
    rank: int

    def Get_size(self) -> int:
        return self.size

    def Get_rank(self) -> int:
        return self.rank

    def part(self, length: int) -> slice:
        """This rank's part of an axis. The first `length % size` parts have one more point."""
        each, more = divmod(length, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))


class Cuts(tuple):
    """The `AxisCut` of each axis, and the communicator whose ranks share the array."""

    comm: Any

    def __new__(cls, comm: Any, cuts: Iterable[AxisCut]) -> Cuts:
        self = super().__new__(cls, cuts)
        self.comm = comm
        return self

    @classmethod
    def of_grid(cls, comm: Any, grid: Sequence[int]) -> Cuts:
        """The cuts by a grid of ranks, row-major. Lengths that are not positive are chosen."""
        ranks = comm.Get_size() if comm is not None else 1
        wanted = [max(0, int(length)) for length in grid]
        fixed = prod(length for length in wanted if length)
        if ranks % fixed or (fixed != ranks and 0 not in wanted):
            raise argument("grid of ranks", tuple(grid), f"one of {ranks} ranks")
        if 0 in wanted and ranks > 1:
            from mpi4py import MPI

            wanted = MPI.Compute_dims(ranks, wanted)
        lengths = [length or 1 for length in wanted]
        place = np.unravel_index(comm.Get_rank() if comm is not None else 0, lengths)
        return cls(comm, (AxisCut(size, int(rank)) for size, rank in zip(lengths, place)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(cut.size for cut in self)


@dataclass(frozen=True)
class Layout:
    """How a global array is distributed. `axis` is one along which it is not cut."""

    shape: tuple[int, ...]
    subcomm: Cuts
    axis: int

    @property
    def comm(self) -> Any:
        return self.subcomm.comm

    @property
    def slices(self) -> tuple[slice, ...]:
        """This rank's part of the global array."""
        return tuple(cut.part(length) for cut, length in zip(self.subcomm, self.shape))

    @property
    def subshape(self) -> tuple[int, ...]:
        return tuple(part.stop - part.start for part in self.slices)

    @property
    def substart(self) -> tuple[int, ...]:
        return tuple(part.start for part in self.slices)

    def aligned(self, axis: int) -> Layout:
        """The layout that is not cut along `axis`, but along the present `axis` in its stead."""
        cuts = list(self.subcomm)
        cuts[axis], cuts[self.axis] = cuts[self.axis], cuts[axis]
        return Layout(self.shape, Cuts(self.comm, cuts), axis)

    def resized(self, axis: int, length: int) -> Layout:
        """The same cuts of an array that has another length along `axis`."""
        shape = self.shape[:axis] + (length,) + self.shape[axis + 1 :]
        return replace(self, shape=shape)


def world() -> Any:
    """MPI_COMM_WORLD; None without mpi4py."""
    try:
        from mpi4py import MPI
    except ImportError:
        return None
    return MPI.COMM_WORLD


def axis_of(axis: Any, axes: int, what: str = "axis") -> int:
    """An axis counted from the front."""
    if not isinstance(axis, Integral) or not -axes <= int(axis) < axes:
        raise argument(what, repr(axis), f"{-axes} to {axes - 1}")
    return int(axis) % axes


def _layout(shape: tuple[int, ...], subcomm: Any, alignment: Any) -> Layout:
    """The layout that the arguments of `DistArray` ask for."""
    axes = len(shape)
    if alignment is not None:
        alignment = axis_of(alignment, axes, "alignment")
    if axes < 2:
        # As in mpi4py-fft, one axis is not cut: every rank has all of it.
        return Layout(shape, Cuts.of_grid(None, [1] * axes), 0)
    if subcomm is None:
        grid = [0] * axes
        grid[-1 if alignment is None else alignment] = 1
        subcomm = Cuts.of_grid(world(), grid)
    elif not isinstance(subcomm, Cuts):
        if not all(isinstance(length, Integral) for length in subcomm):
            raise argument("subcomm", subcomm, "a number of parts for each axis")
        subcomm = Cuts.of_grid(world(), subcomm)
    if len(subcomm) != axes:
        raise argument("axes of subcomm", len(subcomm), f"{axes}, without those of the tensor")
    whole = [axis for axis, size in enumerate(subcomm.sizes) if size == 1]
    if alignment is None and whole:
        alignment = whole[-1]
    if alignment not in whole:
        which = "one axis" if alignment is None else f"axis {alignment}"
        raise argument("grid of ranks", subcomm.sizes, f"1 part of {which}")
    return Layout(shape, subcomm, alignment)


class DistArray(np.ndarray):
    """This rank's part of a distributed array.

    Parameters
    ----------
    global_shape
        The shape of the whole array, that of the tensor first.
    subcomm
        The grid of ranks of MPI_COMM_WORLD: a number of parts per axis, 0 for any. Or the
        `subcomm` of another array. By default any number along all axes but one.
    val
        The value of all elements, if there is no `buffer`.
    dtype
        The type of elements.
    buffer, strides
        Memory of this rank's part, as for `numpy.ndarray`.
    alignment
        The axis that is not cut: by default the last that may be. It does not count those of the
        tensor.
    rank
        The number of leading axes that are components of a tensor. These are never cut.

    Notes
    -----
    Arithmetic gives a `DistArray` of the same distribution, and so do components of a tensor. Other
    parts are plain arrays. An array with a single axis is not distributed.
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
        layout = _layout(shape[rank:], subcomm, alignment)
        array = super().__new__(cls, shape[:rank] + layout.subshape, dtype, buffer, 0, strides)
        array._layout = layout
        if buffer is None and isinstance(val, Number):
            array.fill(val)
        return array

    def __array_finalize__(self, source: Any) -> None:
        layout = getattr(source, "_layout", None)
        # Slices and reductions along axes of the grid are no longer what the layout describes.
        if layout is not None and self.shape[-len(layout.shape) :] == layout.subshape:
            self._layout = layout

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array.ndim == 0:
            return array[()]
        wrapped = array.view(type(self))
        wrapped.__array_finalize__(self)
        return wrapped

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        if not isinstance(part, DistArray):
            return part
        components = index if isinstance(index, tuple) else (index,)
        if self._layout is not None and len(components) <= self.rank:
            if all(isinstance(item, (Integral, slice)) for item in components):
                return part
        return part.view(np.ndarray)

    @property
    def pencil(self) -> Layout:
        """The distribution: `shape`, `subshape`, `substart`, `subcomm` and `axis`."""
        if self._layout is None:
            raise argument("array", f"a slice or sum of shape {self.shape}", "a whole DistArray")
        return self._layout

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
        """The number of axes without those of the tensor."""
        return len(self.pencil.shape)

    @property
    def alignment(self) -> int:
        """The axis that is not cut, without those of the tensor."""
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
        """The number of parts of each axis, and which of them is here."""
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
            The part, on rank 0; None elsewhere.
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
        """The same array, distributed in another way. Collective.

        Parameters
        ----------
        axis
            The axis that is not cut any more: the present one is cut in its stead.
        out
            An array to write to, of the same global shape and type, and any distribution over the
            same communicator.

        Returns
        -------
        DistArray
            `out`, if given. Otherwise a new array, or this one if `axis` is not cut already.
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
        """The axis counted from the front, if these are what `redistribute` takes."""
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


def _move(source: DistArray, target: DistArray) -> None:
    """Copies a distributed array to one of another distribution."""
    before, after = source.pencil, target.pencil
    if before.subcomm == after.subcomm:
        target.v[...] = source.v
        return
    number = _MOVED_AS[source.dtype.itemsize]
    shape, inputs, outputs = _folded(before, after)
    count = prod(source.shape[: source.rank])
    with Plan(shape, number, "none", before.comm, inputs, outputs, batch=count) as plan:
        sent = np.ascontiguousarray(source.v).view(number).reshape(plan.input_shape)
        got = plan.forward(sent)
    target.v[...] = got.view(source.dtype).reshape(target.shape)


def _folded(
    before: Layout, after: Layout
) -> tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]:
    """The shape and both parts of this rank, with as few axes as describe the same memory.

    An axis that is cut neither before nor after becomes part of the one in front of it.
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
        Whether the array is for spectral data, which `forward` writes; otherwise for physical.
    val
        The value of all elements.
    rank
        0 for a scalar field, 1 for a vector field with as many components as the grid has axes, 2
        for a matrix field.
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
