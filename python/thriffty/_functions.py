"""The functions of ``scipy.fft`` and ``numpy.fft``, with their names and arguments.

As in NumPy, `out` takes the result, and the array can be passed as `a`. `workers` is the number of
threads: -1 stands for the default, which is :func:`get_workers`, and -2 for one less. With
`overwrite_x` the result may take the memory of `x`. float16 becomes float32, and integers
become float64. Long doubles are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from operator import index
from typing import Any, Concatenate, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import _library
from ._apply import Items, apply
from ._options import COMPLEX, EXCHANGED, REAL, argument, known_norm
from ._wrappers import Function, P, named

Lengths = int | Sequence[int] | None
Axes = int | Sequence[int] | None


def integers(values: Lengths) -> tuple[int, ...] | None:
    """Lengths or axes as a tuple, or None."""
    if values is None:
        return None
    return tuple(map(index, values)) if hasattr(values, "__iter__") else (index(values),)


def number_type(dtype: np.dtype) -> np.dtype:
    """The type in which numbers are transformed: real or complex, of single or double precision."""
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype == np.float16:
        return np.dtype(np.float32)
    native = dtype.newbyteorder("=")
    if native.name not in COMPLEX and native.name not in REAL:
        expected = "integers, or floating-point numbers of at most 64 bits"
        raise TypeError(f"dtype of x: found {dtype}, expected {expected}")
    return native


class Extent(NamedTuple):
    """The transformed axes, and the number of points along each that are transformed."""

    axes: tuple[int, ...]
    lengths: tuple[int, ...]


def extent(
    shape: tuple[int, ...], s: tuple[int, ...] | None, axes: tuple[int, ...] | None
) -> Extent:
    """The axes and lengths for the arguments `s` and `axes`, for an array of this shape."""
    dimensions = len(shape)
    if axes is None:
        first = 0 if s is None else dimensions - len(s)
        if first < 0:
            raise argument("lengths", s, f"at most {dimensions}, one for each axis of x")
        axes = tuple(range(first, dimensions))
    elif dimensions == 0 and axes:
        raise argument("x", "a number", "an array with at least one axis")
    for axis in axes:
        if not -dimensions <= axis < dimensions:
            raise argument("axis", axis, f"{-dimensions} to {dimensions - 1}")
    axes = tuple(axis % dimensions for axis in axes)
    if len(set(axes)) != len(axes):
        raise argument("axes", list(axes), "each at most once")
    if s is None:
        s = (-1,) * len(axes)
    if len(s) != len(axes):
        raise argument("lengths", list(s), f"one for each of {len(axes)} axes")
    # As in NumPy, -1 keeps the length.
    lengths = tuple(shape[axis] if n == -1 else n for n, axis in zip(s, axes))
    if any(n < 1 for n in lengths):
        raise argument("points", list(lengths), "at least 1 along each axis")
    return Extent(axes, lengths)


class _Asked(NamedTuple):
    """A Fourier transform of arrays of one shape and type."""

    dtype: np.dtype
    # The shape that the array is cut or padded to.
    shape: tuple[int, ...]
    kinds: Items
    # For a real result, the number of points along its halved axis.
    length: int | None


@lru_cache(maxsize=4096)
def _asked(
    family: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    s: tuple[int, ...] | None,
    axes: tuple[int, ...] | None,
) -> _Asked:
    numbers = number_type(dtype)
    if family == "r2c" and numbers.kind == "c":
        raise TypeError(f"dtype of x: found {dtype}, expected real numbers")
    if family != "r2c" and numbers.kind != "c":
        numbers = np.dtype(COMPLEX[numbers.name])
    axes, lengths = extent(shape, s, axes)
    kinds, length = dict.fromkeys(axes, "c2c"), None
    if family != "c2c":
        if not axes:
            raise argument("axes", "none", "at least one")
        kinds[axes[-1]] = "r2c"
    if family == "c2r":
        length = 2 * (lengths[-1] - 1) if s is None else lengths[-1]
        if length < 1:
            raise argument("points along the halved axis", length, "at least 1")
        lengths = (*lengths[:-1], length // 2 + 1)
    return _Asked(numbers, with_lengths(shape, axes, lengths), tuple(kinds.items()), length)


def with_lengths(
    shape: Sequence[int], axes: Sequence[int], lengths: Sequence[int]
) -> tuple[int, ...]:
    """The shape with these lengths along some axes."""
    resized = list(shape)
    for axis, n in zip(axes, lengths):
        resized[axis] = n
    return tuple(resized)


def resized(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`x`, cut or padded with zeros at the end of each axis."""
    if shape == x.shape:
        return x
    both = tuple(slice(min(a, b)) for a, b in zip(x.shape, shape))
    if all(a >= b for a, b in zip(x.shape, shape)):
        return x[both]
    longer = np.zeros(shape, x.dtype)
    longer[both] = x[both]
    return longer


def is_mine(numbers: np.ndarray, given: Any, overwrite_x: bool) -> bool:
    """Whether the result may take the memory of `numbers`, which were made from the argument."""
    if overwrite_x:
        return numbers.flags.writeable
    return numbers is not given and not np.may_share_memory(numbers, np.asarray(given))


def check(out: Any, plan: Any = None) -> None:
    """Refuses values of `out` and `plan` that a call cannot use."""
    if plan is not None:
        raise NotImplementedError("plan: found a plan, expected None; see thriffty.Plan")
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"out: found {type(out).__name__}, expected an array of NumPy")


def give(result: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """The result, copied to `out` if there is one."""
    if out is None:
        return result
    if out.shape != result.shape or out.dtype != result.dtype:
        found, expected = ((a.shape, str(a.dtype)) for a in (out, result))
        raise argument("shape and dtype of out", found, expected)
    if out.ctypes.data != result.ctypes.data or out.strides != result.strides:
        out[...] = result
    return out


def one_axis(n: int | None, axis: int) -> tuple[tuple[int] | None, tuple[int]]:
    """The arguments for one axis, as arguments for several axes."""
    if n is not None and index(n) < 1:
        raise argument("n", n, "at least 1")
    return (None if n is None else (index(n),), (index(axis),))


def _fourier(
    function: Function,
    x: ArrayLike,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: Any = None,
    plan: Any = None,
) -> np.ndarray:
    """The transform of complex data along `axes`, by default all of them.

    Parameters
    ----------
    x : array_like
        Real data is made complex. You can also pass it by NumPy's name, `a`.
    s : sequence of int, optional
        Points along each of `axes`: `x` is cut, or padded with zeros at the end.
    axes : sequence of int, optional
        By default the last ``len(s)`` axes if `s` is given, and otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is divided by the number of points; "ortho" divides both by its root.
    overwrite_x : bool
        Whether the result may take the memory of `x`.
    workers : int, optional
        The number of threads, by default :func:`get_workers`.
    out : array, optional
        Takes the result.

    Returns
    -------
    array
        complex64 for single precision, otherwise complex128.

    Examples
    --------
    >>> import thriffty
    >>> thriffty.fftn([[1.0, 2.0], [3.0, 4.0]]).real.tolist()
    [[10.0, -2.0], [-4.0, 0.0]]
    """
    check(out, plan)
    numbers = np.asarray(x)
    family, inverse, conjugated = function.family, function.inverse, False
    if family == "hermitian":
        # The real transform of the other direction, of conjugate data.
        family, inverse, conjugated = "r2c", not inverse, True
        numbers = np.conj(numbers) if inverse else numbers
        norm = EXCHANGED[known_norm(norm)]
    if family == "r2c" and inverse:
        family = "c2r"
    asked = _asked(family, numbers.shape, numbers.dtype, integers(s), integers(axes))
    numbers = resized(numbers.astype(asked.dtype, copy=False), asked.shape)
    mine = family == "c2c" and is_mine(numbers, x, overwrite_x)
    result = apply(numbers, asked.kinds, inverse, norm, workers, mine, asked.length, out)
    if conjugated and not inverse:
        np.conj(result, out=result)
    return give(result, out)


def _fourier_along_one(
    function: Function,
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    out: Any = None,
    plan: Any = None,
) -> np.ndarray:
    s, axes = one_axis(n, axis)
    return _fourier(function, x, s, axes, norm, overwrite_x, workers, out=out, plan=plan)


def public(
    name: str, body: Callable[Concatenate[Function, P], np.ndarray], **defaults: Any
) -> Callable[..., np.ndarray]:
    """The function of this name. It also takes the array as `a`, which NumPy calls SciPy's `x`."""
    function = named(name, body, **defaults)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> np.ndarray:
        if "a" in kwargs:
            if args or "x" in kwargs:
                raise TypeError(f"{name}() got the array twice, as x and as a")
            kwargs["x"] = kwargs.pop("a")
        return function(*args, **kwargs)

    return call


fftn = public("fftn", _fourier)
ifftn = public("ifftn", _fourier)
rfftn = public("rfftn", _fourier)
irfftn = public("irfftn", _fourier)
hfftn = public("hfftn", _fourier)
ihfftn = public("ihfftn", _fourier)
fft2 = public("fft2", _fourier, axes=(-2, -1))
ifft2 = public("ifft2", _fourier, axes=(-2, -1))
rfft2 = public("rfft2", _fourier, axes=(-2, -1))
irfft2 = public("irfft2", _fourier, axes=(-2, -1))
hfft2 = public("hfft2", _fourier, axes=(-2, -1))
ihfft2 = public("ihfft2", _fourier, axes=(-2, -1))
fft = public("fft", _fourier_along_one)
ifft = public("ifft", _fourier_along_one)
rfft = public("rfft", _fourier_along_one)
irfft = public("irfft", _fourier_along_one)
hfft = public("hfft", _fourier_along_one)
ihfft = public("ihfft", _fourier_along_one)


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length of at least `target` points whose transform is fast.

    It is a product of powers of 2, 3 and 5. `real` is there as in SciPy and changes nothing,
    because real transforms are fast at the same lengths.
    """
    n = index(target)
    most = sys.maxsize
    if not 1 <= n <= most:
        raise argument("target", n, f"1 to {most}")
    return _library.serial().c.thriffty_next_fast_len(n)
