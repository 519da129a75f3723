"""Times transforms of one process beside SciPy, pyFFTW and FFTW's threads, in turns.

Run: python benches/peers/local.py [--threads 2] [--sizes 256 384] [--rounds 7], with NumPy, SciPy,
pyfftw, the package thriffty, and libfftw3_threads.so.3.

All but SciPy's and thriffty's functions write to arrays that are there. Plans of FFTW are made with
MEASURE. A number is the median of the rounds, in milliseconds.
"""

import argparse
import ctypes
import platform
import time
from functools import partial

import numpy as np
import scipy
import scipy.fft

import thriffty

try:
    import pyfftw
except ImportError:
    pyfftw = None

FORWARD, MEASURE = -1, 0


def fftws(x, y, threads):
    """FFTW's own plan, by its C interface."""
    main = ctypes.CDLL("libfftw3.so.3", ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL("libfftw3_threads.so.3")
    library.fftw_init_threads()
    library.fftw_plan_with_nthreads(threads)
    real = x.dtype.kind == "f"
    make = main.fftw_plan_dft_r2c_3d if real else main.fftw_plan_dft_3d
    make.restype = ctypes.c_void_p
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
    how = (MEASURE,) if real else (FORWARD, MEASURE)
    plan = ctypes.c_void_p(make(*map(ctypes.c_int, x.shape), *arrays, *map(ctypes.c_int, how)))
    return partial(main.fftw_execute, plan)


def contenders(n, real, threads):
    """What is timed, by name, and the arrays that plans have overwritten."""
    x = np.empty((n, n, n), float if real else complex)
    y = np.empty((n, n, n // 2 + 1 if real else n), complex)
    functions = ("rfftn" if real else "fftn"), dict(workers=threads)
    plan = thriffty.Plan(x.shape, x.dtype, threads=threads)
    found = {
        "thriffty.Plan": partial(plan.forward, x, out=y),
        "thriffty functions": partial(getattr(thriffty, functions[0]), x, **functions[1]),
        "scipy.fft": partial(getattr(scipy.fft, functions[0]), x, **functions[1]),
        "FFTW threads": fftws(x, y, threads),
    }
    if pyfftw is not None:
        found["pyFFTW"] = pyfftw.FFTW(x, y, axes=(0, 1, 2), threads=threads).execute
    x[...] = np.random.default_rng(0).standard_normal(x.shape)
    expected = found["scipy.fft"]()
    for name, run in found.items():
        y[...] = 0
        result = run()
        result = y if result is None or name == "FFTW threads" else result
        error = np.linalg.norm((result - expected).ravel()) / np.linalg.norm(expected.ravel())
        assert error < 1e-14, (name, error)
    return found


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[256, 384])
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    model = next(
        line.split(":")[1].strip()
        for line in open("/proc/cpuinfo")
        if line.startswith("model name")
    )
    fftw = "none" if pyfftw is None else pyfftw.__version__
    print(f"{model}, {options.threads} threads, Python {platform.python_version()}, ", end="")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}, pyFFTW {fftw}")
    for n in options.sizes:
        for real in (False, True):
            found = contenders(n, real, options.threads)
            times = {name: [] for name in found}
            for _ in range(options.rounds):
                for name, run in found.items():
                    start = time.perf_counter()
                    run()
                    times[name].append(time.perf_counter() - start)
            medians = {name: float(np.median(seconds)) for name, seconds in times.items()}
            best = min(s for name, s in medians.items() if not name.startswith("thriffty"))
            print(f"{'r2c' if real else 'c2c'} {n}^3")
            for name, seconds in medians.items():
                print(
                    f"  {name:<20} {1e3 * seconds:9.1f} ms  {seconds / best:5.2f} of the best peer"
                )


if __name__ == "__main__":
    main()
