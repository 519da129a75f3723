"""The arguments of a `PFFT` as a grid, its distribution, and the stages in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, prod
from numbers import Integral, Real
from typing import Any

import numpy as np

from ._dist_array import DistArray
from ._layout import AxisCut, Cuts, Layout, axis_of
from ._library import AXES
from ._options import argument
from ._pfft_stages import Stage
from .transforms import kind_of_pair

Groups = list[tuple[int, ...]]

_TYPES = ("float32", "float64", "complex64", "complex128")


class Request:
    """The grid and its groups of axes, from the arguments of `PFFT`."""

    def __init__(
        self, shape: Any, axes: Any, dtype: Any, padding: Any, darray: DistArray | None
    ) -> None:
        self.darray = darray
        if shape is None:
            if darray is None:
                raise argument("shape", None, "the global shape, or darray")
            shape = darray.pencil.shape
        self.shape = tuple(int(length) for length in np.atleast_1d(shape))
        count = len(self.shape)
        if not 1 <= count <= AXES:
            raise argument("number of axes", count, f"1 to {AXES}")
        if min(self.shape) < 1:
            raise argument("shape", self.shape, "at least one point along each axis")
        if darray is not None and self.shape != darray.pencil.shape:
            raise argument("shape", self.shape, f"{darray.pencil.shape}, that of darray")
        self.dtype = np.dtype(dtype if darray is None else darray.dtype).newbyteorder("=")
        if self.dtype.name not in _TYPES:
            raise argument("dtype", self.dtype, "one of " + ", ".join(_TYPES))
        self.asked = self._groups(axes)
        # The number of points that are kept along padded axes.
        self.kept: dict[int, int] = {}
        self._pad(padding)
        self.groups = [part for group in self.asked for part in self._apart(group)]

    def _groups(self, axes: Any) -> Groups:
        count = len(self.shape)
        if axes is None:
            first = count - 1 if self.darray is None else self.darray.alignment
            # The axis that is whole is transformed first, then the axes in front of it.
            axes = [(first + 1 + axis) % count for axis in range(count)]
        groups = []
        for group in [axes] if isinstance(axes, Integral) else axes:
            members = [group] if isinstance(group, Integral) else list(group)
            groups.append(tuple(axis_of(axis, count, "axes") for axis in members))
        flat = [axis for group in groups for axis in group]
        if not flat or () in groups or len(set(flat)) < len(flat):
            raise argument("axes", axes, "axes or groups of axes, each axis once")
        return groups

    def _pad(self, padding: Any) -> None:
        """Enlarges the grid along axes that are padded."""
        if padding is False or padding is None:
            return
        if self.darray is not None:
            raise argument("padding with darray", padding, "shape, dtype and grid instead")
        count = len(self.shape)
        given = [padding] * count if isinstance(padding, Real) else padding
        factors = [float(factor) for factor in given]
        if padding is True or len(factors) != count or min(factors) < 1:
            raise argument(
                "padding", padding, f"a number from 1 on, or one for each of {count} axes"
            )
        shape = list(self.shape)
        for axis in (axis for group in self.asked for axis in group):
            points = floor(shape[axis] * factors[axis]) if factors[axis] > 1 + 1e-6 else shape[axis]
            if points > shape[axis]:
                self.kept[axis], shape[axis] = shape[axis], points
        self.shape = tuple(shape)

    def _apart(self, group: tuple[int, ...]) -> Groups:
        """Groups of one axis if any is padded: it is truncated before the next transform."""
        return [(axis,) for axis in group] if self.kept.keys() & set(group) else [group]

    def cut(self, comm: Any, grid: Any, slab: Any) -> Layout:
        """The distribution of physical data."""
        if self.darray is not None:
            cuts = self.darray.pencil.subcomm
        else:
            cuts = Cuts.of_grid(comm, self._grid(comm, grid, slab))
        first = self.asked[-1]
        if any(cuts[axis].size > 1 for axis in first):
            raise argument(
                f"parts along {first}, which are transformed first", cuts.sizes, "1 along each"
            )
        return Layout(self.shape, cuts, first[-1])

    def _grid(self, comm: Any, grid: Any, slab: Any) -> list[int]:
        count, first = len(self.shape), self.asked[-1]
        has_slab = slab is not False and slab is not None
        if grid is not None:
            lengths = list(grid)
            if has_slab or len(lengths) > count:
                raise argument("grid", tuple(lengths), f"at most {count} numbers, and no slab")
            return lengths + [1] * (count - len(lengths))
        if has_slab:
            cut = (first[-1] + 1) % count if slab is True else axis_of(slab, count, "slab")
            return [0 if axis == cut else 1 for axis in range(count)]
        return [1 if axis in first else 0 for axis in range(count)]

    def collapse(self, cuts: Sequence[AxisCut]) -> None:
        """Merges neighbouring groups that are not cut."""
        groups: Groups = []
        for group in reversed(self.groups):
            is_whole = all(cuts[axis].size == 1 for axis in group)
            is_padded = groups and self.kept.keys() & {*group, *groups[0]}
            if groups and is_whole and not is_padded:
                groups[0] = group + groups[0]
            else:
                groups.insert(0, group)
        self.groups = groups


def stages_of(request: Request, layout: Layout, transforms: dict) -> tuple[list[Stage], int]:
    """The stages in the order of `forward`, and the divisor of `forward`."""
    stages: list[Stage] = []
    pairs = _pairs(transforms, len(request.shape))
    used: set[tuple[int, ...]] = set()
    dtype, points = request.dtype, 1
    for group in reversed(request.groups):
        for axes in _parts(group, pairs):
            used |= {axes} & pairs.keys()
            kinds = _kinds(axes, pairs.get(axes), dtype)
            _check_padding(kinds, request.kept)
            if not stages or stages[-1].kept is not None:
                stages.append(Stage(layout, layout, dtype))
            stage = stages[-1]
            stage.kinds.update(kinds)
            points *= prod(_factor(kind, request.shape[axis]) for axis, kind in kinds.items())
            layout, last = layout.aligned(group[-1]), axes[-1]
            if kinds[last] == "r2c":
                layout = layout.resized(last, layout.shape[last] // 2 + 1)
            stage.after = layout
            if last in request.kept:
                stage.kept = (last, request.kept[last])
            layout, dtype = stage.output, stage.output_dtype
    if pairs and not used:
        raise argument("axes of transforms", list(pairs), f"groups of {request.groups}")
    return stages, points


def _pairs(transforms: dict, count: int) -> dict[tuple[int, ...], Any]:
    """The pairs of transforms by their axes, counted from the front."""
    pairs = {}
    for axes, pair in transforms.items():
        members = [axes] if isinstance(axes, Integral) else axes
        pairs[tuple(axis_of(axis, count, "axes of transforms") for axis in members)] = pair
    return pairs


def _parts(group: tuple[int, ...], pairs: dict) -> Iterator[tuple[int, ...]]:
    """The parts of a group that have transforms of their own, in the order of `forward`.

    Groups that `collapse` has merged depend on the number of ranks, so transforms for a part of a
    group must apply, too.
    """
    while group:
        runs = (group[start:] for start in range(len(group)))
        part = next((run for run in runs if run in pairs), group[-1:])
        yield part
        group = group[: len(group) - len(part)]


def _kinds(axes: tuple[int, ...], pair: Any, dtype: np.dtype) -> dict[int, str]:
    """The kind of each of these axes."""
    is_complex = dtype.kind == "c"
    kind = kind_of_pair(axes, pair) if pair is not None else ("c2c" if is_complex else "r2c")
    if (kind == "c2c") != is_complex and kind in ("c2c", "r2c"):
        wanted, type_there = ("fftn", "complex") if is_complex else ("rfftn", "real")
        raise argument(
            f"transform of axes {axes}, where data are {type_there}",
            "rfftn" if is_complex else "fftn",
            f"{wanted}, dctn or dstn",
        )
    kinds = {axis: "c2c" if kind == "r2c" else kind for axis in axes}
    kinds[axes[-1]] = kind
    return kinds


def _check_padding(kinds: dict[int, str], kept: dict[int, int]) -> None:
    padded = [axis for axis in kinds if axis in kept]
    if padded and not {"c2c", "r2c"} & set(kinds.values()):
        raise argument(f"padding of axis {padded[0]}", kinds[padded[0]], "a Fourier transform")


def _factor(kind: str, points: int) -> int:
    """The factor of forward and backward together along one axis, if neither divides."""
    if kind in ("c2c", "r2c"):
        return points
    return 2 * (points + {"dct1": -1, "dst1": 1}.get(kind, 0))
