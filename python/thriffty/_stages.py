"""Transforms along some axes of whole arrays as plans that are made once, for torch and JAX.

A plan has at most four axes, after those that count arrays of its batch. Where an array has more, a
part of its axes is transformed after the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._apply import _joined, _parts

Shape = tuple[int, ...]


class Transform(NamedTuple):
    """What a transform does along each of its axes."""

    axes: tuple[int, ...]
    kinds: tuple[str, ...]
    # The length of the transform.
    points: tuple[int, ...]
    # How many of the lowest frequencies are kept.
    modes: tuple[int, ...]

    def spectral(self) -> tuple[int, ...]:
        """The number of frequencies."""
        pairs = zip(self.kinds, self.modes)
        return tuple(n // 2 + 1 if kind == "r2c" else n for kind, n in pairs)

    def result(self, shape: Sequence[int], inverse: bool) -> list[int]:
        """The shape of the result for an array of this shape."""
        return replaced(shape, self.axes, self.points if inverse else self.spectral())


class Stage(NamedTuple):
    """The arguments of a plan, and the shape of the whole array after it."""

    points: Shape
    kinds: tuple[str, ...]
    batch: int
    # None if all are kept.
    modes: Shape | None
    result: Shape


def stages(shape: Sequence[int], transform: Transform, inverse: bool) -> list[Stage]:
    """The plans that transform an array of this shape, one after the other; none for a copy."""
    rows = zip(transform.axes, transform.kinds, transform.points, transform.modes)
    # Of one point there is nothing to transform.
    rows = sorted(row for row in rows if row[1:] != ("c2c", 1, 1))
    if not rows:
        return []
    physical = replaced(shape, transform.axes, transform.points)
    now, _ = _parts(tuple(physical), {axis: kind for axis, kind, *_ in rows})
    parts = [[row for row in rows if row[0] in now], [row for row in rows if row[0] not in now]]
    if inverse:
        # The halved axis, of `now`, is real at one end: it comes last.
        parts.reverse()
    found = []
    for part in filter(None, parts):
        one = Transform(*map(tuple, zip(*part)))
        found.append(_stage(shape, one, inverse))
        shape = found[-1].result
    return found


def _stage(shape: Sequence[int], transform: Transform, inverse: bool) -> Stage:
    physical = replaced(shape, transform.axes, transform.points)
    kinds = dict(zip(transform.axes, transform.kinds))
    batch, points, named = _joined(physical, kinds)
    # Other axes are joined, and transformed ones come in the order that they have in the array.
    kept = iter(transform.modes)
    modes = tuple(n if kind == "none" else next(kept) for n, kind in zip(points, named))
    result = tuple(transform.result(shape, inverse))
    return Stage(points, named, batch, None if modes == points else modes, result)


def replaced(shape: Sequence[int], axes: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """The shape with these lengths along some axes."""
    new = list(shape)
    for axis, length in zip(axes, lengths):
        new[axis] = length
    return new
