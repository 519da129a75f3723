"""Transforms of torch's and JAX's arrays: their arguments, and the plans that compute them.

A plan has at most four axes, after those that count arrays of its batch. If an array has more, some
of its axes are transformed after the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ._apply import _joined, _parts
from ._cosines import ends
from ._functions import Axes, Lengths, extent, integers, with_lengths
from ._options import INVERSE_TYPES, argument, known_norm
from ._wrappers import Function

Shape = tuple[int, ...]
Array = TypeVar("Array", bound=Any)
# How an array and its transform are distributed.
Where = TypeVar("Where")


class Arrays(ABC, Generic[Array, Where]):
    """Transforms of a library's arrays, made of a few functions that the library must supply."""

    # What the functions of the library call an array.
    name: str

    @abstractmethod
    def numbers(self, x: Any) -> Array:
        """Converts to numbers of single or double precision, real or complex."""

    @abstractmethod
    def is_complex(self, x: Array) -> bool:
        """Whether the numbers are complex."""

    @abstractmethod
    def as_complex(self, x: Array) -> Array:
        """Converts real numbers to complex ones."""

    @abstractmethod
    def resized(self, x: Array, axes: Shape, lengths: Shape) -> Array:
        """Cuts each of the axes to a length, or pads it with zeros at the end."""

    @abstractmethod
    def scaled(self, x: Array, axis: int, points: Shape, factor: float) -> Array:
        """Multiplies some points along an axis by a factor."""

    @abstractmethod
    def transformed(
        self, x: Array, transform: Transform, inverse: bool, norm: str, where: Where
    ) -> Array:
        """Resizes and transforms an array."""

    def fourier(
        self,
        function: Function,
        x: Any,
        s: Lengths,
        axes: Axes,
        norm: str | None,
        modes: Lengths,
        where: Where,
    ) -> Array:
        """The body of the functions that :func:`named` makes for Fourier transforms."""
        last, inverse = function
        x = self.numbers(x)
        is_complex = self.is_complex(x)
        if last == "r2c" and not inverse:
            if is_complex:
                raise argument(f"dtype of {self.name}", x.dtype, "real numbers")
        elif not is_complex:
            x = self.as_complex(x)
        transform = fourier(tuple(x.shape), last, inverse, s, axes, modes)
        return self.transformed(x, transform, inverse, known_norm(norm), where)

    def cosines(
        self,
        function: Function,
        x: Any,
        type: int,
        s: Lengths,
        axes: Axes,
        norm: str | None,
        where: Where,
    ) -> Array:
        """The body of the functions that :func:`named` makes for cosine and sine transforms."""
        family, inverse = function
        x = self.numbers(x)
        transform = cosines(tuple(x.shape), family, type, s, axes)
        norm = known_norm(norm)
        if norm != "ortho":
            return self.transformed(x, transform, inverse, norm, where)
        # Factors at the ends of each axis make the transforms orthogonal.
        before, after = ends(family, type, inverse)
        x = self.resized(x, transform.axes, transform.points)
        if before:
            for axis in transform.axes:
                x = self.scaled(x, axis, before, 2.0**0.5)
        x = self.transformed(x, transform, inverse, norm, where)
        if after:
            for axis in transform.axes:
                x = self.scaled(x, axis, after, 0.5**0.5)
        return x


class Transform(NamedTuple):
    """The transform along each of its axes."""

    axes: tuple[int, ...]
    kinds: tuple[str, ...]
    # The length of the transform.
    points: tuple[int, ...]
    # The number of lowest frequencies that are kept.
    modes: tuple[int, ...]

    def spectral(self) -> tuple[int, ...]:
        """The number of frequencies along each axis."""
        pairs = zip(self.kinds, self.modes)
        return tuple(n // 2 + 1 if kind == "r2c" else n for kind, n in pairs)

    def result(self, shape: Sequence[int], inverse: bool) -> Shape:
        """The shape of the result for an array of this shape."""
        return with_lengths(shape, self.axes, self.points if inverse else self.spectral())


def fourier(
    shape: Shape, last: str, inverse: bool, s: Lengths, axes: Axes, modes: Lengths
) -> Transform:
    """The transform for the arguments of ``fftn`` (`last` is c2c) or ``rfftn`` (r2c)."""
    if inverse and modes is not None and s is None:
        raise argument("s", None, "the shape of the result, with modes")
    found, points = extent(shape, integers(s), integers(axes))
    if last == "r2c" and not found:
        raise argument("axes", (), "at least one")
    if last == "r2c" and inverse and s is None:
        points = (*points[:-1], 2 * (points[-1] - 1))
        if points[-1] < 1:
            raise argument("points along the halved axis", points[-1], "at least 1")
    kinds = ("c2c",) * (len(found) - 1) + (last,) * min(len(found), 1)
    transform = Transform(found, kinds, points, _kept(modes, points))
    if inverse and modes is not None:
        given, spectral = tuple(shape[axis] for axis in found), transform.spectral()
        if given != spectral:
            expected = f"{spectral}, for modes {transform.modes}"
            raise argument("frequencies of x", given, expected)
    return transform


def cosines(shape: Shape, family: str, type: int, s: Lengths, axes: Axes) -> Transform:
    """The transform for the arguments of ``dctn`` or ``dstn``."""
    if type not in INVERSE_TYPES:
        raise argument("type", type, "1 to 4")
    found, points = extent(shape, integers(s), integers(axes))
    return Transform(found, (f"{family}{type}",) * len(found), points, points)


def _kept(modes: Lengths, points: Shape) -> Shape:
    given = integers(modes)
    if given is None:
        return points
    if len(given) == 1:
        given = given * len(points)
    if len(given) != len(points):
        raise argument("modes", modes, f"a number, or one for each of {len(points)} axes")
    if any(not 1 <= m <= n for m, n in zip(given, points)):
        raise argument("modes", given, f"from 1 to the lengths {points}")
    return given


class Stage(NamedTuple):
    """The arguments of a plan, and the shape of the whole array after its run."""

    points: Shape
    kinds: tuple[str, ...]
    batch: int
    # None if all are kept.
    modes: Shape | None
    result: Shape


def stages(shape: Sequence[int], transform: Transform, inverse: bool) -> list[Stage]:
    """The plans that transform an array of this shape one after another; none for a copy."""
    # Axes with one point need no transform.
    rows = sorted(row for row in zip(*transform) if row[1:] != ("c2c", 1, 1))
    if not rows:
        return []
    physical = with_lengths(shape, transform.axes, transform.points)
    now, _ = _parts(physical, {axis: kind for axis, kind, *_ in rows})
    parts = [[row for row in rows if row[0] in now], [row for row in rows if row[0] not in now]]
    if inverse:
        # The halved axis, which is in `now` and real at one end, comes last.
        parts.reverse()
    found = []
    for part in filter(None, parts):
        one = Transform(*map(tuple, zip(*part)))
        found.append(_stage(shape, one, inverse))
        shape = found[-1].result
    return found


def _stage(shape: Sequence[int], transform: Transform, inverse: bool) -> Stage:
    physical = with_lengths(shape, transform.axes, transform.points)
    kinds = dict(zip(transform.axes, transform.kinds))
    batch, points, named = _joined(physical, kinds)
    # Other axes are joined, and transformed axes keep their order.
    kept = iter(transform.modes)
    modes = tuple(n if kind == "none" else next(kept) for n, kind in zip(points, named))
    result = transform.result(shape, inverse)
    return Stage(points, named, batch, None if modes == points else modes, result)
