"""The properties of a plan: its grid, its arrays, and how it transforms."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from ._library import Brick, Library, Sizes, Timings
from ._options import Request


class WireError(NamedTuple):
    """The error of encoded messages, relative to the l2 norm of the result."""

    estimate: float
    bound: float


class Described:
    """The properties of a plan."""

    _library: Library

    def _open(self) -> ctypes.c_void_p:
        raise NotImplementedError

    def _describe(self, request: Request) -> None:
        sizes = Sizes()
        tell = self._library.c.thriffty_plan_sizes
        self._library.check(tell(self._open(), sizes, ctypes.sizeof(sizes)))
        axes, batch = len(request.shape), int(request.options["batch"])
        batches = (batch,) if batch > 1 else ()
        self._global_shapes, self._dtypes = request.shapes, request.dtypes
        self._slices = (_slices(sizes.input, axes), _slices(sizes.output, axes))
        self._shapes = tuple(
            batches + tuple(part.stop - part.start for part in slices) for slices in self._slices
        )
        self._kinds = request.kinds
        self._lengths, self._modes = request.lengths, request.modes
        self._input_order = tuple(sizes.input_order[:axes])
        self._output_order = tuple(sizes.output_order[:axes])
        self._strides = (
            tuple(sizes.input_strides[:axes]),
            tuple(sizes.output_strides[:axes]),
        )
        orders = (self._input_order, self._output_order)
        self._orders: tuple[tuple[int, ...], ...] = orders
        if batches:
            self._orders = tuple((0, *(axis + 1 for axis in order)) for order in orders)
        self._in_place_bytes: int = sizes.in_place_bytes
        self._workspace_bytes: int = sizes.workspace_bytes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole physical grid."""
        return self._global_shapes[0]

    @property
    def spectral_shape(self) -> tuple[int, ...]:
        """The shape of the whole spectral grid."""
        return self._global_shapes[1]

    @property
    def input_slices(self) -> tuple[slice, ...]:
        """This rank's brick of the physical grid."""
        return self._slices[0]

    @property
    def output_slices(self) -> tuple[slice, ...]:
        """This rank's brick of the spectral grid."""
        return self._slices[1]

    @property
    def input_strides(self) -> tuple[int, ...]:
        """The strides between adjacent points of physical data along each axis.

        All are 1, and slices are those of indices, unless data of a single axis is cyclic or
        transposed. Slices then count positions, and `input_indices` has the indices.
        """
        return self._strides[0]

    @property
    def output_strides(self) -> tuple[int, ...]:
        """The strides between adjacent points of spectral data along each axis."""
        return self._strides[1]

    def input_indices(self, axis: int = 0) -> np.ndarray:
        """The global indices along an axis of this rank's physical data."""
        return self._indices(0, axis)

    def output_indices(self, axis: int = 0) -> np.ndarray:
        """The global indices along an axis of this rank's spectral data."""
        return self._indices(1, axis)

    def _indices(self, side: int, axis: int) -> np.ndarray:
        positions, stride = self._slices[side][axis], self._strides[side][axis]
        each = self._global_shapes[side][axis] // stride
        column, row = np.divmod(np.arange(positions.start, positions.stop), each)
        return column + stride * row

    @property
    def input_order(self) -> tuple[int, ...]:
        """The order of the axes of physical data in memory, slowest first."""
        return self._input_order

    @property
    def output_order(self) -> tuple[int, ...]:
        """The order of the axes of spectral data in memory, slowest first."""
        return self._output_order

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of this rank's physical array."""
        return self._shapes[0]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of this rank's spectral array."""
        return self._shapes[1]

    @property
    def input_dtype(self) -> np.dtype:
        """The type of physical data."""
        return self._dtypes[0]

    @property
    def output_dtype(self) -> np.dtype:
        """The type of spectral data."""
        return self._dtypes[1]

    @property
    def workspace_bytes(self) -> int:
        """Bytes that the plan holds on this rank in addition to input and output."""
        return self._workspace_bytes

    @property
    def recipe(self) -> str:
        """How the transform is done, in one line."""
        return self._library.text(self._library.c.thriffty_plan_recipe, self._open())

    @property
    def report(self) -> str:
        """Why the recipe was chosen, and the expected and measured times of the candidates."""
        return self._library.text(self._library.c.thriffty_plan_report, self._open())

    @property
    def timings(self) -> dict[str, float | int]:
        """Where this rank spent its time since the plan was made or `clear_timings` was called.

        The seconds spent in ``pack``, ``exchange``, ``unpack``, ``own``, ``shared`` and ``fft``,
        the numbers of bytes ``sent`` and ``forwarded``, and the number of ``reals`` in them. If the
        plan has several threads, only the first is timed.
        """
        found = Timings()
        c = self._library.c
        self._library.check(c.thriffty_plan_timings(self._open(), found, ctypes.sizeof(found)))
        return {name: getattr(found, name) for name, _ in Timings._fields_[1:]}

    def clear_timings(self) -> None:
        """Resets the timings of this rank to zero."""
        self._library.check(self._library.c.thriffty_plan_clear_timings(self._open()))

    @property
    def wire_error(self) -> WireError:
        """The error of encoded messages in the last transform; zeros if they were lossless."""
        estimate, bound = ctypes.c_double(), ctypes.c_double()
        c = self._library.c
        self._library.check(c.thriffty_plan_wire_error(self._open(), estimate, bound))
        return WireError(estimate.value, bound.value)


def _slices(brick: Brick, axes: int) -> tuple[slice, ...]:
    pairs = zip(brick.lo[:axes], brick.hi[:axes])
    return tuple(slice(lo, max(lo, hi)) for lo, hi in pairs)
