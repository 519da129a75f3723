"""Transforms as operations of torch, with gradients: `thriffty::fft` and `thriffty::run`.

`fft` transforms a whole array by plans that are kept for later calls, and `run` this rank's brick
by a plan of the caller. torch.compile sees one operation in each, because what it would trace
otherwise are calls of a library of C.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._adjoint import EXCHANGED, factors, plan_factors
from ._library import Error
from ._options import COMPLEX, REAL
from ._plan import Plan
from ._stages import Stage, Transform, replaced, stages


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# -- whole arrays -------------------------------------------------------------------------------


@torch.library.custom_op("thriffty::fft", mutates_args=())
def fft(
    x: Tensor,
    dim: Sequence[int],
    kinds: str,
    points: Sequence[int],
    modes: Sequence[int],
    norm: str,
    inverse: bool,
) -> Tensor:
    """Transforms `x` along `dim`, by a kind for each, in a plan of `points` and `modes`."""
    transform = _transform(dim, kinds, points, modes)
    if math.prod(x.shape) == 0:
        dtype = _made_type(x.dtype, kinds, inverse)
        return x.new_zeros(transform.result(x.shape, inverse), dtype=dtype)
    x = _stored(x)
    steps = stages(x.shape, transform, inverse)
    for stage in steps:
        x = _at_once(x, stage, norm, inverse)
    return x if steps else x.clone()


def _transform(
    dim: Sequence[int], kinds: str, points: Sequence[int], modes: Sequence[int]
) -> Transform:
    return Transform(tuple(dim), tuple(kinds.split(",")), tuple(points), tuple(modes))


def _at_once(x: Tensor, stage: Stage, norm: str, inverse: bool) -> Tensor:
    """Transforms along axes that one plan can have."""
    name = _name(x.dtype)
    dtype = REAL[name] if inverse and "r2c" in stage.kinds else name
    place: tuple = ("host", 0)
    if x.is_cuda:
        place = (x.device.index, torch.cuda.current_stream(x.device).cuda_stream)
    plan = _kept(stage.points, dtype, stage.kinds, stage.batch, stage.modes, norm, *place)
    given, made = _sides(plan, inverse)
    to = getattr(torch, plan._dtypes[made].name)
    out = torch.empty(plan._shapes[made], dtype=to, device=x.device)
    with plan._lock:
        _direction(plan, inverse)(x.view(plan._shapes[given]), out=out)
    return out.view(stage.result)


@functools.lru_cache(maxsize=64)
def _kept(
    points: tuple[int, ...],
    dtype: str,
    kinds: tuple[str, ...],
    batch: int,
    modes: tuple[int, ...] | None,
    norm: str,
    device: str | int,
    stream: int,
) -> Plan:
    how = dict(kinds=kinds, batch=batch, modes=modes, norm=norm, device=device)
    return Plan(points, dtype, stream=stream or None, **how)


def _direction(plan: Plan, inverse: bool) -> Any:
    return plan.inverse if inverse else plan.forward


def _stored(x: Tensor) -> Tensor:
    """The numbers one after another, and not conjugated or negated when they are read."""
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    # As cuFFT wants them.
    return x.clone() if x.is_cuda and x.data_ptr() % 16 != 0 else x


@fft.register_fake
def _(
    x: Tensor,
    dim: Sequence[int],
    kinds: str,
    points: Sequence[int],
    modes: Sequence[int],
    norm: str,
    inverse: bool,
) -> Tensor:
    shape = _transform(dim, kinds, points, modes).result(x.shape, inverse)
    return x.new_empty(shape, dtype=_made_type(x.dtype, kinds, inverse))


def _made_type(dtype: torch.dtype, kinds: str, inverse: bool) -> torch.dtype:
    if "r2c" not in kinds:
        return dtype
    return getattr(torch, (REAL if inverse else COMPLEX)[_name(dtype)])


def _keep_arguments(ctx: Any, inputs: tuple, output: Any) -> None:
    _, *ctx.arguments = inputs


def _fft_backward(ctx: Any, gradient: Tensor) -> tuple:
    dim, kinds, points, modes, norm, inverse = ctx.arguments
    each = [
        factors(kind, inverse, *lengths) for kind, *lengths in zip(kinds.split(","), points, modes)
    ]
    x = _times(gradient, dim, [axis.before for axis in each])
    x = fft(x, dim, kinds, points, modes, EXCHANGED[norm], not inverse)
    return _times(x, dim, [axis.after for axis in each]), *[None] * 6


def _times(x: Tensor, dim: Sequence[int], values: Sequence[np.ndarray | None]) -> Tensor:
    """`x`, multiplied by the values along each axis."""
    for axis, along in zip(dim, values):
        if along is not None:
            x = x * _on_device(along, x).view(replaced([1] * x.dim(), [axis], [len(along)]))
    return x


def _on_device(values: np.ndarray, x: Tensor) -> Tensor:
    """Values that are equal but for a few, without a copy from the host: it would be waited for."""
    single = x.dtype in (torch.float32, torch.complex64)
    most = float(values[len(values) // 2]) if len(values) > 0 else 1.0
    dtype = torch.float32 if single else torch.float64
    tensor = torch.full((len(values),), most, dtype=dtype, device=x.device)
    for place in np.flatnonzero(values != most).tolist():
        tensor[place] = float(values[place])
    return tensor


fft.register_autograd(_fft_backward, setup_context=_keep_arguments)


# -- bricks by a plan ---------------------------------------------------------------------------

_numbers = itertools.count(1)
_plans: weakref.WeakValueDictionary[int, Plan] = weakref.WeakValueDictionary()


def number_of(plan: Plan) -> int:
    """The number by which operations know a plan, as long as it lives."""
    number = getattr(plan, "_number_in_torch", None)
    if number is None:
        number = next(_numbers)
        _plans[number] = plan
        plan._number_in_torch = number  # type: ignore[attr-defined]
    return number


def _numbered(number: int) -> Plan:
    plan = _plans.get(number)
    if plan is None:
        raise Error("the plan is gone: keep it as long as its gradients")
    return plan


@torch.library.custom_op("thriffty::run", mutates_args=())
def run(x: Tensor, number: int, inverse: bool) -> Tensor:
    """Transforms this rank's brick. Collective."""
    plan = _numbered(number)
    given, made = _sides(plan, inverse)
    with plan._lock:
        try:
            order = plan._orders[given]
            if x.dim() == len(order):
                # Otherwise the plan refuses it, on all ranks.
                x = _stored(x.permute(order)).permute(*np.argsort(order).tolist())
            out = _room(plan, made, x.device)
        except Exception as error:  # Such as no memory: other ranks wait for this one.
            plan.refuse(error)
            raise
        _on_stream(plan, x, lambda: _direction(plan, inverse)(x, out=out))
    return out


def _sides(plan: Plan, inverse: bool) -> tuple[int, int]:
    """The side that is given, and that which is made: 0 is physical, 1 spectral."""
    return (1, 0) if inverse else (0, 1)


def _room(plan: Plan, side: int, device: torch.device) -> Tensor:
    shape, order = plan._shapes[side], plan._orders[side]
    dtype = getattr(torch, plan._dtypes[side].name)
    packed = torch.empty([shape[axis] for axis in order], dtype=dtype, device=device)
    return packed.permute(*np.argsort(order).tolist())


def _on_stream(plan: Plan, x: Tensor, call: Callable[[], Any]) -> None:
    """Calls what works on the plan's stream, between what is queued on the current one."""
    current = torch.cuda.current_stream(x.device) if x.is_cuda else None
    if current is None or current.cuda_stream == plan._stream:
        call()
        return
    own = torch.cuda.ExternalStream(plan._stream, device=x.device)
    own.wait_stream(current)
    call()
    current.wait_stream(own)


@run.register_fake
def _(x: Tensor, number: int, inverse: bool) -> Tensor:
    plan = _numbered(number)
    return _room(plan, _sides(plan, inverse)[1], x.device)


def _keep_plan(ctx: Any, inputs: tuple, output: Any) -> None:
    _, ctx.number, ctx.inverse = inputs
    ctx.plan = _numbered(ctx.number)


def _run_backward(ctx: Any, gradient: Tensor) -> tuple:
    plan = _numbered(ctx.number)
    before, after = plan_factors(plan, ctx.inverse)
    first = gradient.dim() - len(before)
    dim = range(first, gradient.dim())
    other = number_of(plan._exchanged())
    x = run(_times(gradient, dim, before), other, not ctx.inverse)
    return _times(x, dim, after), None, None


run.register_autograd(_run_backward, setup_context=_keep_plan)
