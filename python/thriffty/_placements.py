"""The bricks for the placements of a DTensor, computed without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._options import argument

Brick = tuple[tuple[int, int], ...]


def shards(placements: Sequence[Any], axes: int) -> tuple[int, ...]:
    """The axis that is cut along each axis of the mesh.

    Raises
    ------
    ArgumentError
        If a placement is not a shard, because ranks would transform the same data, or data that
        has yet to be reduced.
    """
    cut = []
    for number, placement in enumerate(placements):
        what = f"placement along axis {number} of the mesh"
        if placement.is_replicate():
            expected = "Shard: ranks with the same data would all transform it"
            raise argument(what, placement, expected)
        if placement.is_partial():
            expected = "Shard: redistribute the tensor first, which adds the parts"
            raise argument(what, placement, expected)
        if type(placement).__name__ != "Shard":
            raise argument(what, placement, "Shard")
        if not -axes <= placement.dim < axes:
            raise argument(what, placement, f"Shard of an axis from {-axes} to {axes - 1}")
        cut.append(placement.dim % axes)
    return tuple(cut)


def brick(
    shape: Sequence[int], mesh: Sequence[int], coordinate: Sequence[int], cut: Sequence[int]
) -> Brick:
    """The first and last point (exclusive) along each axis, for the rank at a place of the mesh.

    As in torch, parts have equal length except the last ones, which may be shorter or empty. An
    axis that is cut twice is cut in the order of the mesh.
    """
    parts = [(0, length) for length in shape]
    for ranks, place, axis in zip(mesh, coordinate, cut):
        low, high = parts[axis]
        each = -(-(high - low) // ranks)
        first = min(low + each * place, high)
        parts[axis] = (first, min(first + each, high))
    return tuple(parts)


def first_of_plan(transformed: Sequence[int], given: Sequence[int], made: Sequence[int]) -> int:
    """The first axis of the plan. Axes in front of it count arrays of a batch.

    It is the first axis that is transformed, or cut differently in the array and its result.
    """
    moved = [axis for pair in zip(given, made) if pair[0] != pair[1] for axis in pair]
    return min([*transformed, *moved])
