"""How arrays are cut into parts, and which part this rank has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ._mpi import check_running
from ._options import argument


class AxisCut(NamedTuple):
    """The number of parts of an axis, and which of them this rank has."""

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

    def __reduce__(self) -> Any:
        return Cuts, (self.comm, tuple(self))

    def __copy__(self) -> Cuts:
        return self

    def __deepcopy__(self, memo: Any) -> Cuts:
        return self

    @classmethod
    def of_grid(cls, comm: Any, grid: Sequence[int]) -> Cuts:
        """The cuts by a row-major grid of ranks, where numbers that are not positive are chosen."""
        if comm is not None:
            check_running()
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
    """How a global array is distributed. It is not cut along `axis`."""

    shape: tuple[int, ...]
    subcomm: Cuts
    axis: int

    @property
    def comm(self) -> Any:
        return self.subcomm.comm

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """This rank's part of the global array."""
        return tuple(cut.part(length) for cut, length in zip(self.subcomm, self.shape))

    @cached_property
    def subshape(self) -> tuple[int, ...]:
        return tuple(part.stop - part.start for part in self.slices)

    @property
    def substart(self) -> tuple[int, ...]:
        return tuple(part.start for part in self.slices)

    def aligned(self, axis: int) -> Layout:
        """The layout that is whole along `axis`, and cut instead along the axis that was whole."""
        cuts = list(self.subcomm)
        cuts[axis], cuts[self.axis] = cuts[self.axis], cuts[axis]
        return Layout(self.shape, Cuts(self.comm, cuts), axis)

    def resized(self, axis: int, length: int) -> Layout:
        """The same cuts, for an array with another length along `axis`."""
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


def layout_of(shape: tuple[int, ...], subcomm: Any, alignment: Any) -> Layout:
    """The layout for the arguments of `DistArray`."""
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
