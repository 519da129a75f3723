"""The memory of arrays: NumPy arrays, and any with `__cuda_array_interface__` or DLPack."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import math
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

# Four axes and a batch.
_ROW_MAJOR = [tuple(range(axes)) for axes in range(6)]


class Memory(NamedTuple):
    """Where an array is stored, and its shape and type."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    # Bytes from one element to the next along each axis; None for row-major.
    strides: tuple[int, ...] | None
    writable: bool
    device: bool

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def memory(array: Any) -> Memory | None:
    """The memory of an array, or None if the object is not an array."""
    if isinstance(array, np.ndarray):
        return _of_numpy(array)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return _of_torch(array)
    on_device = getattr(array, "__cuda_array_interface__", None)
    if on_device is not None:
        return _of_interface(on_device)
    if hasattr(array, "__dlpack__"):
        # NumPy's view may be read-only although the owner may write.
        same = _of_numpy(np.from_dlpack(array))
        return same._replace(writable=True)
    return None


def address(array: np.ndarray) -> int:
    """The address of the first element."""
    try:
        # Much faster than `array.ctypes.data`, where it works.
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError):
        return array.ctypes.data


def _of_numpy(array: np.ndarray) -> Memory:
    flags = array.flags
    strides = None if flags.c_contiguous else array.strides
    return Memory(address(array), array.shape, array.dtype, strides, flags.writeable, False)


def _of_torch(tensor: Any) -> Memory:
    """Much faster than by DLPack or the interface of arrays."""
    if tensor.requires_grad:
        raise TypeError("a tensor that requires gradients: see thriffty.torch, or detach() it")
    if tensor.is_conj() or tensor.is_neg():
        raise TypeError("a conjugate that is not computed: see Tensor.resolve_conj()")
    dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
    strides = None
    if not tensor.is_contiguous():
        strides = tuple(step * dtype.itemsize for step in tensor.stride())
    shape, device = tuple(tensor.shape), tensor.device.type == "cuda"
    return Memory(tensor.data_ptr(), shape, dtype, strides, True, device)


def _of_interface(interface: dict) -> Memory:
    address, read_only = interface["data"]
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    # Our work may be on another stream, so the producer's has to finish first.
    stream = interface.get("stream")
    if stream is not None:
        _cuda().cuStreamSynchronize(ctypes.c_void_p(stream))
    strides = interface.get("strides")
    strides = strides and tuple(strides)
    return Memory(address or 0, shape, dtype, strides, not read_only, True)


@cache
def _cuda() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def is_packed(array: Memory, order: tuple[int, ...]) -> bool:
    """Whether the elements are stored without gaps, axes in this order, slowest first."""
    if array.strides is None and order == _ROW_MAJOR[len(order)]:
        return True
    strides = array.strides or row_major_strides(array.shape, array.dtype.itemsize)
    step = array.dtype.itemsize
    for axis in reversed(order):
        # With one element there is no stride.
        if array.shape[axis] > 1 and strides[axis] != step:
            return 0 in array.shape
        step *= array.shape[axis]
    return True


def row_major_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Bytes from one element to the next along each axis."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def empty_like(array: Any, shape: Sequence[int], dtype: np.dtype, order: Sequence[int]) -> Any:
    """A new array of the same library, on the same device, with this order of axes in memory."""
    library = type(array).__module__.partition(".")[0]
    packed = [shape[axis] for axis in order]
    if library == "torch":
        torch = importlib.import_module("torch")
        new = torch.empty(packed, dtype=getattr(torch, dtype.name), device=array.device)
        return new.permute(*np.argsort(order).tolist())
    new = importlib.import_module("cupy" if library == "cupy" else "numpy").empty(packed, dtype)
    return new.transpose(np.argsort(order).tolist())


def copied(array: Any) -> np.ndarray:
    """A copy of an array on the host, with its order of axes in memory."""
    array = array if isinstance(array, np.ndarray) else np.from_dlpack(array)
    return array.copy(order="K")


class DeviceArray:
    """An array in a plan's device memory, for CuPy, torch and others to read and write."""

    def __init__(
        self, address: int, shape: Sequence[int], dtype: np.dtype, strides: Any, plan: Any
    ) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": tuple(shape),
            "typestr": dtype.str,
            "strides": strides,
            "version": 3,
        }
        self._plan = plan


def lent(address: int, size: int, on_device: bool, plan: Any) -> Any:
    """An array in memory that a plan has allocated. It keeps the plan alive."""
    if on_device:
        return DeviceArray(address, (size,), np.dtype(np.uint8), None, plan)
    room: Any = (ctypes.c_uint8 * size).from_address(address)
    room.plan = plan
    return np.frombuffer(room, np.uint8)


def view(room: Any, shape: Sequence[int], dtype: np.dtype, order: Sequence[int]) -> Any:
    """The beginning of a buffer, viewed as an array with this order of axes in memory."""
    packed = [shape[axis] for axis in order]
    places = np.argsort(order).tolist()
    if isinstance(room, np.ndarray):
        size = math.prod(shape) * dtype.itemsize
        return room[:size].view(dtype).reshape(packed).transpose(places)
    strides = row_major_strides(packed, dtype.itemsize)
    address, plan = room.__cuda_array_interface__["data"][0], room._plan
    array = DeviceArray(address, shape, dtype, tuple(strides[p] for p in places), plan)
    if importlib.util.find_spec("cupy") is None:
        return array
    return importlib.import_module("cupy").asarray(array)
