"""Copies between the arrays of all ranks, and into the ghost points around bricks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays, _library
from ._groups import agree
from ._library import Subarray
from ._options import Slices, argument, brick_of, integer
from ._plan import Plan

# A brick, as one slice for each axis, and the array that contains it.
Part = tuple[Slices, Any]


class ParallelCopy(_library.Uncopied):
    """Copies between bricks of arrays on all ranks of a plan.

    Each rank has any number of sources and targets, which may be views of larger arrays with any
    strides. Views of one array may be both sources and targets if they do not overlap. Each point
    of the targets comes from the source that contains it, on any rank. Sources must be disjoint and
    contain all points of the targets. The constructor and :meth:`run` are collective.

    Parameters
    ----------
    plan : Plan
        The copied data has the grid, dtype and batch of one side of this plan, and is on the same
        device.
    sources, targets : sequence of (slices, array)
        A brick of the grid, one slice for each axis, and an array of its shape, after the axis of
        batches if there is one: of NumPy, or on a device with ``__cuda_array_interface__``. The
        copy keeps the arrays and uses them in each run.
    side : {"input", "output"}
        The side of the plan.

    Examples
    --------
    Copy from a field with ghost points to the plan's own brick, and back:

    >>> import numpy as np, thriffty
    >>> plan = thriffty.Plan((4, 6))
    >>> u = np.ones((6, 8), complex)
    >>> x = plan.empty_input()
    >>> mine, own = [(np.s_[0:4, 0:6], u[1:-1, 1:-1])], [(plan.input_slices, x)]
    >>> load, store = thriffty.ParallelCopy(plan, mine, own), thriffty.ParallelCopy(plan, own, mine)
    >>> load.run()
    >>> x[:] = plan.inverse(plan.forward(x))
    >>> store.run()
    """

    def __init__(
        self, plan: Plan, sources: Sequence[Part], targets: Sequence[Part], side: str = "input"
    ) -> None:
        self._begin(plan)
        c = self._library.c

        def asked() -> tuple[int, _Arrays, _Arrays]:
            number = _side(side)
            from_, to = _Arrays(plan, number), _Arrays(plan, number, written=True)
            for slices, array in sources:
                from_.add("source", slices, array)
            for slices, array in targets:
                to.add("target", slices, array)
            return number, from_, to

        number, self._sources, self._targets = agree(plan._ranks, asked)
        lists = [*self._sources.structs(), *self._targets.structs()]
        self._create(c.thriffty_copy_create(self._handle, plan._open(), number, *lists))
        self._pointers = (self._sources.pointers(), self._targets.pointers())

    def _begin(self, plan: Plan) -> None:
        self._made = False
        if not isinstance(plan, Plan):
            raise argument("plan", type(plan).__name__, "a Plan")
        self._handle = ctypes.c_void_p()
        # Keeps a process group alive as long as the copy.
        self._comm, self._library, self._ranks = plan._comm, plan._library, plan._ranks

    def _create(self, status: int) -> None:
        self._library.check(status)
        self._made = True
        self._number = 0 if self._ranks is None else self._ranks.number()

    def run(self) -> None:
        """Runs the copy. Collective."""
        if not self._made:
            raise _library.Error("the copy is closed")
        # Work that others have queued on devices has to finish first.
        for array in self._kept():
            _arrays.memory(array)
        self._library.check(self._library.c.thriffty_copy_run(self._handle, *self._pointers))

    def _kept(self) -> list[Any]:
        return [*self._sources.on_device, *self._targets.on_device]

    def close(self) -> None:
        """Ends the copy. Collective."""
        if self._made:
            self._made = False
            self._library.destroy(self._library.c.thriffty_copy_destroy, self._handle)

    def __enter__(self) -> ParallelCopy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_made", False):
            return
        destroy = self._library.c.thriffty_copy_destroy
        if self._ranks is None:
            destroy(self._handle)
        else:
            self._ranks.leave(self._number, self._library, destroy, self._handle)


class Halo(ParallelCopy):
    """Fills the ghost points of arrays, also at edges and corners, from the ranks that have them.

    The constructor and :meth:`run` are collective.

    Parameters
    ----------
    plan : Plan
        As for :class:`ParallelCopy`.
    arrays : sequence of (slices, array)
        A brick of the grid, and an array of the brick and its ghost points.
    lower, upper : int or sequence of int
        Ghost points below and above each brick, along each axis.
    periodic : bool or sequence of bool
        Whether the grid is periodic along each axis. If not, ghost points beyond the grid keep
        their values.
    side : {"input", "output"}
        The side of the plan.

    Examples
    --------
    >>> import numpy as np, thriffty
    >>> plan = thriffty.Plan((3, 2), float)
    >>> u = np.zeros((5, 2))
    >>> u[1:-1] = [[1, 2], [3, 4], [5, 6]]
    >>> thriffty.Halo(plan, [(np.s_[0:3, 0:2], u)], (1, 0), (1, 0)).run()
    >>> u[0], u[-1]
    (array([5., 6.]), array([1., 2.]))
    """

    def __init__(
        self,
        plan: Plan,
        arrays: Sequence[Part],
        lower: int | Sequence[int],
        upper: int | Sequence[int],
        periodic: bool | Sequence[bool] = True,
        side: str = "input",
    ) -> None:
        self._begin(plan)
        c = self._library.c

        def asked() -> tuple[int, _Arrays, Any, Any, Any]:
            number, axes = _side(side), len(plan.shape)
            below, above = _counts("lower", lower, axes), _counts("upper", upper, axes)
            wraps = [bool(it) for it in np.broadcast_to(periodic, axes)]
            found = _Arrays(plan, number, written=True)
            for slices, array in arrays:
                found.add("array", slices, array, (below, above))
            i64, i32 = ctypes.c_int64 * axes, ctypes.c_int32 * axes
            return number, found, i64(*below), i64(*above), i32(*wraps)

        number, self._targets, *around = agree(plan._ranks, asked)
        self._sources = self._targets
        structs = self._targets.structs()
        handle = self._handle
        self._create(c.thriffty_halo_create(handle, plan._open(), number, *around, *structs))
        self._pointers = (None, self._targets.pointers())


class _Arrays:
    """Arrays and the bricks in them. Views of one array count as one array with several bricks."""

    def __init__(self, plan: Plan, side: int, written: bool = False) -> None:
        self.shape = plan.shape if side == 0 else plan.spectral_shape
        self.dtype = plan.input_dtype if side == 0 else plan.output_dtype
        local = plan.input_shape
        self.batch = local[0] if len(local) > len(plan.shape) else 1
        self.written = written
        self.device = plan._on_device
        self.axes = len(self.shape)
        # Each with its address.
        self.subarrays: list[tuple[Subarray, int]] = []
        self.kept: list[Any] = []
        self.on_device: list[Any] = []
        # The number of each underlying array, and the lowest address of its views.
        self.numbers: dict[int, int] = {}
        self.lowest: list[int] = []

    def add(
        self,
        what: str,
        slices: Slices,
        array: Any,
        around: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        axes = len(self.shape)
        brick = brick_of(f"brick of the {what}", slices, self.shape)
        below, above = around or ([0] * axes, [0] * axes)
        lens = [brick.hi[axis] - brick.lo[axis] for axis in range(axes)]
        empty = min(lens) <= 0
        shape = tuple(n + a + b for n, a, b in zip(lens, below, above))
        if self.batch > 1:
            shape = (self.batch, *shape)
        found = _arrays.memory(array) if _is_known(array) else None
        if found is None:
            raise argument(what, type(array).__name__, "a NumPy array, or one on a device")
        if found.device != self.device:
            places = ("on the host", "on a device")
            raise argument(what, places[found.device], places[not found.device])
        if found.dtype != self.dtype:
            raise argument(f"dtype of the {what}", found.dtype, self.dtype)
        if not empty and found.shape != shape:
            raise argument(f"shape of the {what}", found.shape, shape)
        if self.written and not found.writable:
            raise argument(what, "a read-only array", "one that can be written")
        size = found.dtype.itemsize
        strides = found.strides or _arrays.row_major_strides(found.shape, size)
        # An axis with one element has no stride.
        steps = [step if n > 1 else 0 for n, step in zip(found.shape, strides)]
        if not empty and any(
            step < 0 or step % size or (step == 0) != (n == 1)
            for n, step in zip(found.shape, steps)
        ):
            raise argument(f"strides of the {what}", strides, f"positive multiples of {size}")
        address, root = found.address, _root(array)
        if found.device and address % size:
            raise argument(f"address of the {what}", hex(address), f"a multiple of {size}")
        begins = _arrays.memory(root)
        if begins is None or (address - begins.address) % size:
            root = array
        self.kept.append(root)
        if found.device:
            self.on_device.append(array)
        if id(root) not in self.numbers:
            self.numbers[id(root)] = len(self.numbers)
            self.lowest.append(self._begin(address))
        number = self.numbers[id(root)]
        subarray = Subarray(brick=brick, array=number)
        if not empty:
            self.lowest[number] = min(self.lowest[number], self._begin(address))
            steps = [step // size for step in steps]
            subarray.distance = steps.pop(0) if self.batch > 1 else 0
            for axis, step in enumerate(steps):
                subarray.strides[axis] = step
                subarray.offset += below[axis] * step
        self.subarrays.append((subarray, address))

    def _begin(self, address: int) -> int:
        """Where an array may begin: on devices, at multiples of 16 bytes."""
        return address - address % 16 if self.device else address

    def structs(self) -> tuple[int, Any]:
        for found, address in self.subarrays:
            empty = any(hi <= lo for lo, hi in zip(found.brick.lo, found.brick.hi[: self.axes]))
            if not empty:
                found.offset += (address - self.lowest[found.array]) // self.dtype.itemsize
        structs = [found for found, _ in self.subarrays]
        return len(structs), (Subarray * len(structs))(*structs)

    def pointers(self) -> Any:
        return (ctypes.c_void_p * len(self.lowest))(*self.lowest)


def _is_known(array: Any) -> bool:
    """Whether it is a NumPy array, or one on a device."""
    return isinstance(array, np.ndarray) or hasattr(array, "__cuda_array_interface__")


def _root(array: Any) -> Any:
    """The array of the same library under a view."""
    while True:
        base = getattr(array, "base", getattr(array, "_base", None))
        if not _is_known(base):
            return array
        array = base


def _side(side: str) -> int:
    if side not in ("input", "output"):
        raise argument("side", repr(side), '"input" or "output"')
    return 0 if side == "input" else 1


def _counts(what: str, counts: int | Sequence[int], axes: int) -> list[int]:
    found = [counts] * axes if np.ndim(counts) == 0 else list(counts)  # type: ignore[arg-type]
    if len(found) != axes:
        raise argument(what, f"{len(found)} numbers", f"{axes}, one for each axis")
    numbers = [integer(what, count) for count in found]
    if min(numbers) < 0:
        raise argument(what, numbers, "0 or more")
    return numbers
