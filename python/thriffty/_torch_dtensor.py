"""Transforms of DTensors, whose placements give the bricks of a plan."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from . import _torch_ops
from ._options import REAL, argument
from ._placements import brick, first_of_plan, shards
from ._plan import Plan
from ._stages import Transform


def is_distributed(x: Any) -> bool:
    """Whether it is a DTensor."""
    return dist.is_available() and isinstance(x, dist.tensor.DTensor)


def distributed(
    x: Any,
    transform: Transform,
    inverse: bool,
    norm: str,
    placements: Sequence[Any] | None,
    alone: Callable[[Tensor], Tensor],
) -> Tensor:
    """Transforms the whole tensor. Collective.

    If no transformed axis is cut, each rank calls `alone` on its own part.
    """
    mesh, given = x.device_mesh, tuple(x.placements)
    made = given if placements is None else tuple(placements)
    if len(made) != mesh.ndim:
        raise argument("placements", made, f"one for each of {mesh.ndim} axes of the mesh")
    shape = tuple(x.shape)
    lengths = transform.spectral() if inverse else transform.points
    for axis, length in zip(transform.axes, lengths):
        if shape[axis] > length or (inverse and shape[axis] < length):
            raise argument(f"points along axis {axis} of a DTensor", shape[axis], length)
    cut = (shards(given, len(shape)), shards(made, len(shape)))
    number, local, local_result = _number(
        mesh, shape, x.dtype, cut, tuple(transform), inverse, norm
    )
    whole = transform.result(shape, inverse)
    mine = x.to_local()
    if number == 0:
        y = alone(mine)
    else:
        y = _torch_ops.run(mine.reshape(local), number, inverse).view(local_result)
    stride = tuple(math.prod(whole[axis + 1 :]) for axis in range(len(whole)))
    return dist.tensor.DTensor.from_local(
        y, mesh, made, run_check=False, shape=torch.Size(whole), stride=stride
    )


class _Planned(NamedTuple):
    """The plan, or None if each rank transforms its own arrays, and the shapes before and after."""

    plan: Plan | None
    # The shapes of the plan's array and of this rank's part of the result.
    given: tuple[int, ...]
    made: tuple[int, ...]


@torch.compiler.assume_constant_result
def _number(*asked: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The number of the plan, or 0 for none, and the shapes.

    torch.compile takes it as a constant, so it does not trace streams and groups.
    """
    device: str | int
    device = torch.cuda.current_device() if asked[0].device_type == "cuda" else "host"
    planned = _planned(*asked, device)
    number = 0 if planned.plan is None else _torch_ops.number_of(planned.plan)
    return number, planned.given, planned.made


# All ranks make and drop the same plans, because the arguments are equal on all of them.
@functools.lru_cache(maxsize=64)
def _planned(
    mesh: Any,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    cut: tuple[tuple[int, ...], tuple[int, ...]],
    transform: tuple,
    inverse: bool,
    norm: str,
    device: str | int,
) -> _Planned:
    axes, kinds, points, modes = transform
    given, made = list(shape), Transform(*transform).result(shape, inverse)
    place = mesh.get_coordinate()
    bricks = [brick(whole, mesh.shape, place, axis) for whole, axis in zip((given, made), cut)]
    first = first_of_plan(axes, *cut)
    together = [number for number, axis in enumerate(cut[0]) if axis >= first]
    if not together:
        return _Planned(None, (), ())
    batch = math.prod(high - low for low, high in bricks[0][:first])
    physical, spectrum = (made, given) if inverse else (given, made)
    sides = [tuple(slice(*part) for part in whole[first:]) for whole in bricks]
    name = _torch_ops._name(dtype)
    named = dict(zip(axes, kinds))
    lengths, kept = dict(zip(axes, points)), dict(zip(axes, modes))
    every = range(first, len(shape))
    padded = tuple(lengths.get(axis, shape[axis]) for axis in every)
    least = tuple(kept.get(axis, shape[axis]) for axis in every)
    plan = Plan(
        tuple(physical[first:]),
        REAL[name] if inverse and "r2c" in kinds else name,
        comm=_group(mesh, together),
        input=sides[1 if inverse else 0],
        output=sides[0 if inverse else 1],
        kinds=tuple(named.get(axis, "none") for axis in every),
        # The mesh may cut a single axis where no factor fits.
        one_rank=True,
        batch=batch,
        norm=norm,
        zero_padded=padded if padded != tuple(physical[first:]) else None,
        modes=least if least != padded else None,
        device=device,
        # Runs on another stream synchronise with this one.
        stream=None if device == "host" else torch.cuda.current_stream().cuda_stream,
    )
    shape_of_result = tuple(high - low for low, high in bricks[1])
    return _Planned(plan, plan.output_shape if inverse else plan.input_shape, shape_of_result)


def _group(mesh: Any, axes: list[int]) -> Any:
    """The group of the ranks along some axes of a mesh."""
    if len(axes) == 1:
        return mesh.get_group(axes[0])
    if len(axes) == mesh.ndim and mesh.size() == dist.get_world_size():
        return dist.group.WORLD
    names = mesh.mesh_dim_names
    if names is None:
        raise argument("mesh", "axes without names", "mesh_dim_names")
    return mesh[tuple(names[axis] for axis in axes)]._flatten().get_group()
