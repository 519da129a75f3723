"""The stages of a `PFFT`: plans one after the other, and what lies between them.

One plan computes a whole transform unless axes are padded. Then there are several, because modes
that are cut off after the transform along one axis need not be sent or transformed further.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._layout import Layout
from ._plan import Plan


@dataclass
class Stage:
    """A plan, optionally followed by the truncation of one axis.

    Attributes
    ----------
    before, after
        The distribution of the plan's physical and spectral data.
    dtype
        The type of data before the plan.
    kinds
        The kind of each transformed axis.
    kept
        An axis that is truncated after the plan, and the number of points that are kept.
    """

    before: Layout
    after: Layout
    dtype: np.dtype
    kinds: dict[int, str] = field(default_factory=dict)
    kept: tuple[int, int] | None = None

    plan: Plan = field(init=False, repr=False)
    _full: np.ndarray | None = field(default=None, init=False, repr=False)

    @property
    def output(self) -> Layout:
        """The distribution after truncation."""
        if self.kept is None:
            return self.after
        axis, points = self.kept
        return self.after.resized(axis, points // 2 + 1 if self._is_halved(axis) else points)

    @property
    def output_dtype(self) -> np.dtype:
        return np.result_type(self.dtype, np.complex64) if "r2c" in self._kinds else self.dtype

    @property
    def _kinds(self) -> list[str]:
        return [self.kinds.get(axis, "none") for axis in range(len(self.before.shape))]

    def _is_halved(self, axis: int) -> bool:
        return self.kinds[axis] == "r2c"

    def make(self, options: dict[str, Any]) -> None:
        """Makes the plan. Collective."""
        if self.before.comm is not None:
            bricks = {"input": self.before.slices, "output": self.after.slices}
            options = {**options, **bricks, "comm": self.before.comm}
        options = {**options, "kinds": self._kinds, "norm": "forward"}
        self.plan = Plan(self.before.shape, self.dtype, **options)

    def forward(self, source: np.ndarray, target: np.ndarray) -> None:
        """Transforms and truncates. Collective."""
        full = target if self.kept is None else self._buffer()
        self.plan.forward(source, full)
        if self.kept is not None:
            axis, points = self.kept
            truncate(full, target, axis, points, self._is_halved(axis))

    def backward(self, source: np.ndarray, target: np.ndarray) -> None:
        """Pads with zeros and transforms back. Collective."""
        full = source
        if self.kept is not None:
            axis, points = self.kept
            full = self._buffer()
            fill_up(source, full, axis, points, self._is_halved(axis))
        self.plan.inverse(full, target)

    def _buffer(self) -> np.ndarray:
        """Memory for the spectrum before truncation."""
        if self._full is None:
            self._full = np.empty(self.after.subshape, self.output_dtype)
        return self._full


def truncate(full: np.ndarray, kept: np.ndarray, axis: int, points: int, halved: bool) -> None:
    """Keeps the frequencies of a grid with fewer points along an axis.

    If the number n of points is even, the frequency n/2 also stands for -n/2, so both are added.
    Along a halved axis, where the one at -n/2 is the complex conjugate, the sum is twice the real
    part.
    """
    full, kept = np.moveaxis(full, axis, 0), np.moveaxis(kept, axis, 0)
    half, even = points // 2, points % 2 == 0
    kept[: half + 1] = full[: half + 1]
    highest = kept[half : half + 1]
    if halved:
        if even:
            highest.imag = 0
            highest *= 2
        return
    negative = len(full) - half
    if even:
        highest += full[negative : negative + 1]
        negative += 1
    kept[half + 1 :] = full[negative:]


def fill_up(kept: np.ndarray, full: np.ndarray, axis: int, points: int, halved: bool) -> None:
    """The spectrum on a finer grid, with zeros at the additional frequencies.

    If the number n of points is even, the highest frequency is divided between n/2 and -n/2, which
    gives the smoothest field through the values on the coarse grid.
    """
    kept, full = np.moveaxis(kept, axis, 0), np.moveaxis(full, axis, 0)
    half, even = points // 2, points % 2 == 0
    full[: half + 1] = kept[: half + 1]
    full[half + 1 :] = 0
    highest = full[half : half + 1]
    if even:
        highest *= 0.5
    if halved:
        if even:
            highest.imag = 0
        return
    negative = len(full) - half
    if even:
        full[negative : negative + 1] = highest
        negative += 1
    full[negative:] = kept[half + 1 :]
