"""Transforms of arrays that are distributed over a mesh of devices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ._jax_calls import Ends, How, Request, call, physical_type, transformed, whole
from ._jax_ranks import on_one_host, processes_of, ranks
from ._options import argument
from ._stages import Transform

Spec = tuple[Any, ...]


def distributed(
    x: jax.Array,
    transform: Transform,
    inverse: bool,
    norm: str,
    given: NamedSharding,
    made: NamedSharding,
) -> jax.Array:
    """Transforms an array. The result is differentiable."""
    if given.mesh != made.mesh:
        raise argument("mesh of out_sharding", made.mesh, given.mesh)
    for name, shape, sharding in (
        ("sharding", x.shape, given),
        ("out_sharding", transform.result(x.shape, inverse), made),
    ):
        parts = set(map(str, sharding.devices_indices_map(shape).values()))
        if len(parts) != given.mesh.size:
            expected = f"{given.mesh.size}, one for each device"
            raise argument(f"parts by {name}", len(parts), expected)
    run = _by_library if _has_ranks(given.mesh) else _by_xla
    return transformed(x, How(transform, norm, inverse, Ends(given, made, run)))


def _has_ranks(mesh: Any) -> bool:
    """Whether each process has one GPU of a host, so that all run calls in the same order."""
    processes = processes_of(mesh)
    one_each = len(set(processes)) == len(processes) > 1
    return one_each and _ordered(mesh) and on_one_host(processes)


def _ordered(mesh: Any) -> bool:
    """Whether devices run the calls of a program in program order."""
    return mesh.devices.flat[0].platform == "gpu"


def _specs(sharding: NamedSharding, axes: int) -> Spec:
    return (*sharding.spec, *[None] * (axes - len(sharding.spec)))


# -- by calls of the library, which exchange data -------------------------------------------------


def _by_library(x: jax.Array, how: How) -> jax.Array:
    """One call on each device, of a plan that all ranks share."""
    transform, inverse, ends = how.transform, how.inverse, how.ends
    assert ends is not None
    result = transform.result(x.shape, inverse)
    physical, spectral = (result, x.shape) if inverse else (x.shape, result)
    sides = (ends.made, ends.given) if inverse else (ends.given, ends.made)
    kinds, modes = (
        dict(zip(transform.axes, transform.kinds)),
        dict(zip(transform.axes, transform.modes)),
    )
    # Leading axes that are neither transformed nor cut count arrays of a batch.
    first = 0
    while first not in kinds and not any(_specs(side, x.ndim)[first] for side in sides):
        first += 1
    every = range(first, x.ndim)
    kept = tuple(modes.get(axis, physical[axis]) for axis in every)
    names = tuple(kinds.get(axis, "none") for axis in every)
    request = Request(
        physical[first:],
        physical_type(x.dtype, transform.kinds, inverse),
        names,
        None if kept == physical[first:] else kept,
        how.norm,
        ranks(sides[0].mesh, *zip(sides, (physical, spectral)), first),
    )
    shape = ends.made.shard_shape(result)
    run = functools.partial(call, request=request, inverse=inverse, shape=shape)
    return _on_each(run, ends.given, ends.made)(x)


def _on_each(run: Any, given: NamedSharding, made: NamedSharding) -> Any:
    return jax.shard_map(
        run, mesh=given.mesh, in_specs=given.spec, out_specs=made.spec, check_vma=False
    )


# -- by XLA, which exchanges data between calls ---------------------------------------------------


class Pass(NamedTuple):
    """The axes that are transformed while an array is cut in one way."""

    spec: Spec
    axes: tuple[int, ...]


def passes(
    given: Spec,
    made: Spec,
    transform: Transform,
    inverse: bool,
    fits: Callable[[Spec, set[int]], bool],
) -> list[Pass]:
    """The steps from `given` to `made`: how the array is cut, and which axes are transformed then.

    These axes are whole. The halved axis, which is real at one end, comes first, and in an inverse
    transform last. `fits` returns whether an array can be cut in a way while some axes are still to
    be transformed.
    """
    halved = {axis for axis, kind in zip(transform.axes, transform.kinds) if kind == "r2c"}
    left, found, spec = set(transform.axes), [], given
    while left:
        now = {axis for axis in left if spec[axis] is None}
        real = halved & left
        if real and not inverse and not real <= now:
            now = set()
        if real and inverse and now != left:
            now -= real
        if now:
            found.append(Pass(spec, tuple(sorted(now))))
            left -= now
        else:
            others = left - real
            next = real if real and not (inverse and others) else others
            spec = _with_whole(min(next), spec, made, left, fits)
    return found


def _with_whole(
    axis: int, spec: Spec, made: Spec, left: set[int], fits: Callable[[Spec, set[int]], bool]
) -> Spec:
    """A way to cut an array that leaves an axis whole: like the result if possible."""
    if made[axis] is None and fits(made, left):
        return made
    free = [other for other, names in enumerate(spec) if names is None]
    # Axes that are already transformed are preferred.
    for other in sorted(free, key=lambda other: other in left):
        turned = list(spec)
        turned[other], turned[axis] = turned[axis], None
        if fits(tuple(turned), left):
            return tuple(turned)
    raise argument("sharding", spec, f"one with which axis {axis} can be whole in between")


def _by_xla(x: jax.Array, how: How) -> jax.Array:
    transform, ends = how.transform, how.ends
    assert ends is not None
    mesh, before = ends.given.mesh, x.shape
    after = transform.result(before, how.inverse)

    def fits(spec: Spec, left: set[int]) -> bool:
        lengths = [before[axis] if axis in left else n for axis, n in enumerate(after)]
        return all(n % _parts(mesh, names) == 0 for n, names in zip(lengths, spec))

    rows = {row[0]: row for row in zip(*transform)}
    given, made = _specs(ends.given, x.ndim), _specs(ends.made, x.ndim)
    found = passes(given, made, transform, how.inverse, fits)
    for spec, axes in found:
        one = Transform(*map(tuple, zip(*(rows[axis] for axis in axes))))
        cut = NamedSharding(mesh, PartitionSpec(*spec))
        x = jax.lax.with_sharding_constraint(x, cut)
        run = functools.partial(whole, transform=one, norm=how.norm, inverse=how.inverse)
        x = _on_each(run, cut, cut)(x)
    return jax.lax.with_sharding_constraint(x, ends.made)


def _parts(mesh: Any, names: Any) -> int:
    """The number of parts of an axis that is cut along these axes of the mesh."""
    if names is None:
        return 1
    return math.prod(mesh.shape[name] for name in ([names] if isinstance(names, str) else names))
