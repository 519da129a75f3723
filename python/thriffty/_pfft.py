"""Transforms of distributed arrays with the names of mpi4py-fft: `PFFT`.

In a program for mpi4py-fft, import `PFFT`, `newDistArray` and `DistArray` from here instead. Scales
and distributions are the same. The differences are:

- There are at most four axes, and no long doubles. Arrays are NumPy arrays.
- `backend` and FFTW's options `planner_effort` and `overwrite_input` have no effect.
- Transforms are named by the functions of `thriffty.transforms`, or others of the same names.
- When real data is padded and the number n of frequencies is even, the highest is always divided
  between n/2 and -n/2. mpi4py-fft divides it only if n // 2 + 1 is even.
- Cosine and sine transforms can follow Fourier transforms. `padding` can be a single number, and
  also applies to groups of axes.
- A key of `transforms` also applies to the last axes of a group. At least one key must apply.
- `pencil` and `subcomm` only describe distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._dist_array import DistArray
from ._groups import agree
from ._layout import Layout
from ._library import Uncopied, over_mpi, serial
from ._mpi import Ranks
from ._options import argument
from ._pfft_request import Request, stages_of
from ._pfft_stages import Stage
from ._plan import Plan

_WITHOUT_EFFECT = ("planner_effort", "overwrite_input")


class Transform(Uncopied):
    """One direction of a `PFFT`. Call it to transform.

    Attributes
    ----------
    input_array, output_array
        This rank's arrays for calls without arguments. The output array of one direction is the
        input array of the other.
    input_pencil, output_pencil
        Their distributions.
    """

    def __init__(self, pfft: PFFT, is_forward: bool) -> None:
        self._pfft = pfft
        self._is_forward = is_forward

    @property
    def input_array(self) -> np.ndarray:
        return self._pfft._array(not self._is_forward)

    @property
    def output_array(self) -> np.ndarray:
        return self._pfft._array(self._is_forward)

    @property
    def input_pencil(self) -> Layout:
        return self._pfft.pencil[not self._is_forward]

    @property
    def output_pencil(self) -> Layout:
        return self._pfft.pencil[self._is_forward]

    def __call__(
        self,
        input_array: Any = None,
        output_array: Any = None,
        normalize: bool | None = None,
    ) -> Any:
        """Transforms. Collective.

        Parameters
        ----------
        input_array
            This rank's data, by default the attribute of this name. Data of another type is
            converted.
        output_array
            The array for the result, by default the attribute of this name, which the next call
            overwrites.
        normalize
            Whether to divide the result by the number of transformed points. Cosine and sine
            transforms have divisors of their own, so that backward is the inverse of forward. By
            default only forward divides.

        Returns
        -------
        array
            `output_array`, or the attribute of this name.
        """
        try:
            source, target = self._source(input_array), self._target(output_array)
        except Exception as error:  # Of any kind, because other ranks wait for this one.
            self._stages[0].plan.refuse(error)
            raise
        if np.may_share_memory(source, target):
            source = source.copy()
        self._run(source, target)
        normalize = self._is_forward if normalize is None else bool(normalize)
        # The plans divide in the forward direction only.
        if normalize != self._is_forward:
            points = self._pfft._points
            target *= target.dtype.type(1 / points if normalize else points)
        if output_array is None:
            return target
        if not _fits(output_array, target):
            output_array[...] = target
        return output_array

    def _source(self, array: Any) -> np.ndarray:
        """The array to read, converted if need be."""
        mine = self.input_array
        if array is None:
            return mine
        _check_shape("input_array", array, mine)
        if _fits(array, mine):
            return np.asarray(array)
        mine[...] = array
        return mine

    def _target(self, array: Any) -> np.ndarray:
        """The array that the plans write to."""
        mine = self.output_array
        if array is None:
            return mine
        if not isinstance(array, np.ndarray):
            raise argument("output_array", type(array).__name__, "a NumPy array")
        _check_shape("output_array", array, mine)
        if not array.flags.writeable:
            raise argument("output_array", "read-only", "an array that can be written")
        return np.asarray(array) if _fits(array, mine) else mine

    @property
    def _stages(self) -> list[Stage]:
        """The stages in the order of this direction."""
        stages = self._pfft._stages
        return stages if self._is_forward else stages[::-1]

    def _run(self, source: np.ndarray, target: np.ndarray) -> None:
        between = self._pfft._between()
        reached = [*(between if self._is_forward else between[::-1]), target]
        for stage, result in zip(self._stages, reached):
            run = stage.forward if self._is_forward else stage.backward
            run(source, result)
            source = result


def _check_shape(what: str, array: Any, mine: np.ndarray) -> None:
    if np.shape(array) != mine.shape:
        raise argument(f"shape of {what}", np.shape(array), mine.shape)


def _fits(array: Any, mine: np.ndarray) -> bool:
    """Whether a plan can use this array as it is."""
    return (
        isinstance(array, np.ndarray)
        and array.shape == mine.shape
        and array.dtype == mine.dtype
        and array.flags.c_contiguous
        and array.flags.aligned
    )


class PFFT(Uncopied):
    """A transform of a distributed array, with the interface of mpi4py-fft.

    Parameters
    ----------
    comm
        The communicator of mpi4py whose ranks share the array; None for one process.
    shape
        The global shape of physical data, before any `padding`.
    axes
        The axes to transform, by default all: an axis, a sequence of axes, or a sequence of groups
        of axes such as ``((0,), (1, 2))``. The last group is transformed first, and the array is
        not cut along it.
    dtype
        The type of physical data: float32, float64, complex64 or complex128.
    grid
        The grid of ranks, as the number of parts for each axis. Numbers that are not positive are
        chosen for you. Axes at the end can be left out and are then not cut. By default all axes
        of all groups but the last are cut.
    padding
        The factor by which the number of points of physical data grows along each axis, rounded
        down: 1.5 for the 3/2 rule. One factor for each axis of the array, or one for all.
    collapse
        Whether to merge groups of axes that are not cut.
    backend
        Without effect.
    transforms
        Transforms other than Fourier's: ``{(1, 2): (dctn, idctn)}``, with the functions of
        `thriffty.transforms`, for groups of `axes`.
    darray
        A `DistArray` like physical data. It replaces `comm`, `shape`, `dtype` and `grid`.
    slab
        True, or the only axis along which the array is cut. You can use `grid` instead.
    **kw
        Options of `thriffty.Plan` for how the transform is computed, such as tolerance, tuning or
        threads. If there are several plans, they share the tolerance.

    Attributes
    ----------
    forward, backward : Transform
        The two directions, as functions of an input and an output array.
    axes : tuple of tuple of int
        The groups of axes. The last is transformed first.
    pencil : tuple of Layout
        The distributions of physical and of spectral data.
    subcomm : tuple
        The parts of each axis of physical data.
    plans : tuple of Plan
        The plans, in the order in which `forward` runs them.

    Raises
    ------
    ArgumentError
        If the arguments are invalid; on all ranks.

    Notes
    -----
    Physical data is cut along leading axes. To transform a cut axis, the axis that was whole is cut
    instead: (P, Q, 1) parts become (1, P, Q), and (P, 1, 1) become (1, P, 1). If an axis cannot be
    divided evenly, its first parts have one more point.

    The first transform of real data is r2c, with n // 2 + 1 frequencies along its last axis.

    Examples
    --------
    >>> import numpy as np
    >>> from thriffty import PFFT, newDistArray
    >>> fft = PFFT(None, (8, 6), dtype=float)
    >>> u = newDistArray(fft, False, val=2)
    >>> u_hat = fft.forward(u)
    >>> u_hat.shape, float(u_hat[0, 0].real)
    ((8, 4), 2.0)
    """

    def __init__(
        self,
        comm: Any,
        shape: Sequence[int] | None = None,
        axes: Any = None,
        dtype: Any = float,
        grid: Sequence[int] | None = None,
        padding: Any = False,
        collapse: bool = False,
        backend: str = "fftw",
        transforms: dict | None = None,
        darray: DistArray | None = None,
        slab: bool | int | None = False,
        **kw: Any,
    ) -> None:
        if darray is not None:
            if not isinstance(darray, DistArray):
                raise argument("darray", type(darray).__name__, "a DistArray")
            comm = darray.pencil.comm

        def asked() -> tuple[Request, list[Stage], int, dict[str, Any]]:
            request = Request(shape, axes, dtype, padding, darray)
            layout = request.cut(comm, grid, slab)
            if collapse:
                request.collapse(layout.subcomm)
            stages, points = stages_of(request, layout, transforms or {})
            known = (serial() if comm is None else over_mpi()).options
            return request, stages, points, _options(kw, known, len(stages))

        agreed = agree(None if comm is None else Ranks.of(comm), asked)
        request, self._stages, self._points, options = agreed
        self.axes = tuple(request.groups)
        self.pencil = (self._stages[0].before, self._stages[-1].output)
        self.subcomm = self.pencil[0].subcomm
        self._dtypes = (self._stages[0].dtype, self._stages[-1].output_dtype)
        # Memory of this rank, allocated on first use.
        self._arrays: list[np.ndarray | None] = [None, None]
        self._steps: list[np.ndarray] | None = None
        for stage in self._stages:
            stage.make(options)
        self.forward = Transform(self, True)
        self.backward = Transform(self, False)

    @property
    def plans(self) -> tuple[Plan, ...]:
        return tuple(stage.plan for stage in self._stages)

    @property
    def dimensions(self) -> int:
        """The number of axes."""
        return len(self.pencil[0].shape)

    def shape(self, forward_output: bool = True) -> tuple[int, ...]:
        """The shape of this rank's spectral data, or of its physical data."""
        return self.pencil[bool(forward_output)].subshape

    def local_slice(self, forward_output: bool = True) -> tuple[slice, ...]:
        """This rank's part of spectral data, or of physical data."""
        return self.pencil[bool(forward_output)].slices

    def global_shape(self, forward_output: bool = False) -> tuple[int, ...]:
        """The shape of all spectral data, or of all physical data."""
        return self.pencil[bool(forward_output)].shape

    def dtype(self, forward_output: bool = False) -> np.dtype:
        """The type of spectral data, or of physical data."""
        return self._dtypes[bool(forward_output)]

    def destroy(self) -> None:
        """Ends the plans. Collective."""
        for stage in self._stages:
            stage.plan.close()

    def _array(self, forward_output: bool) -> np.ndarray:
        """This rank's array for calls without one."""
        found = self._arrays[forward_output]
        if found is None:
            found = np.zeros(self.shape(forward_output), self.dtype(forward_output))
            self._arrays[forward_output] = found
        return found

    def _between(self) -> list[np.ndarray]:
        """Memory for the result of one stage, which the next one reads."""
        if self._steps is None:
            stages = self._stages[:-1]
            self._steps = [np.empty(each.output.subshape, each.output_dtype) for each in stages]
        return self._steps


def _options(given: dict[str, Any], known: dict[str, Any], stages: int) -> dict[str, Any]:
    """Options of each plan."""
    # The arguments of PFFT determine the transform and where its arrays are.
    possible = [
        name
        for name, row in known.items()
        if row["scope"] in ("method", "choice") or name == "threads"
    ]
    for name in given:
        if name not in (*possible, *_WITHOUT_EFFECT):
            raise argument("keyword", name, "one of " + ", ".join(possible))
    options = {name: value for name, value in given.items() if name in possible}
    if options.get("tolerance") not in (None, "default"):
        # Errors of the plans add up.
        number, *strict = str(options["tolerance"]).split() or [""]
        try:
            options["tolerance"] = " ".join([str(float(number) / stages), *strict])
        except ValueError:
            pass  # The library reports it.
    return options
