"""The ranks of an MPI communicator: how they agree on arguments, and when plans are destroyed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _library
from ._library import ArgumentError, Library, TransportError

R = TypeVar("R")

# A call of the library that destroys a handle.
Destroy = Callable[[ctypes.c_void_p], int]

_keyval: int | None = None


def check_running() -> None:
    """Raises an error if MPI is not running, because calls of mpi4py would then end the job."""
    from mpi4py import MPI

    if MPI.Is_finalized():
        raise TransportError("MPI has been finalised")
    if not MPI.Is_initialized():
        raise TransportError("MPI has not been initialised")


def tried(asked: Callable[[], R]) -> tuple[R | None, Exception | None]:
    """The result of a call, or its error."""
    try:
        return asked(), None
    except Exception as error:  # Of any kind, because other ranks wait for this one.
        return None, error


class Ranks:
    """The plans and copies of a communicator, numbered in the order in which all ranks make them.

    A plan or copy is kept until no rank uses it, because destroying it is collective.
    """

    def __init__(self, comm: Any) -> None:
        self.comm, self.size = comm, comm.Get_size()
        self.next = 0
        self.unused: dict[int, tuple[Library, Destroy, ctypes.c_void_p]] = {}

    @property
    def library(self) -> Library:
        return _library.over_mpi()

    @classmethod
    def of(cls, comm: Any) -> Ranks:
        """The ranks of the communicator, stored with it."""
        global _keyval
        from mpi4py import MPI

        if not isinstance(comm, MPI.Comm):
            raise TypeError(f"comm: found {type(comm).__name__}, expected mpi4py.MPI.Comm")
        check_running()
        if _keyval is None:
            _keyval = MPI.Comm.Create_keyval()
        kept = comm.Get_attr(_keyval)
        if not isinstance(kept, cls):
            kept = cls(comm)
            comm.Set_attr(_keyval, kept)
        return kept

    def agree(self, asked: Callable[[], R]) -> R:
        """Calls `asked`. All ranks raise the error of the lowest rank that has one. Collective."""
        check_running()
        mine, why = tried(asked)
        text = None if why is None else f"{why}"
        said = self.comm.allgather((text, sorted(self.unused)))
        for number in sorted(set.intersection(*(set(unused) for _, unused in said))):
            library, destroy, handle = self.unused.pop(number)
            library.check(destroy(handle))
        for rank, (text, _) in enumerate(said):
            if text is not None:
                raise ArgumentError(f"rank {rank}: {text}") from why
        return cast(R, mine)

    def create(self, plan: ctypes.c_void_p, *asked: Any) -> int:
        """Makes a plan. Collective."""
        return self.library.c.thriffty_plan_create_f(plan, self.comm.py2f(), *asked)

    def number(self) -> int:
        """Numbers a plan or copy that all ranks have just made."""
        self.next += 1
        return self.next

    def leave(
        self, number: int, library: Library, destroy: Destroy, handle: ctypes.c_void_p
    ) -> None:
        """Marks a plan or copy as no longer used on this rank."""
        self.unused[number] = (library, destroy, handle)
