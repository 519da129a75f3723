"""Cosine and sine transforms with SciPy's names and arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._apply import apply
from ._functions import (
    Axes,
    Extent,
    Lengths,
    check,
    extent,
    give,
    integers,
    is_mine,
    number_type,
    one_axis,
    resized,
    signed_like,
    with_lengths,
)
from ._options import INVERSE_TYPES, argument

# By family and type: the points that are multiplied by the root of 2 before an orthogonal
# transform, and those that are divided by it afterwards.
ENDS: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("dct", 1): ((0, -1), (0, -1)),
    ("dct", 2): ((), (0,)),
    ("dct", 3): ((0,), ()),
    ("dst", 2): ((), (-1,)),
    ("dst", 3): ((-1,), ()),
}


@lru_cache(maxsize=4096)
def _extent(
    family: str,
    type: int,
    shape: tuple[int, ...],
    s: tuple[int, ...] | None,
    axes: tuple[int, ...] | None,
) -> Extent:
    if type not in INVERSE_TYPES:
        raise argument("type", type, "1 to 4")
    found = extent(shape, s, axes)
    least = 2 if (family, type) == ("dct", 1) else 1
    if any(n < least for n in found.lengths):
        expected = f"at least {least} along each axis"
        raise argument(f"points of {family} {type}", list(found.lengths), expected)
    return found


def _r2r(
    x: ArrayLike,
    family: str,
    inverse: bool,
    type: int,
    s: Lengths,
    axes: Axes,
    norm: str | None,
    overwrite_x: bool,
    workers: int | None,
    orthogonalize: bool | None,
    out: Any,
) -> np.ndarray:
    check(out)
    numbers = np.asarray(x)
    numbers = numbers.astype(number_type(numbers.dtype), copy=False)
    axes, lengths = _extent(family, type, numbers.shape, integers(s), integers(axes))
    numbers = resized(numbers, with_lengths(numbers.shape, axes, lengths))
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    ends = ENDS.get((family, INVERSE_TYPES[type] if inverse else type), ((), ()))
    before, after = ends if orthogonal else ((), ())
    mine = is_mine(numbers, x, overwrite_x)
    if before and not mine:
        numbers, mine = numbers.copy(), True
    _scale(numbers, axes, before, np.sqrt(2.0))
    kinds = tuple((axis, f"{family}{type}") for axis in axes)
    result = apply(numbers, kinds, inverse, norm, workers, mine)
    _scale(result, axes, after, np.sqrt(0.5))
    return give(result, out)


def _scale(x: np.ndarray, axes: tuple[int, ...], points: tuple[int, ...], factor: float) -> None:
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
    more = (norm, overwrite_x, workers, orthogonalize, out)
    return _r2r(x, "dct", False, type, s, axes, *more)


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
    more = (norm, overwrite_x, workers, orthogonalize, out)
    return _r2r(x, "dct", True, type, s, axes, *more)


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
    more = (norm, overwrite_x, workers, orthogonalize, out)
    return _r2r(x, "dst", False, type, s, axes, *more)


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
    more = (norm, overwrite_x, workers, orthogonalize, out)
    return _r2r(x, "dst", True, type, s, axes, *more)


@signed_like(dctn, s="n", axes="axis")
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """:func:`dctn` along one axis, of `n` points."""
    return dctn(x, type, *one_axis(n, axis), *more, **named)


@signed_like(idctn, s="n", axes="axis")
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """The inverse of :func:`dct`."""
    return idctn(x, type, *one_axis(n, axis), *more, **named)


@signed_like(dstn, s="n", axes="axis")
def dst(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """:func:`dstn` along one axis, of `n` points."""
    return dstn(x, type, *one_axis(n, axis), *more, **named)


@signed_like(idstn, s="n", axes="axis")
def idst(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> np.ndarray:
    """The inverse of :func:`dst`."""
    return idstn(x, type, *one_axis(n, axis), *more, **named)
