"""The ranks of a process group without MPI, and of any communicator."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _library
from ._callbacks import Callbacks, fill
from ._library import ArgumentError, Error, Library
from ._mpi import Destroy, Ranks, tried

R = TypeVar("R")

# The group of each object, by its identity, while the object lives.
_known: dict[int, tuple[Any, Group]] = {}


def ranks_of(comm: Any) -> Ranks | Group | None:
    """The ranks of a communicator of mpi4py, or of a process group; None if `comm` is None."""
    if comm is None:
        return None
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is not None and isinstance(comm, mpi4py.Comm):
        return Ranks.of(comm)
    return Group.of(comm)


def agree(ranks: Ranks | Group | None, asked: Callable[[], R]) -> R:
    """Calls `asked`, which checks arguments. An error on one rank is raised on all."""
    if ranks is not None:
        return ranks.agree(asked)
    mine, why = tried(asked)
    if why is not None:
        raise why if isinstance(why, Error) else ArgumentError(f"{why}") from why
    return cast(R, mine)


class Group:
    """The communicator for a process group, made once for each object.

    Destroying its plans and copies is not collective.
    """

    def __init__(self, comm: Any) -> None:
        self.library = _library.serial()
        if not hasattr(self.library.c, "thriffty_comm_create"):
            raise ImportError(f"{self.library.path} has no process groups")
        self._handle = ctypes.c_void_p()
        methods = _methods(comm)
        rank, self.size = int(methods.rank), int(methods.size)
        self._callbacks = Callbacks(methods, self.size)
        callbacks, c = ctypes.byref(self._callbacks.struct), self.library.c
        status = c.thriffty_comm_create(self._handle, rank, self.size, callbacks, None)
        self.library.check(status)

    @classmethod
    def of(cls, comm: Any) -> Group:
        """The communicator of the object, made at the first call."""
        at = id(comm)
        if at not in _known:
            group = cls(comm)
            _known[at] = (weakref.ref(comm, lambda _: _known.pop(at, None)), group)
        return _known[at][1]

    def agree(self, asked: Callable[[], R]) -> R:
        """Calls `asked`. All ranks raise the error of the lowest rank that has one. Collective."""
        mine, why = tried(asked)
        text = None if why is None else f"{why}".encode(errors="backslashreplace")
        try:
            self.library.check(self.library.c.thriffty_comm_agree(self._handle, text))
        except Error as error:
            raise error from why
        return cast(R, mine)

    def create(self, plan: ctypes.c_void_p, *asked: Any) -> int:
        """Makes a plan. Collective."""
        return self.library.c.thriffty_plan_create_group(plan, self._handle, *asked)

    def number(self) -> int:
        return 0

    def leave(
        self, number: int, library: Library, destroy: Destroy, handle: ctypes.c_void_p
    ) -> None:
        """Destroys a plan or copy that this rank no longer uses."""
        destroy(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.library.c.thriffty_comm_destroy(self._handle)


def _methods(comm: Any) -> Any:
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and isinstance(comm, torch.ProcessGroup):
        from ._torch import TorchGroup

        return TorchGroup(comm)
    if any(not hasattr(comm, name) for name in ("rank", "size", "allgather", "alltoallv")):
        expected = (
            "a communicator of mpi4py, a group of torch.distributed, or an object with rank, size, "
            "allgather and alltoallv"
        )
        raise TypeError(f"comm: found {type(comm).__name__}, expected {expected}")
    missing = [name for name in ("isend", "irecv", "test") if not hasattr(comm, name)]
    if 0 < len(missing) < 3:
        found = f"{type(comm).__name__} without {missing[0]}"
        raise TypeError(f"comm: found {found}, expected all of isend, irecv and test, or none")
    return _Bytes(comm)


class _Bytes:
    """Adapts an object whose methods take and return bytes. It does not keep the object alive."""

    def __init__(self, comm: Any) -> None:
        self._comm = weakref.proxy(comm)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def allgather(self, mine: memoryview, rooms: list[memoryview]) -> None:
        fill(rooms, self._comm.allgather(bytes(mine)))

    def alltoallv(self, parts: list[memoryview], rooms: list[memoryview]) -> None:
        fill(rooms, self._comm.alltoallv([bytes(part) for part in parts]))

    def isend(self, to: int, tag: int, message: memoryview) -> Any:
        return self._comm.isend(to, tag, bytes(message))
