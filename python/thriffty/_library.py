"""The C library: where its file is, its calls and its errors.

Without MPI any build of the library works. With MPI a process needs the build for the MPI that it
has loaded, because handles and constants differ between implementations.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterable
from ctypes import POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p
from functools import cache, cached_property
from pathlib import Path
from typing import Any

AXES = 4


class Error(RuntimeError):
    """A call has failed. If several ranks made it, all of them raise the error."""


class ArgumentError(Error, ValueError):
    """An argument is invalid, or differs between ranks."""


class OutOfMemoryError(Error, MemoryError):
    """There is too little memory, or too little that processes can share."""


class TransportError(Error):
    """MPI or a process group has failed, a message is damaged, or a rank has left."""


class DeviceError(Error):
    """There is no such CUDA device, or the library was built without CUDA."""


class ThreadsError(Error):
    """The system could not start threads."""


class Uncopied:
    """Refuses copy and pickle, for objects that hold plans, which belong to their process."""

    def __reduce__(self) -> Any:
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be copied or pickled; make another where it is needed")


# The values of `thriffty_status`.
ERRORS: dict[int, type[Error]] = {
    1: ArgumentError,
    2: ArgumentError,
    3: OutOfMemoryError,
    4: TransportError,
    5: TransportError,
    6: OutOfMemoryError,
    9: DeviceError,
    10: ThreadsError,
}


_NO_PLAN = 7


class Brick(Structure):
    """`thriffty_brick`."""

    _fields_ = [("lo", c_int64 * AXES), ("hi", c_int64 * AXES)]


class Subarray(Structure):
    """`thriffty_subarray`."""

    _fields_ = [
        ("brick", Brick),
        ("array", c_int64),
        ("offset", c_int64),
        ("strides", c_int64 * AXES),
        ("distance", c_int64),
    ]


class Sizes(Structure):
    """`thriffty_sizes`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("input", Brick),
        ("output", Brick),
        ("input_len", c_size_t),
        ("output_len", c_size_t),
        ("input_bytes", c_size_t),
        ("output_bytes", c_size_t),
        ("in_place_bytes", c_size_t),
        ("workspace_bytes", c_size_t),
        ("input_order", c_int32 * AXES),
        ("output_order", c_int32 * AXES),
        ("input_strides", c_int64 * AXES),
        ("output_strides", c_int64 * AXES),
    ]


class Timings(Structure):
    """`thriffty_timings`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("pack", c_double),
        ("exchange", c_double),
        ("unpack", c_double),
        ("own", c_double),
        ("shared", c_double),
        ("fft", c_double),
        ("sent", c_int64),
        ("forwarded", c_int64),
        ("reals", c_int64),
    ]


_CREATED = [POINTER(c_void_p)]
_OPTIONS = c_void_p
_ASKED = [c_int32, c_int32, POINTER(c_int64)]
_APART = [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]
_IN_PLACE = [c_void_p, c_void_p, c_size_t]
_TEXT = [c_void_p, c_char_p, c_size_t]
_BRICKS = [POINTER(Brick), POINTER(Brick)]
_COPIED = [POINTER(c_void_p), c_void_p, c_int32]
_SUBARRAYS = [c_size_t, POINTER(Subarray)]
_AROUND = [POINTER(c_int64), POINTER(c_int64), POINTER(c_int32)]

_ARGUMENTS: dict[str, list] = {
    "thriffty_options_create": _CREATED,
    "thriffty_options_destroy": [_OPTIONS],
    "thriffty_options_set": [_OPTIONS, c_char_p, c_char_p],
    "thriffty_options_set_stream": [_OPTIONS, c_void_p],
    "thriffty_options_get": [_OPTIONS, c_char_p, c_char_p, c_size_t],
    "thriffty_options_describe": [c_char_p, c_size_t],
    "thriffty_plan_create_serial": _CREATED + _ASKED + [_OPTIONS],
    "thriffty_plan_create_f": _CREATED + [c_int32] + _ASKED + _BRICKS + [_OPTIONS],
    "thriffty_plan_create_group": _CREATED + [c_void_p] + _ASKED + _BRICKS + [_OPTIONS],
    "thriffty_comm_create": _CREATED + [c_int32, c_int32, c_void_p, c_void_p],
    "thriffty_comm_agree": [c_void_p, c_char_p],
    "thriffty_comm_destroy": [c_void_p],
    # These take the shape by its address.
    "thriffty_forward_serial": [c_int32, c_int32, c_void_p, _OPTIONS, *_APART[1:]],
    "thriffty_inverse_serial": [c_int32, c_int32, c_void_p, _OPTIONS, *_APART[1:]],
    "thriffty_clear_plans": [],
    "thriffty_default_threads": [],
    "thriffty_next_fast_len": [c_size_t],
    "thriffty_plan_destroy": [c_void_p],
    "thriffty_forward": _APART,
    "thriffty_inverse": _APART,
    "thriffty_forward_in_place": _IN_PLACE,
    "thriffty_inverse_in_place": _IN_PLACE,
    "thriffty_allocate": [c_void_p, POINTER(c_void_p)],
    "thriffty_plan_sizes": [c_void_p, POINTER(Sizes), c_size_t],
    "thriffty_plan_timings": [c_void_p, POINTER(Timings), c_size_t],
    "thriffty_plan_clear_timings": [c_void_p],
    "thriffty_plan_wire_error": [c_void_p, POINTER(c_double), POINTER(c_double)],
    "thriffty_plan_recipe": _TEXT,
    "thriffty_plan_report": _TEXT,
    "thriffty_plan_refuse": [c_void_p, c_char_p, c_char_p, c_char_p],
    "thriffty_plan_save_wisdom": [c_void_p, c_char_p],
    "thriffty_set_schemes": [c_void_p, c_char_p],
    "thriffty_set_tridiagonal": [c_void_p, *[POINTER(c_double)] * 3, c_size_t],
    "thriffty_set_stretched": [c_void_p, c_char_p, POINTER(c_double), c_size_t],
    "thriffty_apply": [c_void_p, c_int32, c_double, POINTER(c_double), *_APART[1:]],
    "thriffty_convolve": [c_void_p, c_void_p, c_size_t, c_int32, c_void_p, c_size_t],
    "thriffty_green_function": [c_void_p, POINTER(c_double), c_void_p, c_size_t],
    "thriffty_copy_create": [*_COPIED, *_SUBARRAYS, *_SUBARRAYS],
    "thriffty_halo_create": [*_COPIED, *_AROUND, *_SUBARRAYS],
    "thriffty_copy_run": [c_void_p, POINTER(c_void_p), POINTER(c_void_p)],
    "thriffty_copy_destroy": [c_void_p],
    "thriffty_wavenumbers": [
        c_void_p,
        c_int32,
        c_double,
        POINTER(c_double),
        POINTER(c_double),
        c_size_t,
    ],
}

# The calls that return neither a status nor an int.
_RESULTS: dict[str, Any] = {
    "thriffty_version": c_char_p,
    "thriffty_last_error": c_char_p,
    "thriffty_options_get": c_int64,
    "thriffty_options_describe": c_int64,
    "thriffty_plan_recipe": c_int64,
    "thriffty_plan_report": c_int64,
    "thriffty_next_fast_len": c_size_t,
}


def doubles(numbers: Iterable[float]) -> Any:
    """The numbers as an array of C."""
    numbers = [float(number) for number in numbers]
    return (c_double * len(numbers))(*numbers)


class Library:
    """A loaded library. ctypes releases the GIL during its calls."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.c = ctypes.CDLL(self.path)
        # The newest call that the package needs.
        if not hasattr(self.c, "thriffty_options_create"):
            raise ImportError(f"{self.path} is no library of thriffty, or too old for this package")
        for name, arguments in _ARGUMENTS.items():
            if hasattr(self.c, name):
                getattr(self.c, name).argtypes = arguments
        for name, result in _RESULTS.items():
            if hasattr(self.c, name):
                getattr(self.c, name).restype = result

    @property
    def version(self) -> str:
        return self.c.thriffty_version().decode()

    @property
    def has_mpi(self) -> bool:
        return hasattr(self.c, "thriffty_plan_create_f")

    @property
    def mpi(self) -> str | None:
        """How the MPI that the library was linked with describes itself."""
        ask = getattr(self.c, "MPI_Get_library_version", None)
        if ask is None:
            return None
        # Larger than any MPI_MAX_LIBRARY_VERSION_STRING.
        words, length = ctypes.create_string_buffer(1 << 14), ctypes.c_int()
        ask(words, ctypes.byref(length))
        return words.value.decode(errors="replace")

    @cached_property
    def options(self) -> dict[str, dict[str, Any]]:
        """The library's description of its options, by name."""
        rows = json.loads(self.text(self.c.thriffty_options_describe))
        return {row["name"]: row for row in rows}

    def check(self, status: int) -> None:
        """Raises the error for a status, unless it is 0."""
        if status != 0:
            raise ERRORS.get(status, Error)(self.c.thriffty_last_error().decode())

    def destroy(self, call: Callable[[c_void_p], int], handle: c_void_p) -> None:
        """Destroys a plan or a copy. After a fork, the parent's plans do not exist here."""
        status = call(handle)
        if status != _NO_PLAN:
            self.check(status)

    def text(self, call: Callable[..., int], *asked: Any) -> str:
        """The text that a call writes in the manner of snprintf."""
        length = call(*asked, None, 0)
        self.check(max(-length, 0))
        room = ctypes.create_string_buffer(length + 1)
        call(*asked, room, length + 1)
        return room.value.decode()


# The names under which an MPI is loaded, which do not depend on the names of its files.
_SONAMES = {
    "libmpi_abi.so.0": "mpi_abi",
    "libmpi_abi.so.1": "mpi_abi",
    "libmpi.so.40": "openmpi",
    "libmpi.so.12": "mpich",
    "libmpich.so.12": "mpich",
}


def _path(mpi: str) -> Path:
    return Path(__file__).parent / "lib" / mpi / "libthriffty.so"


def libraries() -> dict[str, str]:
    """The libraries of this installation, by the MPI that they were built for."""
    chosen = os.environ.get("THRIFFTY_LIBRARY")
    if chosen:
        return {"THRIFFTY_LIBRARY": chosen}
    known = ("serial", "openmpi", "mpich", "mpi_abi")
    return {mpi: str(_path(mpi)) for mpi in known if _path(mpi).exists()}


def loaded_mpi() -> str | None:
    """The MPI that this process has loaded: "openmpi", "mpich" (and what has its ABI), or "mpi_abi"
    (the standard's ABI)."""
    for name, mpi in _SONAMES.items():
        try:
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:
            continue
        return mpi
    return None


@cache
def _load(path: str) -> Library:
    try:
        return Library(path)
    except (OSError, ImportError) as why:
        named = "THRIFFTY_LIBRARY" if path == os.environ.get("THRIFFTY_LIBRARY") else "thriffty"
        raise ImportError(f"{named}: found {path}, expected a libthriffty.so: {why}") from None


def name_of_mpi(words: str) -> str:
    """The name and the version from the description of an MPI."""
    return " ".join(words.strip("\0\n ").splitlines()[0].split(",")[0].split())


@cache
def _load_for_mpi(path: str) -> Library:
    from mpi4py import MPI

    library = _load(path)
    if not library.has_mpi:
        raise ImportError(f"{path} was built without MPI")
    used, own = name_of_mpi(MPI.Get_library_version()), name_of_mpi(library.mpi or "no MPI")
    if used != own:
        raise ImportError(f"this process uses {used}, and {path} was built for {own}")
    return library


@cache
def serial() -> Library:
    """The library for plans of one process."""
    found = libraries()
    if not found:
        folder = Path(__file__).parent / "lib"
        raise ImportError(f"no libthriffty.so in {folder}; THRIFFTY_LIBRARY can name one")
    return _load(next(iter(found.values())))


@cache
def over_mpi() -> Library:
    """The library for the MPI that mpi4py has loaded."""
    found, mpi = libraries(), loaded_mpi()
    path = found.get("THRIFFTY_LIBRARY") or (mpi and found.get(mpi))
    if not path:
        used, there = mpi or "an unknown MPI", ", ".join(found) or "no MPI"
        raise ImportError(f"this process uses {used}, and libthriffty.so is there for {there}")
    return _load_for_mpi(path)
