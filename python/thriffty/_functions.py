"""The names and arguments of ``scipy.fft`` and ``numpy.fft``, for arrays of one process.

Beyond those, `out` takes the result, as in NumPy, whose name `a` for the array works as well.
`workers` is the number of threads: by default :func:`get_workers`, -1 is the same and -2 one less.
With `overwrite_x` the result may take the memory of `x`. float16, integers and lists become float32
or float64; long doubles are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._apply import Items, apply
from ._options import COMPLEX, REAL, argument, known_norm

Lengths = int | Sequence[int] | None
Axes = int | Sequence[int] | None

_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def integers(values: Lengths) -> tuple[int, ...] | None:
    """Lengths or axes as a tuple, or None."""
    if values is None:
        return None
    return tuple(map(index, values)) if hasattr(values, "__iter__") else (index(values),)


def number_type(dtype: np.dtype) -> np.dtype:
    """The single or double precision, real or complex, in which numbers are transformed."""
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
    """What `s` and `axes` mean for an array of this shape."""
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
    # As in NumPy, -1 is the length that there is.
    lengths = tuple(shape[axis] if n == -1 else n for n, axis in zip(s, axes))
    if any(n < 1 for n in lengths):
        raise argument("points", list(lengths), "at least 1 along each axis")
    return Extent(axes, lengths)


class _Asked(NamedTuple):
    """What a Fourier transform does with an array of some shape and type."""

    dtype: np.dtype
    # The shape that the array is cut or padded to.
    shape: tuple[int, ...]
    kinds: Items
    # Of a real result, the points along its halved axis.
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
    shape: tuple[int, ...], axes: tuple[int, ...], lengths: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape with these lengths along some axes."""
    resized = list(shape)
    for axis, n in zip(axes, lengths):
        resized[axis] = n
    return tuple(resized)


def resized(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The beginning of `x` along some axes, or `x` with zeros after it."""
    if shape == x.shape:
        return x
    both = tuple(slice(min(a, b)) for a, b in zip(x.shape, shape))
    if all(a >= b for a, b in zip(x.shape, shape)):
        return x[both]
    longer = np.zeros(shape, x.dtype)
    longer[both] = x[both]
    return longer


def is_mine(numbers: np.ndarray, given: Any, overwrite_x: bool) -> bool:
    """Whether the memory of `numbers`, made from the argument, may be used for the result."""
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
    """The result, or `out` with it."""
    if out is None:
        return result
    if out.shape != result.shape or out.dtype != result.dtype:
        found, expected = ((a.shape, str(a.dtype)) for a in (out, result))
        raise argument("shape and dtype of out", found, expected)
    if out.ctypes.data != result.ctypes.data or out.strides != result.strides:
        out[...] = result
    return out


def _fourier(
    family: str,
    inverse: bool,
    x: Any,
    s: Lengths,
    axes: Axes,
    norm: str | None,
    workers: int | None,
    out: Any,
    plan: Any,
    overwrite_x: bool = False,
) -> np.ndarray:
    check(out, plan)
    numbers = np.asarray(x)
    asked = _asked(family, numbers.shape, numbers.dtype, integers(s), integers(axes))
    numbers = resized(numbers.astype(asked.dtype, copy=False), asked.shape)
    mine = family == "c2c" and is_mine(numbers, x, overwrite_x)
    result = apply(numbers, asked.kinds, inverse, norm, workers, mine, asked.length, out)
    return give(result, out)


def one_axis(n: int | None, axis: int) -> tuple[tuple[int] | None, tuple[int]]:
    """The arguments of one axis as those of several."""
    if n is not None and index(n) < 1:
        raise argument("n", n, "at least 1")
    return (None if n is None else (index(n),), (index(axis),))


def named_as_numpy(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Takes the array as `a`, too: NumPy's name for what SciPy calls `x`."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> np.ndarray:
        if "a" in named:
            if args or "x" in named:
                raise TypeError(f"{function.__name__}() got the array twice, as x and as a")
            named["x"] = named.pop("a")
        return function(*args, **named)

    return call


def signed_like(
    base: Callable[..., np.ndarray], **others: str
) -> Callable[[Callable[..., np.ndarray]], Callable[..., np.ndarray]]:
    """Shows the arguments of `base`; `others` says which names have others in their place."""

    def sign(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        signature, own = inspect.signature(base), inspect.signature(function).parameters
        named = signature.parameters.items()
        shown = [own.get(others.get(name, name), of_base) for name, of_base in named]
        call = named_as_numpy(function)
        call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        return call

    return sign


@named_as_numpy
def fftn(
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
    """The transform of complex data along `axes`, all by default.

    Parameters
    ----------
    x : array_like
        Real data is made complex. NumPy's name for it, `a`, is taken as well.
    s : sequence of int, optional
        Points along each of `axes`: `x` is cut, or zeros follow it.
    axes : sequence of int, optional
        The last ``len(s)`` with `s`, otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is scaled by the number of points, or both by its root.
    overwrite_x : bool
        The result may take the memory of `x`.
    workers : int, optional
        Threads; :func:`get_workers` says how many by default.
    out : array, optional
        For the result.

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
    return _fourier("c2c", False, x, s, axes, norm, workers, out, plan, overwrite_x)


@named_as_numpy
def ifftn(
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
    """The inverse of :func:`fftn`."""
    return _fourier("c2c", True, x, s, axes, norm, workers, out, plan, overwrite_x)


@signed_like(fftn)
def fft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`fftn` along the last two axes by default."""
    return fftn(x, s, axes, *more, **named)


@signed_like(ifftn)
def ifft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`ifftn` along the last two axes by default."""
    return ifftn(x, s, axes, *more, **named)


@signed_like(fftn, s="n", axes="axis")
def fft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`fftn` along one axis, of `n` points."""
    return fftn(x, *one_axis(n, axis), *more, **named)


@signed_like(ifftn, s="n", axes="axis")
def ifft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`ifftn` along one axis, of `n` points."""
    return ifftn(x, *one_axis(n, axis), *more, **named)


@named_as_numpy
def rfftn(
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
    """The transform of real data; the last of `axes` has ``n // 2 + 1`` frequencies.

    Arguments are those of :func:`fftn`.
    """
    return _fourier("r2c", False, x, s, axes, norm, workers, out, plan)


@named_as_numpy
def irfftn(
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
    """The inverse of :func:`rfftn`.

    `s` has the points of the result; without it, the last of `axes` has ``2 * (m - 1)`` for `m`
    frequencies.
    """
    return _fourier("c2r", True, x, s, axes, norm, workers, out, plan)


@signed_like(rfftn)
def rfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`rfftn` along the last two axes by default."""
    return rfftn(x, s, axes, *more, **named)


@signed_like(irfftn)
def irfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`irfftn` along the last two axes by default."""
    return irfftn(x, s, axes, *more, **named)


@signed_like(rfftn, s="n", axes="axis")
def rfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`rfftn` along one axis, of `n` points."""
    return rfftn(x, *one_axis(n, axis), *more, **named)


@signed_like(irfftn, s="n", axes="axis")
def irfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`irfftn` along one axis, of `n` points."""
    return irfftn(x, *one_axis(n, axis), *more, **named)


@named_as_numpy
def hfftn(
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
    """The real transform of data with Hermitian symmetry, of which the first half is given."""
    conjugate = np.conj(np.asarray(x))
    return _fourier("c2r", True, conjugate, s, axes, _swapped(norm), workers, out, plan)


@named_as_numpy
def ihfftn(
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
    """The inverse of :func:`hfftn`."""
    check(out)
    spectrum = _fourier("r2c", False, x, s, axes, _swapped(norm), workers, None, plan)
    return give(np.conj(spectrum, out=spectrum), out)


def _swapped(norm: str | None) -> str:
    return _SWAPPED[known_norm(norm)]


@signed_like(hfftn)
def hfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`hfftn` along the last two axes by default."""
    return hfftn(x, s, axes, *more, **named)


@signed_like(ihfftn)
def ihfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`ihfftn` along the last two axes by default."""
    return ihfftn(x, s, axes, *more, **named)


@signed_like(hfftn, s="n", axes="axis")
def hfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`hfftn` along one axis, of `n` points."""
    return hfftn(x, *one_axis(n, axis), *more, **named)


@signed_like(ihfftn, s="n", axes="axis")
def ihfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`ihfftn` along one axis, of `n` points."""
    return ihfftn(x, *one_axis(n, axis), *more, **named)


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length, from `target` on, without a prime factor beyond 11.

    Real transforms are fast at the same lengths: `real` is there as in SciPy.
    """
    n = index(target)
    if n < 1:
        raise argument("target", n, "at least 1")
    # Products of odd primes, each doubled until it is long enough.
    products = [1]
    for prime in (3, 5, 7, 11):
        for product in products:
            if product * prime < 2 * n:
                products.append(product * prime)
    return min(product << max(0, (-(-n // product) - 1).bit_length()) for product in products)
