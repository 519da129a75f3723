"""A Poisson solver between walls on a stretched grid, beside SciPy: transforms and solve_banded.

    python benches/peers/walls.py [X Y Z [ROUNDS [THREADS]]]

Prints the seconds of both, by turns, the ratio of their medians, and the largest difference.
"""

import sys
from statistics import median
from time import perf_counter

import numpy as np
import scipy.fft
from scipy.linalg import solve_banded

import thriffty


def coefficients(faces):
    """The second derivative at cells, without a slope at the walls."""
    width, centres = np.diff(faces), (faces[1:] + faces[:-1]) / 2
    lower, upper = np.zeros(len(width)), np.zeros(len(width))
    lower[1:] = 1 / (np.diff(centres) * width[1:])
    upper[:-1] = 1 / (np.diff(centres) * width[:-1])
    return lower, -(lower + upper), upper


def by_scipy(rho, rows, threads):
    """Solves -laplacian(phi) = rho with spacing 1 along the first two axes, which are periodic."""
    nx, ny, _ = rho.shape
    hat = scipy.fft.rfftn(rho, axes=(0, 1), workers=threads)
    kx, ky = (2 * np.sin(np.pi * np.arange(n) / n) for n in (nx, ny))
    lower, diagonal, upper = rows
    bands = np.zeros((3, len(diagonal)))
    bands[0, 1:], bands[2, :-1] = -upper[:-1], -lower[1:]
    for i in range(hat.shape[0]):
        for j in range(hat.shape[1]):
            bands[1] = kx[i] ** 2 + ky[j] ** 2 - diagonal
            if i + j == 0:
                # Holds the first point, which takes the mean away from the rest.
                bands[1, 0] *= 2
            hat[i, j] = solve_banded((1, 1), bands, hat[i, j])
    return scipy.fft.irfftn(hat, s=(nx, ny), axes=(0, 1), workers=threads)


def main():
    given = [int(word) for word in sys.argv[1:]]
    shape = tuple(given[:3]) or (256, 256, 192)
    rounds, threads = (*given[3:], *(3, 1)[max(len(given) - 3, 0) :])
    place = np.linspace(-1.5, 1.5, shape[2] + 1)
    faces = shape[2] * (1 + np.tanh(place) / np.tanh(1.5)) / 2
    rho = np.random.default_rng(1).standard_normal(shape)
    width = np.diff(faces) / faces[-1]
    rho -= np.mean(rho @ width)
    rows, times = coefficients(faces), ([], [])
    with thriffty.Plan(
        shape, float, kinds=("periodic", "periodic", "tridiagonal"), threads=threads
    ) as plan:
        plan.set_schemes("staggered2")
        plan.set_stretched("neumann", faces)
        for _ in range(rounds):
            start = perf_counter()
            phi = plan.inverse(plan.apply("poisson", plan.forward(rho), shape))
            middle = perf_counter()
            expected = by_scipy(rho, rows, threads)
            times[0].append(middle - start)
            times[1].append(perf_counter() - middle)
    expected -= np.mean(expected @ width)
    ours, theirs = map(median, times)
    print(f"thriffty {ours:.3f} s, SciPy {theirs:.3f} s, ratio {ours / theirs:.3f}")
    difference = abs(phi - expected).max() / abs(expected).max()
    print(f"largest difference {difference:.1e} of the largest value")


if __name__ == "__main__":
    main()
