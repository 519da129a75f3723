"""Transforms as operations of torch, with gradients: `thriffty::fft` and `thriffty::run`.

`fft` transforms a whole array by plans that are kept for later calls. `run` transforms this rank's
brick by a plan of the caller. Each is a single operation for torch.compile, which could not trace
calls of a C library.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from ._adjoint import factors, plan_factors
from ._functions import with_lengths
from ._library import Error
from ._options import COMPLEX, EXCHANGED, REAL
from ._plan import Plan
from ._stages import Transform, stages


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# -- whole arrays -------------------------------------------------------------------------------

# Defined by its schema, because `torch.library.custom_op` inspects the arguments of every call,
# which takes longer than starting the transform of a small array.
torch.library.define(
    "thriffty::fft",
    "(Tensor x, int[] dim, str kinds, int[] points, int[] modes, str norm, bool inverse) -> Tensor",
)
fft = torch.ops.thriffty.fft.default


@torch.library.impl("thriffty::fft", ("cpu", "cuda"))
def _fft(
    x: Tensor,
    dim: Sequence[int],
    kinds: str,
    points: Sequence[int],
    modes: Sequence[int],
    norm: str,
    inverse: bool,
) -> Tensor:
    """Transforms `x` along `dim`, with a kind, points and modes for each axis."""
    x = _stored(x)
    place: tuple[str | int, int] = ("host", 0)
    if x.is_cuda:
        place = (x.get_device(), torch.cuda.current_stream(x.device).cuda_stream)
    asked = (tuple(dim), kinds, tuple(points), tuple(modes), norm, inverse)
    calls = _calls(x.shape, x.dtype, *asked, *place)
    for call, lock in calls:
        with lock:
            x = call(x)
    return x if calls else x.clone()


class _Call:
    """One direction of a plan, for tensors stored as the plan requires."""

    def __init__(self, plan: Plan, inverse: bool, result: Sequence[int]) -> None:
        c, (given, made) = plan._library.c, _sides(inverse)
        self._plan, self._result = plan, result
        self._dtype = getattr(torch, plan._dtypes[made].name)
        self._function = c.thriffty_inverse if inverse else c.thriffty_forward
        self._bytes = [
            math.prod(plan._shapes[side]) * plan._dtypes[side].itemsize for side in (given, made)
        ]

    def __call__(self, x: Tensor) -> Tensor:
        """Runs the plan. Only one thread may do so at a time."""
        plan, (given, made) = self._plan, self._bytes
        handle = plan._open()
        try:
            out = torch.empty(self._result, dtype=self._dtype, device=x.device)
        except Exception as error:  # Out of memory: other ranks wait for this one.
            plan.refuse(error)
            raise
        status = self._function(handle, x.data_ptr(), given, out.data_ptr(), made)
        if status != 0:
            plan._library.check(status)
        return out


@functools.lru_cache(maxsize=128)
def _calls(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    dim: tuple[int, ...],
    kinds: str,
    points: tuple[int, ...],
    modes: tuple[int, ...],
    norm: str,
    inverse: bool,
    device: str | int,
    stream: int,
) -> list[tuple[Callable[[Tensor], Tensor], Any]]:
    """The calls that transform an array of this shape one after another, and their locks."""
    transform = _transform(dim, kinds, points, modes)
    if math.prod(shape) == 0:
        result = transform.result(shape, inverse)
        to = _made_type(dtype, kinds, inverse)
        return [(lambda x: x.new_zeros(result, dtype=to), nullcontext())]
    calls: list = []
    for stage in stages(shape, transform, inverse):
        physical = REAL[_name(dtype)] if inverse and "r2c" in stage.kinds else _name(dtype)
        asked = (stage.points, physical, stage.kinds, stage.batch, stage.modes)
        plan = _kept(*asked, norm, device, stream)
        call = _Call(plan, inverse, stage.result)
        calls.append((call, plan._lock))
        dtype = call._dtype
    return calls


def _transform(
    dim: Sequence[int], kinds: str, points: Sequence[int], modes: Sequence[int]
) -> Transform:
    return Transform(tuple(dim), tuple(kinds.split(",")), tuple(points), tuple(modes))


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
    return Plan(
        points,
        dtype,
        kinds=kinds,
        batch=batch,
        modes=modes,
        norm=norm,
        device=device,
        stream=stream or None,
    )


def clear_plans() -> None:
    """Frees the plans that calls have made."""
    _calls.cache_clear()
    _kept.cache_clear()


def _direction(plan: Plan, inverse: bool) -> Any:
    return plan.inverse if inverse else plan.forward


def _stored(x: Tensor) -> Tensor:
    """A contiguous tensor without a pending conjugation or negation."""
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    # cuFFT needs this alignment.
    return x.clone() if x.is_cuda and x.data_ptr() % 16 != 0 else x


@torch.library.register_fake("thriffty::fft")
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
            x = x * _on_device(along, x).view(with_lengths([1] * x.dim(), [axis], [len(along)]))
    return x


def _on_device(values: np.ndarray, x: Tensor) -> Tensor:
    single = x.dtype in (torch.float32, torch.complex64)
    dtype = torch.float32 if single else torch.float64
    if type(x) is Tensor and _get_current_dispatch_mode() is None:
        return _copied(values.tobytes(), dtype, x.device)
    # A traced function cannot create tensors from data. All but a few values are equal.
    most = float(values[len(values) // 2]) if len(values) > 0 else 1.0
    tensor = torch.full((len(values),), most, dtype=dtype, device=x.device)
    for place in np.flatnonzero(values != most).tolist():
        tensor[place] = float(values[place])
    return tensor


@functools.lru_cache(maxsize=256)
def _copied(values: bytes, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The values on the device. They are kept, because copies from the host are synchronous."""
    return torch.tensor(np.frombuffer(values), dtype=dtype, device=device)


torch.library.register_autograd("thriffty::fft", _fft_backward, setup_context=_keep_arguments)


# -- bricks by a plan ---------------------------------------------------------------------------

_numbers = itertools.count(1)
_plans: weakref.WeakValueDictionary[int, Plan] = weakref.WeakValueDictionary()


def number_of(plan: Plan) -> int:
    """The number by which operations refer to a plan while it lives."""
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


torch.library.define("thriffty::run", "(Tensor x, int number, bool inverse) -> Tensor")
run = torch.ops.thriffty.run.default


@torch.library.impl("thriffty::run", ("cpu", "cuda"))
def _run(x: Tensor, number: int, inverse: bool) -> Tensor:
    """Transforms this rank's brick. Collective."""
    plan = _numbered(number)
    given, made = _sides(inverse)
    usual = _usual(plan, inverse)
    with plan._lock:
        if usual is not None and usual.takes(x):
            return _on_stream(plan, x, lambda: usual(x))
        try:
            order = plan._orders[given]
            if x.dim() == len(order):
                # Otherwise the plan reports an error, on all ranks.
                x = _stored(x.permute(order)).permute(*np.argsort(order).tolist())
            out = _room(plan, made, x.device)
        except Exception as error:  # Such as out of memory: other ranks wait for this one.
            plan.refuse(error)
            raise
        return _on_stream(plan, x, lambda: _direction(plan, inverse)(x, out=out))


class _Usual(_Call):
    """The fast path for a tensor that is already stored as the plan requires."""

    def __init__(self, plan: Plan, inverse: bool) -> None:
        given, made = _sides(inverse)
        super().__init__(plan, inverse, plan._shapes[made])
        self._shape = torch.Size(plan._shapes[given])
        self._given = getattr(torch, plan._dtypes[given].name)

    def takes(self, x: Tensor) -> bool:
        plan = self._plan
        return (
            x.shape == self._shape
            and x.dtype == self._given
            and x.is_cuda == plan._on_device
            and x.is_contiguous()
            and not (x.is_conj() or x.is_neg())
            and x.data_ptr() % 16 == 0
            and plan._failed is None
        )


def _usual(plan: Plan, inverse: bool) -> _Usual | None:
    calls = getattr(plan, "_usual_in_torch", None)
    if calls is None:
        rows = all(list(order) == sorted(order) for order in plan._orders)
        calls = [_Usual(plan, way) if rows else None for way in (False, True)]
        plan._usual_in_torch = calls  # type: ignore[attr-defined]
    return calls[inverse]


def _sides(inverse: bool) -> tuple[int, int]:
    """The sides of the input and of the result: 0 is physical, 1 spectral."""
    return (1, 0) if inverse else (0, 1)


def _room(plan: Plan, side: int, device: torch.device) -> Tensor:
    shape, order = plan._shapes[side], plan._orders[side]
    dtype = getattr(torch, plan._dtypes[side].name)
    packed = torch.empty([shape[axis] for axis in order], dtype=dtype, device=device)
    return packed.permute(*np.argsort(order).tolist())


def _on_stream(plan: Plan, x: Tensor, call: Callable[[], Tensor]) -> Tensor:
    """Calls a function that uses the plan's stream, in the order of the current stream."""
    current = torch.cuda.current_stream(x.device) if x.is_cuda else None
    if current is None or current.cuda_stream == plan._stream:
        return call()
    own = torch.cuda.ExternalStream(plan._stream, device=x.device)
    own.wait_stream(current)
    out = call()
    current.wait_stream(own)
    return out


@torch.library.register_fake("thriffty::run")
def _(x: Tensor, number: int, inverse: bool) -> Tensor:
    plan = _numbered(number)
    return _room(plan, _sides(inverse)[1], x.device)


def _keep_plan(ctx: Any, inputs: tuple, output: Any) -> None:
    _, ctx.number, ctx.inverse = inputs
    ctx.plan = _numbered(ctx.number)


def _run_backward(ctx: Any, gradient: Tensor) -> tuple:
    plan = _numbered(ctx.number)
    before, after = _factors(plan, ctx.inverse)
    first = gradient.dim() - len(before)
    dim = range(first, gradient.dim())
    other = number_of(plan._exchanged())
    x = run(_times(gradient, dim, before), other, not ctx.inverse)
    return _times(x, dim, after), None, None


def _factors(plan: Plan, inverse: bool) -> Any:
    """The factors of the plan, stored with it because a cache would keep the plan alive."""
    known = getattr(plan, "_factors_in_torch", None)
    if known is None:
        known = plan._factors_in_torch = {}  # type: ignore[attr-defined]
    if inverse not in known:
        known[inverse] = plan_factors(plan, inverse)
    return known[inverse]


torch.library.register_autograd("thriffty::run", _run_backward, setup_context=_keep_plan)
