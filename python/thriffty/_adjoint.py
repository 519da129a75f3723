"""Adjoints of transforms, for gradients: the opposite direction, with factors at some points.

For complex data, with the scales exchanged, the inverse Fourier transform is the adjoint of the
forward transform and vice versa. Two kinds also need factors. Real transforms store half the
spectrum, so each mode whose conjugate is not stored counts twice. Cosine and sine transforms of
types 2 and 3, and cosine transforms of type 1, weight the points at their ends differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ._cosines import ends


class Factors(NamedTuple):
    """The factors along an axis before and after the opposite direction; None if all are 1."""

    before: np.ndarray | None
    after: np.ndarray | None


@lru_cache(maxsize=256)
def factors(kind: str, inverse: bool, points: int, modes: int) -> Factors:
    """The factors for the adjoint of a direction along one axis.

    Parameters
    ----------
    kind
        c2c, r2c, dct1 to dst4, none or tridiagonal.
    inverse
        Whether to return the factors for the adjoint of the inverse.
    points
        The length of the transform.
    modes
        The number of lowest frequencies that are kept, for kinds c2c and r2c.
    """
    if kind in ("c2c", "none", "tridiagonal"):
        return Factors(None, None)
    if kind == "r2c":
        twice = np.full(modes // 2 + 1, 2.0)
        twice[0] = 1.0
        if modes % 2 == 0:
            twice[-1] = 1.0
        return Factors(None, twice) if inverse else Factors(1.0 / twice, None)
    family, type = kind[:3], int(kind[3])
    # The adjoint has the type of the opposite direction.
    before, after = ends(family, type, not inverse)
    return Factors(_at_ends(before, 2.0, points), _at_ends(after, 0.5, points))


def _at_ends(places: Sequence[int], factor: float, points: int) -> np.ndarray | None:
    if not places:
        return None
    values = np.ones(points)
    values[list(places)] = factor
    return values


class PlanFactors(NamedTuple):
    """The factors for this rank's bricks, one array for each axis."""

    before: tuple[np.ndarray | None, ...]
    after: tuple[np.ndarray | None, ...]


def plan_factors(plan: Any, inverse: bool) -> PlanFactors:
    """The factors for the adjoint of one direction of a plan, on this rank."""
    each = [
        factors(kind, inverse, points, modes)
        for kind, points, modes in zip(plan._kinds, plan._lengths, plan._modes)
    ]
    given, taken = plan.output_slices, plan.input_slices
    if inverse:
        given, taken = taken, given
    return PlanFactors(
        tuple(_part(axis.before, part) for axis, part in zip(each, given)),
        tuple(_part(axis.after, part) for axis, part in zip(each, taken)),
    )


def _part(values: np.ndarray | None, part: slice) -> np.ndarray | None:
    return None if values is None else values[part]
