"""Random problems, and their transforms by SciPy."""

import os
from dataclasses import dataclass

import numpy as np
import scipy.fft
from hypothesis import settings
from hypothesis import strategies as st

FAMILIES = ["c2c", "r2c", "r2r"]
COSINES = [f"{family}{type}" for family in ("dct", "dst") for type in (1, 2, 3, 4)]
# The relative error in the l2 norm, forward and back.
TOLERANCE = {"float32": 2e-6, "complex64": 2e-6, "float64": 4e-15, "complex128": 4e-15}
LETTERS = {"float32": "complex64", "float64": "complex128"}


def cases(number):
    """Runs `number` random cases, or `THRIFFTY_CASES` if set. They are the same on every rank."""
    number = int(os.environ.get("THRIFFTY_CASES", number))
    return settings(max_examples=number, deadline=None, derandomize=True, database=None)


@dataclass
class Problem:
    """Arguments of a plan."""

    shape: tuple
    dtype: str
    kinds: tuple
    norm: str
    batch: int
    order: tuple

    def arguments(self):
        named = vars(self).copy()
        named["input_order"], named["output_order"] = named.pop("order")
        return named

    def spectral(self):
        """The shape of the spectral grid."""
        return tuple(n // 2 + 1 if k == "r2c" else n for n, k in zip(self.shape, self.kinds))


@st.composite
def problems(draw, most=8):
    """Problems with 1 to 4 axes, and any kinds, norms and orders."""
    family = draw(st.sampled_from(FAMILIES))
    single = draw(st.booleans())
    real = "float32" if single else "float64"
    axes = draw(st.integers(1, 4))
    some = [*(["c2c"] * 8 if family != "r2r" else []), *COSINES, "none"]
    kinds = [draw(st.sampled_from(some)) for _ in range(axes)]
    if family == "r2c":
        kinds[draw(st.integers(0, axes - 1))] = "r2c"
    least = [2 if kind == "dct1" else 1 for kind in kinds]
    shape = tuple(draw(st.integers(n, most)) for n in least)
    orders = tuple(tuple(draw(st.permutations(range(axes)))) for _ in range(2))
    return Problem(
        shape,
        LETTERS[real] if family == "c2c" else real,
        tuple(kinds),
        draw(st.sampled_from(["backward", "ortho", "forward"])),
        draw(st.sampled_from([1, 1, 2, 3])),
        orders,
    )


def field(problem, seed):
    """Random numbers on the whole grid, with an axis for the batch if it has several arrays."""
    rng = np.random.default_rng(seed)
    batches = (problem.batch,) if problem.batch > 1 else ()
    shape = batches + problem.shape
    x = rng.standard_normal(shape)
    if problem.dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(problem.dtype)


def transformed(problem, x):
    """The spectrum of the whole grid."""
    first = x.ndim - len(problem.shape)
    kinds = {first + axis: kind for axis, kind in enumerate(problem.kinds)}
    for axis in sorted(kinds, key=lambda axis: kinds[axis] != "r2c"):
        kind = kinds[axis]
        if kind == "r2c":
            x = scipy.fft.rfft(x, axis=axis, norm=problem.norm)
        elif kind == "c2c":
            x = scipy.fft.fft(x, axis=axis, norm=problem.norm)
        elif kind != "none":
            # The library does not make cosine transforms orthogonal.
            function, type = getattr(scipy.fft, kind[:3]), int(kind[3])
            how = dict(type=type, axis=axis, norm=problem.norm, orthogonalize=False)
            # SciPy ignores `orthogonalize` for complex data.
            parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
            parts = [function(part, **how) for part in parts]
            x = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    return x


def distance(found, expected):
    """The largest difference relative to the root mean square."""
    if expected.size == 0:
        return 0.0
    scale = np.sqrt(np.mean(np.abs(expected) ** 2))
    return float(np.linalg.norm(found - expected) / np.sqrt(expected.size) / max(scale, 1e-300))
