"""`python -m thriffty`: versions, libraries, threads and GPUs."""

from __future__ import annotations

import ctypes
import platform

import numpy as np

from . import _library
from ._apply import get_workers


def _gpus() -> list[str]:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        cuda.cuDeviceGetName(name, len(name), number)
        names.append(name.value.decode())
    return names


def _mpi() -> str:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        return f"none ({error})"
    try:
        used = _library.over_mpi().path
    except (ImportError, OSError) as error:
        used = str(error)
    return f"{_library.name_of_mpi(MPI.Get_library_version())}; {used}"


def main() -> None:
    """Prints one line for each."""
    try:
        version, threads = _library.serial().version, str(get_workers())
    except ImportError as error:
        version, threads = f"without a library ({error})", "unknown"
    print(f"thriffty  {version}")
    print(f"Python    {platform.python_version()}, NumPy {np.__version__}")
    for mpi, path in _library.libraries().items():
        print(f"library   {mpi}: {path}")
    print(f"MPI       {_mpi()}")
    print(f"threads   {threads}")
    print(f"GPUs      {', '.join(_gpus()) or 'none'}")


if __name__ == "__main__":
    main()
