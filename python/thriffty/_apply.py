"""Transforms along some axes of whole arrays, by plans that are kept for later calls.

Axes that are not transformed are joined where they lie side by side. An array of any number of axes
mostly has at most four then. Where it has more, a part of them is transformed first, and the rest
after that:

    apply(x, kinds):
        order the axes as they lie in memory; copy x if there are gaps
        while the joined axes are more than four: put off the slowest transformed axis
        transform the rest by a plan
        apply(result, what was put off)

The inverse of a real transform goes the other way round: its halved axis comes last.
"""

from __future__ import annotations

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ._library import AXES
from ._options import COMPLEX, REAL, argument, known_norm
from ._plan import Plan

# Plans that are kept, and bytes of memory that all but the last may hold.
MOST_PLANS = 16
MOST_BYTES = 1 << 28
# Points for which it pays to wake other threads.
THREADED = 1 << 14

# The kind of each transformed axis.
Kinds = Mapping[int, str]
Items = tuple[tuple[int, str], ...]

_CORES = len(os.sched_getaffinity(0))


class _Kept(threading.local):
    workers: int | None = None


_kept = _Kept()
_plans: OrderedDict[tuple, Plan] = OrderedDict()
# Finalisers may call this module while it holds the lock.
_lock = threading.RLock()


def clear_plans() -> None:
    """Gives up the plans that earlier calls have made, and their threads."""
    with _lock:
        _plans.clear()


def _forked() -> None:
    # Another thread may have held the lock.
    global _lock
    _lock = threading.RLock()
    _plans.clear()


os.register_at_fork(after_in_child=_forked)


def get_workers() -> int:
    """The number of threads of calls without `workers`."""
    return _kept.workers or _CORES


@contextmanager
def set_workers(workers: int) -> Iterator[None]:
    """Sets the number of threads of calls without `workers`, in this thread and context."""
    before, _kept.workers = _kept.workers, _threads(workers)
    try:
        yield
    finally:
        _kept.workers = before


def _threads(workers: int | None) -> int:
    """As SciPy counts: -1 is all cores, -2 all but one."""
    if workers is None:
        return get_workers()
    threads = index(workers)
    if threads < 0:
        threads += _CORES + 1
    if threads < 1:
        raise argument("workers", workers, f"1 or more, or -1 to -{_CORES}")
    return threads


def _plan(threads: int, *wanted: Any) -> Plan:
    shape, dtype, kinds, batch, norm = wanted
    # Of four axes, the transforms of a batch are done one after the other.
    at_once = 1 if len(shape) == AXES else batch
    if at_once * math.prod(shape) < THREADED:
        threads = 1
    key = (threads, *wanted)
    with _lock:
        plan = _plans.get(key)
        if plan is not None:
            _plans.move_to_end(key)
            return plan
    # Others are not kept waiting, and of two new plans one is kept.
    new = Plan(shape, dtype, kinds, batch=batch, norm=norm, threads=threads)
    unused = []
    with _lock:
        plan = _plans.setdefault(key, new)
        _plans.move_to_end(key)
        rest = sum(kept.workspace_bytes for kept in _plans.values()) - plan.workspace_bytes
        while len(_plans) > MOST_PLANS or rest > MOST_BYTES:
            unused.append(_plans.popitem(last=False)[1])
            rest -= unused[-1].workspace_bytes
    # They end here, without the lock.
    del unused
    return plan


def apply(
    x: np.ndarray,
    kinds: Kinds,
    inverse: bool = False,
    norm: str | None = None,
    workers: int | None = None,
    mine: bool = False,
    length: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Transforms an array along the axes of `kinds`.

    `mine`: `x` may be overwritten. `length`: of an inverse real transform, the points of physical
    data along its halved axis. `out`: an array that may take the result, if it fits.
    """
    threads, norm = _threads(workers), known_norm(norm)
    if not kinds:
        return x if mine else x.copy()
    for axis in kinds:
        if x.shape[axis] == 0 or length == 0:
            raise argument(f"points along axis {axis}", 0, "at least 1")
    if out is not None and (out.ndim != x.ndim or np.may_share_memory(x, out)):
        out = None
    how = (inverse, norm, threads)
    if not x.flags.aligned:
        x, mine = x.copy(), True
    if x.flags.c_contiguous:
        return _packed(x, tuple(kinds.items()), how, mine, length, out)
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    if not x.transpose(order).flags.c_contiguous:
        copy = np.ascontiguousarray(x)
        return _packed(copy, tuple(kinds.items()), how, True, length, out)
    places = np.argsort(order).tolist()
    moved = tuple((places[axis], kind) for axis, kind in kinds.items())
    out = None if out is None else out.transpose(order)
    return _packed(x.transpose(order), moved, how, mine, length, out).transpose(places)


def _packed(
    x: np.ndarray,
    kinds: Items,
    how: tuple[bool, str, int],
    mine: bool,
    length: int | None,
    place: np.ndarray | None = None,
) -> np.ndarray:
    """Transforms a contiguous array."""
    inverse, norm, threads = how
    step = _step(x.shape, x.dtype, kinds, inverse, length)
    if step.first:
        x, mine = _packed(x, step.first, how, mine, None), True
    if place is not None and not step.rest and _fits(place, step.shape, step.to):
        out = place
    elif mine and x.shape == step.shape and x.dtype == step.to and x.flags.writeable:
        out = x
    else:
        out = np.empty(step.shape, step.to)
    if out.size:
        plan = _plan(threads, *step.plan, norm)
        run = plan.inverse if inverse else plan.forward
        run(x.reshape(step.before), out=out.reshape(step.after))
    return _packed(out, step.rest, how, True, None) if step.rest else out


def _fits(place: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    flags = place.flags
    usable = flags.c_contiguous and flags.writeable and flags.aligned
    return usable and place.shape == shape and place.dtype == dtype


class _Step(NamedTuple):
    """What one plan does, after the axes of `first` and before those of `rest`."""

    first: Items
    rest: Items
    # Of the result.
    shape: tuple[int, ...]
    to: np.dtype
    # Shape, type, kinds and batch.
    plan: tuple[tuple[int, ...], np.dtype, tuple[str, ...], int]
    # The shapes of both arrays with joined axes.
    before: tuple[int, ...]
    after: tuple[int, ...]


@lru_cache(maxsize=256)
def _step(
    shape: tuple[int, ...], dtype: np.dtype, kinds: Items, inverse: bool, length: int | None
) -> _Step:
    # Of one point there is nothing to transform, and an axis of one point cannot be divided.
    whole = tuple((axis, kind) for axis, kind in kinds if kind != "c2c" or shape[axis] > 1)
    now, later = _parts(shape, dict(whole or kinds))
    halved = next((axis for axis, kind in kinds if kind == "r2c"), None)
    physical, spectral, of, to = list(shape), list(shape), dtype, dtype
    if halved is not None and inverse:
        physical[halved] = 2 * (shape[halved] - 1) if length is None else length
        of = to = np.dtype(REAL[dtype.name])
    elif halved is not None:
        spectral[halved] = shape[halved] // 2 + 1
        to = np.dtype(COMPLEX[dtype.name])
    batch, points, named = _joined(physical, now)
    batches = (batch,) if batch > 1 else ()
    ends = ((*batches, *points), (*batches, *_joined(spectral, now)[1]))
    before, after = reversed(ends) if inverse else ends
    # The halved axis is real at one end: it comes first, and last in an inverse transform.
    first, rest = (later, ()) if inverse and halved is not None else ((), later)
    result = tuple(physical if inverse else spectral)
    plan = (points, of, named, batch)
    return _Step(first, rest, result, to, plan, before, after)


def _parts(shape: tuple[int, ...], kinds: Kinds) -> tuple[Kinds, Items]:
    """What a plan can transform at once, with the halved axis, and what comes apart from that."""
    now, later = dict(kinds), []
    while len(_joined(shape, now)[1]) > AXES:
        axis = min(axis for axis, kind in now.items() if kind != "r2c")
        later.append((axis, now.pop(axis)))
    return now, tuple(later)


def _joined(shape: Any, kinds: Kinds) -> tuple[int, tuple[int, ...], tuple[str, ...]]:
    """The number of transforms that lie one after the other, and the axes of each with kinds."""
    lengths: list[int] = []
    named: list[str] = []
    for axis, points in enumerate(shape):
        kind = kinds.get(axis, "none")
        if kind == "none" and (points == 1 or (named and named[-1] == "none")):
            if points != 1:
                lengths[-1] *= points
        else:
            lengths.append(points)
            named.append(kind)
    batch = 1
    if named[0] == "none":
        batch = lengths.pop(0)
        named.pop(0)
    return batch, tuple(lengths), tuple(named)
