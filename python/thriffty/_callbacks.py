"""The methods of a process group as the functions of `thriffty_group_callbacks`.

C passes addresses, and the methods take bytes: :class:`Callbacks` converts between the two. ctypes
holds the GIL only while a callback runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

_SIZES = POINTER(c_size_t)
_REQUEST = POINTER(c_uint64)

# The functions that follow the size of the struct. Strings of C are addresses.
_TYPES: dict[str, Any] = {
    "allgather": CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t),
    "alltoallv": CFUNCTYPE(c_int32, c_void_p, c_void_p, _SIZES, _SIZES, c_void_p, _SIZES, _SIZES),
    "isend": CFUNCTYPE(c_int32, c_void_p, c_int32, c_uint32, c_void_p, c_size_t, _REQUEST),
    "irecv": CFUNCTYPE(c_int32, c_void_p, c_int32, c_uint32, c_void_p, c_size_t, _REQUEST),
    "test": CFUNCTYPE(c_int32, c_void_p, c_uint64, POINTER(c_int32), _SIZES),
    "host": CFUNCTYPE(c_void_p, c_void_p),
    "lost": CFUNCTYPE(c_int32, c_void_p),
    "abandon": CFUNCTYPE(None, c_void_p),
    "error": CFUNCTYPE(c_void_p, c_void_p),
}
_TYPES["device_alltoallv"] = _TYPES["alltoallv"]


class GroupCallbacks(Structure):
    """`thriffty_group_callbacks`."""

    _fields_ = [("struct_size", c_size_t), *_TYPES.items()]


def view(address: int | None, bytes: int) -> memoryview:
    """The bytes at an address."""
    if bytes == 0:
        return memoryview(b"")
    return memoryview((ctypes.c_char * bytes).from_address(address or 0)).cast("B")


class DeviceBytes:
    """Bytes in device memory, which CuPy, Numba and torch can view as an array."""

    def __init__(self, address: int, bytes: int) -> None:
        self.bytes = bytes
        self.__cuda_array_interface__ = {
            "shape": (bytes,),
            "typestr": "|u1",
            "data": (address if bytes > 0 else 0, False),
            "version": 3,
        }


def fill(rooms: Sequence[memoryview], parts: Sequence[Any]) -> None:
    """Copies what each rank has sent into the buffer for it."""
    if len(parts) != len(rooms):
        raise ValueError(f"found the bytes of {len(parts)} ranks, expected {len(rooms)}")
    for rank, (room, part) in enumerate(zip(rooms, parts)):
        found = memoryview(part)
        if found.nbytes != len(room):
            raise ValueError(f"found {found.nbytes} bytes from rank {rank}, expected {len(room)}")
        if len(room) > 0:
            room[:] = found.cast("B")


class Callbacks:
    """The functions of a group.

    The group's ``allgather(mine, rooms)`` and ``alltoallv(parts, rooms)`` take lists of buffers,
    one for each rank. ``device_alltoallv(parts, rooms)`` takes lists of :class:`DeviceBytes`. If
    any method raises an exception, `error` gets its text, and all later calls fail, too.
    """

    def __init__(self, group: Any, size: int) -> None:
        self._group, self._size = group, size
        self._failed: Any = None
        self._name: Any = None
        # The group's and the library's handle of each message.
        self._under_way: dict[int, tuple[Any, memoryview | None]] = {}
        self._requests = 0
        calls = {
            "allgather": self._status(self._allgather),
            "alltoallv": self._status(self._alltoallv_of("alltoallv", view)),
            "error": lambda _: _address(self._failed),
        }
        if hasattr(group, "device_alltoallv"):
            exchange = self._alltoallv_of("device_alltoallv", DeviceBytes)
            calls["device_alltoallv"] = self._status(exchange)
        if hasattr(group, "irecv"):
            calls["isend"] = self._status(self._isend)
            calls["irecv"] = self._status(self._irecv)
            calls["test"] = self._status(self._test)
        for name in ("host", "lost", "abandon"):
            if hasattr(group, name):
                calls[name] = getattr(self, f"_{name}")
        functions = {name: _TYPES[name](call) for name, call in calls.items()}
        self.struct = GroupCallbacks(ctypes.sizeof(GroupCallbacks), **functions)

    def _try(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except BaseException as why:  # C cannot propagate an exception of any kind.
            words = f"{type(why).__name__}: {why}".encode(errors="backslashreplace")
            self._failed = ctypes.create_string_buffer(words)
            return None

    def _status(self, call: Callable[..., None]) -> Callable[..., int]:
        def status(_: Any, *arguments: Any) -> int:
            if self._failed is None:
                self._try(call, *arguments)
            return 0 if self._failed is None else 1

        return status

    def _allgather(self, mine: int, all: int, bytes: int) -> None:
        rooms = [view(all + rank * bytes, bytes) for rank in range(self._size)]
        self._group.allgather(view(mine, bytes), rooms)

    def _alltoallv_of(self, method: str, memory: Callable[[int, int], Any]) -> Callable[..., None]:
        """The C function for a method that takes lists of this kind of buffer."""

        def alltoallv(
            send: int, sends: Any, froms: Any, recv: int, receives: Any, tos: Any
        ) -> None:
            ranks = range(self._size)
            parts = [memory((send or 0) + froms[rank], sends[rank]) for rank in ranks]
            rooms = [memory((recv or 0) + tos[rank], receives[rank]) for rank in ranks]
            getattr(self._group, method)(parts, rooms)

        return alltoallv

    def _begun(self, asked: Any, room: memoryview | None, request: Any) -> None:
        self._requests += 1
        self._under_way[self._requests] = (asked, room)
        request[0] = self._requests

    def _isend(self, to: int, tag: int, message: int, bytes: int, request: Any) -> None:
        self._begun(self._group.isend(to, tag, view(message, bytes)), None, request)

    def _irecv(self, source: int, tag: int, room: int, bytes: int, request: Any) -> None:
        self._begun(self._group.irecv(source, tag, bytes), view(room, bytes), request)

    def _test(self, request: int, done: Any, bytes: Any) -> None:
        asked, room = self._under_way[request]
        found = self._group.test(asked)
        done[0] = found is not None
        if found is None:
            return
        del self._under_way[request]
        if room is not None:
            message = memoryview(found)
            if message.nbytes > len(room):
                raise ValueError(f"found {message.nbytes} bytes, expected at most {len(room)}")
            fill([room[: message.nbytes]], [message])
            bytes[0] = message.nbytes

    def _host(self, _: Any) -> int | None:
        name = self._try(self._group.host)
        if name is not None:
            self._name = ctypes.create_string_buffer(str(name).encode(errors="backslashreplace"))
        return _address(self._name)

    def _lost(self, _: Any) -> int:
        found = self._try(self._lost_rank)
        return -1 if found is None else found

    def _lost_rank(self) -> int | None:
        rank = self._group.lost()
        return None if rank is None else int(rank)

    def _abandon(self, _: Any) -> None:
        self._try(self._group.abandon)


def _address(text: Any) -> int | None:
    return None if text is None else ctypes.addressof(text)
