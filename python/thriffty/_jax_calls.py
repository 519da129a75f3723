"""Differentiable transforms as calls of XLA, for an array on one device or a brick of it.

XLA may run independent calls in any order, and on CPUs the order does differ between devices. Ranks
therefore exchange data within a call only on GPUs, where a stream fixes the order of calls.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _xla
from ._adjoint import factors
from ._functions import with_lengths
from ._options import COMPLEX, EXCHANGED, REAL
from ._plan import Plan
from ._stages import Stage, Transform, stages

_NAME = "thriffty_transform"


class Request(NamedTuple):
    """The arguments of a plan, except for its device and batch.

    For several ranks, `ranks` makes the arguments that differ between them.
    """

    points: tuple[int, ...]
    dtype: str
    kinds: tuple[str, ...]
    modes: tuple[int, ...] | None
    norm: str
    ranks: Callable[[], dict[str, Any]] | None = None


class Asked(NamedTuple):
    """A call that XLA refers to by a number."""

    request: Request
    inverse: bool


_asked: dict[int, Asked] = {}
_numbers: dict[Asked, int] = {}
_next = itertools.count()


def _number(asked: Asked) -> int:
    if asked not in _numbers:
        number = next(_next)
        _asked[number] = asked
        _numbers[asked] = number
    return _numbers[asked]


@functools.lru_cache(maxsize=64)
def _plan(request: Request, batch: int, device: str | int, stream: int, place: int) -> Plan:
    """The plan of a device. Devices on the host differ by `place`."""
    more = {} if request.ranks is None else request.ranks()
    return Plan(
        request.points,
        request.dtype,
        kinds=request.kinds,
        modes=request.modes,
        norm=request.norm,
        batch=batch,
        device=device,
        stream=stream or None,
        **more,
    )


def _run(call: _xla.Call, on_device: bool) -> None:
    request, inverse = _asked[call.number]
    place = call.device()
    given, result = call.given, call.result
    axes = len(request.points)
    # Axes in front of the plan's, including those that vmap adds, count arrays.
    batch = math.prod(given.dims[: given.rank - axes])
    if math.prod(given.dims[: given.rank]) == 0 or math.prod(result.dims[: result.rank]) == 0:
        return
    if on_device:
        plan = _plan(request, batch, place, call.stream(), 0)
    else:
        plan = _plan(request, batch, "host", 0, place)
    c, sides = plan._library.c, (1, 0) if inverse else (0, 1)
    bytes = [math.prod(plan._shapes[side]) * plan._dtypes[side].itemsize for side in sides]
    function = c.thriffty_inverse if inverse else c.thriffty_forward
    with plan._lock:
        status = function(plan._open(), given.data, bytes[0], result.data, bytes[1])
    if status != 0:
        plan._library.check(status)


for _platform, _on_device in (("cpu", False), ("CUDA", True)):
    jax.ffi.register_ffi_target(
        _NAME, _xla.handler(functools.partial(_run, on_device=_on_device)), platform=_platform
    )


def call(x: jax.Array, request: Request, inverse: bool, shape: tuple[int, ...]) -> jax.Array:
    """One call, for arrays stored one after another, with a result of this shape."""
    to = np.dtype(request.dtype)
    if not inverse and "r2c" in request.kinds:
        to = np.dtype(COMPLEX[request.dtype])
    run = jax.ffi.ffi_call(_NAME, jax.ShapeDtypeStruct(shape, to), vmap_method="broadcast_all")
    return run(x, number=np.int64(_number(Asked(request, inverse))))


def whole(x: jax.Array, transform: Transform, norm: str, inverse: bool) -> jax.Array:
    """Transforms along axes that are whole on this device."""
    shape = transform.result(x.shape, inverse)
    for stage in stages(x.shape, transform, inverse):
        x = _stage(x, stage, norm, inverse)
    return x.reshape(shape)


def _stage(x: jax.Array, stage: Stage, norm: str, inverse: bool) -> jax.Array:
    kept = stage.modes or stage.points
    halved = tuple(n // 2 + 1 if kind == "r2c" else n for n, kind in zip(kept, stage.kinds))
    given, made = (halved, stage.points) if inverse else (stage.points, halved)
    dtype = physical_type(x.dtype, stage.kinds, inverse)
    request = Request(stage.points, dtype, stage.kinds, stage.modes, norm)
    y = call(x.reshape(stage.batch, *given), request, inverse, (stage.batch, *made))
    return y.reshape(stage.result)


def physical_type(dtype: Any, kinds: tuple[str, ...], inverse: bool) -> str:
    """The type of physical data for a transform of this type of array."""
    return REAL[dtype.name] if inverse and "r2c" in kinds else dtype.name


class How(NamedTuple):
    """How an array is transformed. XLA compiles once for equal values."""

    transform: Transform
    norm: str
    inverse: bool
    # The distributions of the array and of the result, for several devices.
    ends: Ends | None = None

    def adjoint(self) -> How:
        """The opposite direction, with exchanged scales."""
        ends = None if self.ends is None else self.ends.exchanged()
        return How(self.transform, EXCHANGED[self.norm], not self.inverse, ends)


class Ends(NamedTuple):
    """How an array and its result are distributed, and the function that transforms it."""

    given: Any
    made: Any
    run: Callable[[jax.Array, How], jax.Array]

    def exchanged(self) -> Ends:
        return Ends(self.made, self.given, self.run)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def transformed(x: jax.Array, how: How) -> jax.Array:
    """Transforms `x`. It is linear, so gradients need no values of the forward pass."""
    if how.ends is not None:
        return how.ends.run(x, how)
    return whole(x, how.transform, how.norm, how.inverse)


def _forward(x: jax.Array, how: How) -> tuple[jax.Array, None]:
    return transformed(x, how), None


def _backward(how: How, _: None, cotangent: jax.Array) -> tuple[jax.Array]:
    transform = how.transform
    each = [
        factors(kind, how.inverse, points, modes)
        for kind, points, modes in zip(transform.kinds, transform.points, transform.modes)
    ]
    # The adjoint gives the conjugate of JAX's gradient.
    x = _times(jnp.conj(cotangent), transform.axes, [axis.before for axis in each])
    x = transformed(x, how.adjoint())
    return (jnp.conj(_times(x, transform.axes, [axis.after for axis in each])),)


transformed.defvjp(_forward, _backward)


def _times(x: jax.Array, axes: tuple[int, ...], values: list[np.ndarray | None]) -> jax.Array:
    for axis, along in zip(axes, values):
        if along is not None:
            real = np.finfo(x.dtype).dtype
            x = x * along.astype(real).reshape(with_lengths([1] * x.ndim, [axis], [len(along)]))
    return x
