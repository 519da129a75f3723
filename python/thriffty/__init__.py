"""Distributed Fourier transforms, for one process with all its cores or for the ranks of MPI.

On one machine, use the functions of ``scipy.fft`` and ``numpy.fft`` by their names::

    import thriffty
    y = thriffty.fftn(x)

For a transform that runs often, make a :class:`Plan`. With ``comm=MPI.COMM_WORLD`` each rank has a
brick of the grid. :class:`PFFT` has the interface of mpi4py-fft.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.fft import fftfreq, fftshift, ifftshift, rfftfreq

from . import _library
from ._apply import clear_plans, get_workers, set_workers
from ._copies import Halo, ParallelCopy
from ._cosines import dct, dctn, dst, dstn, idct, idctn, idst, idstn
from ._described import WireError
from ._dist_array import DistArray, newDistArray
from ._functions import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    next_fast_len,
    rfft,
    rfft2,
    rfftn,
)
from ._library import (
    ArgumentError,
    DeviceError,
    Error,
    OutOfMemoryError,
    ThreadsError,
    TransportError,
)
from ._pfft import PFFT
from ._plan import Plan

__all__ = [
    "ArgumentError",
    "DeviceError",
    "DistArray",
    "Error",
    "Halo",
    "OutOfMemoryError",
    "PFFT",
    "ParallelCopy",
    "Plan",
    "ThreadsError",
    "TransportError",
    "WireError",
    "__version__",
    "clear_plans",
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "get_workers",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "newDistArray",
    "next_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "set_workers",
]


# Classes show the name by which programs import them, not the module that defines them.
for _public in [globals().get(name) for name in __all__]:
    if isinstance(_public, type):
        _public.__module__ = __name__


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _library.serial().version
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "transforms", *(name for name in globals() if name[:2] == "__")})


# SciPy's protocol for other implementations: `scipy.fft.set_backend(thriffty)`.
__ua_domain__ = "numpy.scipy.fft"


def __ua_function__(method: Callable, args: tuple, kwargs: dict) -> Any:
    function = globals().get(method.__name__)
    try:
        return NotImplemented if function is None else function(*args, **kwargs)
    except TypeError:
        # For types that this package does not take, SciPy tries another implementation.
        return NotImplemented
