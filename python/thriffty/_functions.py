"""The names and arguments of ``scipy.fft`` and ``numpy.fft``, for arrays of one process.

Beyond those, `out` takes the result, as in NumPy. `workers` is the number of threads: all cores by
default (see :func:`set_workers`), -1 for all, -2 for all but one. With `overwrite_x` the result may
take the memory of `x`. float16, integers and lists become float32 or float64; long doubles are
refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._apply import apply
from ._options import COMPLEX, REAL, argument, known_norm

Lengths = int | Sequence[int] | None
Axes = int | Sequence[int] | None

_NATIVE = {np.dtype(name) for name in (*COMPLEX, *REAL)}
_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


class _Call:
    """The arguments that all transforms share."""

    def __init__(self, norm: str | None, workers: int | None, out: Any, plan: Any = None) -> None:
        if plan is not None:
            raise NotImplementedError("plan: found a plan, expected None; see thriffty.Plan")
        self.norm, self.workers, self.out = norm, workers, out

    def run(self, x: np.ndarray, kinds: dict[int, str], inverse: bool, **more: Any) -> np.ndarray:
        """Transforms, and returns the result or `out` with the result."""
        return self.give(apply(x, kinds, inverse, self.norm, self.workers, out=self.out, **more))

    def give(self, result: np.ndarray) -> np.ndarray:
        if self.out is None:
            return result
        if self.out.shape != result.shape or self.out.dtype != result.dtype:
            found, expected = ((a.shape, str(a.dtype)) for a in (self.out, result))
            raise argument("shape and dtype of out", found, expected)
        if not _is_same(self.out, result):
            self.out[...] = result
        return self.out


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.ctypes.data == b.ctypes.data and a.strides == b.strides


def _numbers(x: ArrayLike) -> np.ndarray:
    """`x` in single or double precision, real or complex."""
    x = np.asarray(x)
    if x.dtype in _NATIVE:
        return x
    if x.dtype.kind in "biu":
        return x.astype(np.float64)
    if x.dtype == np.float16:
        return x.astype(np.float32)
    native = x.dtype.newbyteorder("=")
    if native.name not in COMPLEX and native.name not in REAL:
        expected = "integers, or floating-point numbers of at most 64 bits"
        raise TypeError(f"dtype of x: found {x.dtype}, expected {expected}")
    return x.astype(native, copy=False)


def _complex(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind == "c" else x.astype(COMPLEX[x.dtype.name])


def _real(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        raise TypeError(f"dtype of x: found {x.dtype}, expected real numbers")
    return x


def _integers(values: int | Sequence[int]) -> list[int]:
    values = values if hasattr(values, "__iter__") else (values,)
    return [index(value) for value in values]


def _axes(x: np.ndarray, lengths: Lengths, axes: Axes) -> tuple[list[int], list[int]]:
    """The transformed axes, and the number of points along each that are transformed."""
    s = None if lengths is None else _integers(lengths)
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = _integers(axes)
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise argument("axis", axis, f"{-x.ndim} to {x.ndim - 1}")
    axes = [axis % x.ndim for axis in axes]
    if len(set(axes)) != len(axes):
        raise argument("axes", axes, "each at most once")
    s = [x.shape[axis] for axis in axes] if s is None else s
    if len(s) != len(axes):
        raise argument("lengths", s, f"one for each of {len(axes)} axes")
    # As in NumPy, -1 is the length that there is.
    s = [x.shape[axis] if n == -1 else n for n, axis in zip(s, axes)]
    if any(n < 1 for n in s):
        raise argument("points", s, "at least 1 along each axis")
    return axes, s


def _resized(x: np.ndarray, axes: Sequence[int], lengths: Sequence[int]) -> np.ndarray:
    """The beginning of `x` along some axes, or `x` with zeros behind it."""
    shape = list(x.shape)
    for axis, n in zip(axes, lengths):
        shape[axis] = n
    if tuple(shape) == x.shape:
        return x
    both = tuple(slice(min(a, b)) for a, b in zip(x.shape, shape))
    if all(a >= b for a, b in zip(x.shape, shape)):
        return x[both]
    longer = np.zeros(shape, x.dtype)
    longer[both] = x[both]
    return longer


def _is_mine(x: np.ndarray, given: Any, overwrite_x: bool) -> bool:
    """Whether the memory of `x` may be used for the result."""
    if overwrite_x:
        return x.flags.writeable
    return x is not given and not np.may_share_memory(x, np.asarray(given))


def _c2c(x: Any, s: Lengths, axes: Axes, overwrite_x: bool, inverse: bool, call: _Call) -> Any:
    numbers = _complex(_numbers(x))
    axes, lengths = _axes(numbers, s, axes)
    numbers = _resized(numbers, axes, lengths)
    mine = _is_mine(numbers, x, overwrite_x)
    return call.run(numbers, dict.fromkeys(axes, "c2c"), inverse, mine=mine)


def _halved(axes: Sequence[int]) -> dict[int, str]:
    return {**dict.fromkeys(axes[:-1], "c2c"), axes[-1]: "r2c"}


def _r2c(x: Any, s: Lengths, axes: Axes, call: _Call) -> Any:
    numbers = _real(_numbers(x))
    axes, lengths = _axes(numbers, s, axes)
    if not axes:
        raise argument("axes", "none", "at least one")
    return call.run(_resized(numbers, axes, lengths), _halved(axes), False)


def _c2r(x: Any, s: Lengths, axes: Axes, call: _Call) -> Any:
    numbers = _complex(_numbers(x))
    axes, lengths = _axes(numbers, s, axes)
    if not axes:
        raise argument("axes", "none", "at least one")
    asked = None if s is None else _integers(s)[-1]
    length = 2 * (numbers.shape[axes[-1]] - 1) if asked in (None, -1) else asked
    if length < 1:
        raise argument("points along the halved axis", length, "at least 1")
    numbers = _resized(numbers, axes, [*lengths[:-1], length // 2 + 1])
    return call.run(numbers, _halved(axes), True, length=length)


def _one(n: int | None, axis: int) -> tuple[list[int] | None, list[int]]:
    """The arguments of one axis as those of several."""
    if n is not None and index(n) < 1:
        raise argument("n", n, "at least 1")
    return (None if n is None else [index(n)], [index(axis)])


def _signed_like(
    base: Callable[..., np.ndarray], **others: str
) -> Callable[[Callable[..., np.ndarray]], Callable[..., np.ndarray]]:
    """Shows the arguments of `base`; `others` says which names have others in their place."""

    def sign(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        signature, own = inspect.signature(base), inspect.signature(function).parameters
        named = signature.parameters.items()
        shown = [own.get(others.get(name, name), of_base) for name, of_base in named]
        function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return sign


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
        Real data is made complex.
    s : sequence of int, optional
        Points along each of `axes`: `x` is cut, or zeros follow it.
    axes : sequence of int, optional
        The last ``len(s)`` with `s`, otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is scaled by the number of points, or both by its root.
    overwrite_x : bool
        The result may take the memory of `x`.
    workers : int, optional
        Threads; all cores by default.
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
    return _c2c(x, s, axes, overwrite_x, False, _Call(norm, workers, out, plan))


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
    return _c2c(x, s, axes, overwrite_x, True, _Call(norm, workers, out, plan))


@_signed_like(fftn)
def fft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`fftn` along the last two axes by default."""
    return fftn(x, s, axes, *more, **named)


@_signed_like(ifftn)
def ifft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`ifftn` along the last two axes by default."""
    return ifftn(x, s, axes, *more, **named)


@_signed_like(fftn, s="n", axes="axis")
def fft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`fftn` along one axis, of `n` points."""
    return fftn(x, *_one(n, axis), *more, **named)


@_signed_like(ifftn, s="n", axes="axis")
def ifft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`ifftn` along one axis, of `n` points."""
    return ifftn(x, *_one(n, axis), *more, **named)


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
    return _r2c(x, s, axes, _Call(norm, workers, out, plan))


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
    return _c2r(x, s, axes, _Call(norm, workers, out, plan))


@_signed_like(rfftn)
def rfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`rfftn` along the last two axes by default."""
    return rfftn(x, s, axes, *more, **named)


@_signed_like(irfftn)
def irfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`irfftn` along the last two axes by default."""
    return irfftn(x, s, axes, *more, **named)


@_signed_like(rfftn, s="n", axes="axis")
def rfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`rfftn` along one axis, of `n` points."""
    return rfftn(x, *_one(n, axis), *more, **named)


@_signed_like(irfftn, s="n", axes="axis")
def irfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`irfftn` along one axis, of `n` points."""
    return irfftn(x, *_one(n, axis), *more, **named)


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
    call = _Call(_swapped(norm), workers, out, plan)
    return _c2r(np.conj(_numbers(x)), s, axes, call)


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
    call = _Call(_swapped(norm), workers, None, plan)
    spectrum = _r2c(x, s, axes, call)
    call.out = out
    return call.give(np.conj(spectrum, out=spectrum))


def _swapped(norm: str | None) -> str:
    return _SWAPPED[known_norm(norm)]


@_signed_like(hfftn)
def hfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`hfftn` along the last two axes by default."""
    return hfftn(x, s, axes, *more, **named)


@_signed_like(ihfftn)
def ihfft2(x: ArrayLike, s: Lengths = None, axes: Axes = (-2, -1), *more: Any, **named: Any) -> Any:
    """:func:`ihfftn` along the last two axes by default."""
    return ihfftn(x, s, axes, *more, **named)


@_signed_like(hfftn, s="n", axes="axis")
def hfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`hfftn` along one axis, of `n` points."""
    return hfftn(x, *_one(n, axis), *more, **named)


@_signed_like(ihfftn, s="n", axes="axis")
def ihfft(x: ArrayLike, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Any:
    """:func:`ihfftn` along one axis, of `n` points."""
    return ihfftn(x, *_one(n, axis), *more, **named)


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
