"""Cosine and sine transforms with SciPy's names and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._apply import apply
from ._functions import (
    Axes,
    Lengths,
    _axes,
    _Call,
    _is_mine,
    _numbers,
    _one,
    _resized,
    _signed_like,
)
from ._options import INVERSE_TYPES, argument

# By family and type: the points that are multiplied by the root of 2 before an orthogonal
# transform, and those that are divided by it afterwards.
_ENDS: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("dct", 1): ((0, -1), (0, -1)),
    ("dct", 2): ((), (0,)),
    ("dct", 3): ((0,), ()),
    ("dst", 2): ((), (-1,)),
    ("dst", 3): ((-1,), ()),
}


def _r2r(
    x: ArrayLike,
    family: str,
    inverse: bool,
    type: int,
    s: Lengths,
    axes: Axes,
    overwrite_x: bool,
    orthogonalize: bool | None,
    call: _Call,
) -> np.ndarray:
    if type not in INVERSE_TYPES:
        raise argument("type", type, "1 to 4")
    numbers = _numbers(x)
    axes, lengths = _axes(numbers, s, axes)
    numbers = _resized(numbers, axes, lengths)
    least = 2 if (family, type) == ("dct", 1) else 1
    if any(n < least for n in lengths):
        raise argument(f"points of {family} {type}", lengths, f"at least {least} along each axis")
    orthogonal = call.norm == "ortho" if orthogonalize is None else orthogonalize
    ends = _ENDS.get((family, INVERSE_TYPES[type] if inverse else type), ((), ()))
    before, after = ends if orthogonal else ((), ())
    mine = _is_mine(numbers, x, overwrite_x)
    if before and not mine:
        numbers, mine = numbers.copy(), True
    _scale(numbers, axes, before, np.sqrt(2.0))
    kinds = dict.fromkeys(axes, f"{family}{type}")
    result = apply(numbers, kinds, inverse, call.norm, call.workers, mine)
    _scale(result, axes, after, np.sqrt(0.5))
    return call.give(result)


def _scale(x: np.ndarray, axes: list[int], points: tuple[int, ...], factor: float) -> None:
    for axis in axes:
        for point in points:
            x[(slice(None),) * axis + (point,)] *= factor


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
    out: Any = None,
) -> np.ndarray:
    """The cosine transform of one of the types 1 to 4 along `axes`.

    Parameters
    ----------
    x : array_like
        Real or complex.
    type : int
        2 by default.
    orthogonalize : bool, optional
        The first or last points are scaled such that the transform is orthogonal up to a factor;
        by default with ``norm="ortho"``.

    Other arguments are those of :func:`fftn`.
    """
    call = _Call(norm, workers, out)
    return _r2r(x, "dct", False, type, s, axes, overwrite_x, orthogonalize, call)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
    out: Any = None,
) -> np.ndarray:
    """The inverse of :func:`dctn`."""
    call = _Call(norm, workers, out)
    return _r2r(x, "dct", True, type, s, axes, overwrite_x, orthogonalize, call)


def dstn(
    x: ArrayLike,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
    out: Any = None,
) -> np.ndarray:
    """The sine transform of one of the types 1 to 4 along `axes`; arguments as of :func:`dctn`."""
    call = _Call(norm, workers, out)
    return _r2r(x, "dst", False, type, s, axes, overwrite_x, orthogonalize, call)


def idstn(
    x: ArrayLike,
    type: int = 2,
    s: Lengths = None,
    axes: Axes = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
    out: Any = None,
) -> np.ndarray:
    """The inverse of :func:`dstn`."""
    call = _Call(norm, workers, out)
    return _r2r(x, "dst", True, type, s, axes, overwrite_x, orthogonalize, call)


@_signed_like(dctn, s="n", axes="axis")
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """:func:`dctn` along one axis, of `n` points."""
    return dctn(x, type, *_one(n, axis), *more, **named)


@_signed_like(idctn, s="n", axes="axis")
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """The inverse of :func:`dct`."""
    return idctn(x, type, *_one(n, axis), *more, **named)


@_signed_like(dstn, s="n", axes="axis")
def dst(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """:func:`dstn` along one axis, of `n` points."""
    return dstn(x, type, *_one(n, axis), *more, **named)


@_signed_like(idstn, s="n", axes="axis")
def idst(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """The inverse of :func:`dst`."""
    return idstn(x, type, *_one(n, axis), *more, **named)
