"""Transforms of whole arrays along some axes, by plans that the library keeps for later calls.

Neighbouring axes that are not transformed are joined, which leaves at most four axes in most cases.
If more are left, some of them are transformed in a second call:

    apply(x, kinds):
        order the axes as they are stored; copy x if there are gaps
        while there are more than four joined axes: postpone the slowest transformed axis
        transform the others by a call of the library
        apply(result, the postponed axes)

The inverse of a real transform takes the postponed axes first, because its halved axis comes last.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from . import _library
from ._arrays import address
from ._library import AXES
from ._options import COMPLEX, REAL, Request, argument, known_norm, scales

# The kind of each transformed axis.
Kinds = Mapping[int, str]
Items = tuple[tuple[int, str], ...]


class _Kept(threading.local):
    workers: int | None = None


_kept = _Kept()


def clear_plans() -> None:
    """Frees the plans that earlier calls have made, and their threads."""
    library = _library.serial()
    library.check(library.c.thriffty_clear_plans())


def get_workers() -> int:
    """The number of threads for calls without `workers`.

    Unless :func:`set_workers` sets it, this is the value of ``THRIFFTY_THREADS``, else of
    ``OMP_NUM_THREADS``, else the number of cores that the affinity of the process and the quota of
    its control group allow.
    """
    return _kept.workers or _library.serial().c.thriffty_default_threads()


@contextmanager
def set_workers(workers: int) -> Iterator[None]:
    """Sets the number of threads for calls without `workers`, within a context on this thread."""
    before, _kept.workers = _kept.workers, _threads(workers)
    try:
        yield
    finally:
        _kept.workers = before


def _threads(workers: int | None) -> int:
    """The number of threads, counted as in SciPy: -1 is the default and -2 one less.

    The result is 0 if the library is to decide.
    """
    if workers is None:
        return _kept.workers or 0
    threads = index(workers)
    if threads < 0:
        cores = _library.serial().c.thriffty_default_threads()
        threads += cores + 1
        if threads < 1:
            raise argument("workers", workers, f"1 or more, or -1 to -{cores}")
    if threads < 1:
        raise argument("workers", workers, "1 or more, or -1 for the default number")
    return threads


def apply(
    x: np.ndarray,
    kinds: Items,
    inverse: bool = False,
    norm: str | None = None,
    workers: int | None = None,
    mine: bool = False,
    length: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Transforms an array along the axes of `kinds`.

    With `mine`, `x` may be overwritten. `length` is the number of points of physical data along the
    halved axis of an inverse real transform. `out` takes the result if it fits.
    """
    how = _How(inverse, known_norm(norm), _threads(workers))
    if not kinds:
        return x if mine else x.copy()
    if out is not None and (out.ndim != x.ndim or np.may_share_memory(x, out)):
        out = None
    flags = x.flags
    if not flags.aligned:
        x, mine = x.copy(), True
        flags = x.flags
    if flags.c_contiguous:
        return _packed(x, kinds, how, mine, length, out)
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    if not x.transpose(order).flags.c_contiguous:
        return _packed(np.ascontiguousarray(x), kinds, how, True, length, out)
    places = np.argsort(order).tolist()
    moved = tuple((places[axis], kind) for axis, kind in kinds)
    out = None if out is None else out.transpose(order)
    return _packed(x.transpose(order), moved, how, mine, length, out).transpose(places)


def _packed(
    x: np.ndarray,
    kinds: Items,
    how: _How,
    mine: bool,
    length: int | None,
    place: np.ndarray | None = None,
) -> np.ndarray:
    """Transforms a contiguous array."""
    step = _step(x.shape, x.dtype, kinds, length, how)
    if step.first:
        x, mine = _packed(x, step.first, how, mine, None), True
    if place is not None and not step.rest and _fits(place, step.shape, step.to):
        out = place
    elif mine and x.shape == step.shape and x.dtype == step.to and x.flags.writeable:
        out = x
    else:
        out = np.empty(step.shape, step.to)
    if step.call is not None:
        step.call.run(x, out)
    return _packed(out, step.rest, how, True, None) if step.rest else out


def _fits(place: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    flags = place.flags
    usable = flags.c_contiguous and flags.writeable and flags.aligned
    return usable and place.shape == shape and place.dtype == dtype


class _How(NamedTuple):
    """The arguments that transforms along all axes share. With 0 threads the library decides."""

    inverse: bool
    norm: str
    threads: int


class _Call:
    """A call of the library, complete except for the arrays."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype,
        kinds: tuple[str, ...],
        batch: int,
        how: _How,
    ) -> None:
        self._library = _library.serial()
        options = {"kinds": kinds, "batch": batch, **scales(how.norm)}
        options["threads"] = how.threads or None
        request = Request(self._library, shape, dtype, options)
        self._options = request.options
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        names = ("thriffty_forward_serial", "thriffty_inverse_serial")
        self._function = getattr(self._library.c, names[how.inverse])
        places = (ctypes.addressof(self._shape), self._options.handle.value)
        self._wanted = (request.transform, len(shape), *places)

    def run(self, x: np.ndarray, out: np.ndarray) -> None:
        """Transforms `x` into `out`, which may be the same array."""
        arrays = (address(x), x.nbytes, address(out), out.nbytes)
        status = self._function(*self._wanted, *arrays)
        if status != 0:
            self._library.check(status)


class _Step(NamedTuple):
    """One call, and the axes that are transformed before it (`first`) and after it (`rest`)."""

    first: Items
    rest: Items
    # The shape and type of the result.
    shape: tuple[int, ...]
    to: np.dtype
    # None if there are no points.
    call: _Call | None


@lru_cache(maxsize=4096)
def _step(
    shape: tuple[int, ...],
    dtype: np.dtype,
    kinds: Items,
    length: int | None,
    how: _How,
) -> _Step:
    for axis, _ in kinds:
        if shape[axis] == 0 or length == 0:
            raise argument(f"points along axis {axis}", 0, "at least 1")
    inverse = how.inverse
    # Axes with one point need no transform, and cannot be divided.
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
    # The halved axis, which is real at one end, comes first, and in an inverse transform last.
    first, rest = (later, ()) if inverse and halved is not None else ((), later)
    call = None
    if batch > 0 and 0 not in points:
        call = _Call(points, of, named, batch, how)
    return _Step(first, rest, tuple(physical if inverse else spectral), to, call)


def _parts(shape: tuple[int, ...], kinds: Kinds) -> tuple[Kinds, Items]:
    """The axes that one plan can transform, including the halved one, and the postponed axes."""
    now, later = dict(kinds), []
    while len(_joined(shape, now)[1]) > AXES:
        axis = min(axis for axis, kind in now.items() if kind != "r2c")
        later.append((axis, now.pop(axis)))
    return now, tuple(later)


def _joined(shape: Any, kinds: Kinds) -> tuple[int, tuple[int, ...], tuple[str, ...]]:
    """The number of transforms stored one after another, and the points and kinds of each axis."""
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
