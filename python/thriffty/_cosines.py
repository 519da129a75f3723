"""Cosine and sine transforms with SciPy's names and arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

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
    public,
    resized,
    with_lengths,
)
from ._options import INVERSE_TYPES, argument
from ._wrappers import Function


class Ends(NamedTuple):
    """What makes a cosine or sine transform orthogonal, up to a factor."""

    # The points that are multiplied by the root of 2 before the transform.
    before: tuple[int, ...] = ()
    # The points that are divided by it afterwards.
    after: tuple[int, ...] = ()


_ENDS = {
    ("dct", 1): Ends((0, -1), (0, -1)),
    ("dct", 2): Ends((), (0,)),
    ("dct", 3): Ends((0,), ()),
    ("dst", 2): Ends((), (-1,)),
    ("dst", 3): Ends((-1,), ()),
}


def ends(family: str, type: int, inverse: bool) -> Ends:
    """The points at the ends of an axis that an orthogonal transform scales."""
    return _ENDS.get((family, INVERSE_TYPES[type] if inverse else type), Ends())


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
    function: Function,
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
    """The cosine transform of type 1 to 4 along `axes`.

    Parameters
    ----------
    x : array_like
        Real or complex.
    type : int
        The type, 2 by default.
    orthogonalize : bool, optional
        Whether to scale the first or last points such that the transform is orthogonal up to a
        factor; by default only with ``norm="ortho"``.

    The other arguments are the same as for :func:`fftn`.
    """
    check(out)
    family, inverse = function
    numbers = np.asarray(x)
    numbers = numbers.astype(number_type(numbers.dtype), copy=False)
    axes, lengths = _extent(family, type, numbers.shape, integers(s), integers(axes))
    numbers = resized(numbers, with_lengths(numbers.shape, axes, lengths))
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    before, after = ends(family, type, inverse) if orthogonal else Ends()
    mine = is_mine(numbers, x, overwrite_x)
    if before and not mine:
        numbers, mine = numbers.copy(), True
    _scale(numbers, axes, before, np.sqrt(2.0))
    kinds = tuple((axis, f"{family}{type}") for axis in axes)
    result = apply(numbers, kinds, inverse, norm, workers, mine)
    _scale(result, axes, after, np.sqrt(0.5))
    return give(result, out)


def _r2r_along_one(
    function: Function,
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
    out: Any = None,
) -> np.ndarray:
    s, axes = one_axis(n, axis)
    named = {"orthogonalize": orthogonalize, "out": out}
    return _r2r(function, x, type, s, axes, norm, overwrite_x, workers, **named)


def _scale(x: np.ndarray, axes: tuple[int, ...], points: tuple[int, ...], factor: float) -> None:
    for axis in axes:
        for point in points:
            x[(slice(None),) * axis + (point,)] *= factor


dctn = public("dctn", _r2r)
idctn = public("idctn", _r2r)
dstn = public("dstn", _r2r)
idstn = public("idstn", _r2r)
dct = public("dct", _r2r_along_one)
idct = public("idct", _r2r_along_one)
dst = public("dst", _r2r_along_one)
idst = public("idst", _r2r_along_one)
