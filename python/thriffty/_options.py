"""What a plan is asked for, as the C library wants it."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from ._library import AXES, ArgumentError, Brick, Library, Options

# Values of `thriffty_kind`.
KINDS = {
    "none": 1,
    "c2c": 2,
    "r2c": 3,
    "dct1": 4,
    "dct2": 5,
    "dct3": 6,
    "dct4": 7,
    "dst1": 8,
    "dst2": 9,
    "dst3": 10,
    "dst4": 11,
}
# Of cosine and sine transforms, the type of the inverse by the type.
INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}
# Values of `thriffty_transform`.
C2C, R2C, R2R = range(3)
# The factors forward and inverse, by NumPy's names: values of `thriffty_scale`.
NORMS = {"backward": (0, 1), "ortho": (2, 2), "forward": (1, 0)}
# Values of `thriffty_tune`.
MODEL, MEASURE, WISDOM, EXACT = range(4)
# The numbers of a transform: of real ones, those of its spectrum.
COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = {name: real for real, name in COMPLEX.items()}

_TYPES: dict[str, Any] = {field[0]: field[1] for field in Options._fields_}

Order = str | Sequence[int]
Slices = slice | Sequence[slice]


def argument(what: str, found: Any, expected: Any) -> ArgumentError:
    """The error of an argument, with both values."""
    return ArgumentError(f"{what}: found {found}, expected {expected}")


def integer(what: str, value: Any, bits: int = 64) -> int:
    """A signed integer of so many bits: ctypes would cut off others."""
    number = index(value)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise argument(what, number, f"an integer of {bits} bits")
    return number


def known_norm(norm: str | None) -> str:
    """The name of the factors; "backward" by default."""
    if norm is not None and norm not in NORMS:
        raise argument("norm", repr(norm), "'backward', 'ortho' or 'forward'")
    return norm or "backward"


class Request:
    """A transform of a grid: shapes, types, bricks and orders of both sides."""

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: Any,
        kinds: str | Sequence[str | None] | None,
        bricks: tuple[Slices | None, Slices | None],
        order: Order | tuple[Order, Order] | None,
        lengths: tuple[int | Sequence[int] | None, int | Sequence[int] | None] = (None, None),
    ) -> None:
        points = shape if isinstance(shape, Iterable) else (shape,)
        self.shape: tuple[int, ...] = tuple(integer("points", n) for n in points)
        axes = len(self.shape)
        if not 1 <= axes <= AXES:
            raise argument("number of axes", axes, f"1 to {AXES}")
        self.dtype = np.dtype(dtype).newbyteorder("=")
        if self.dtype.name not in COMPLEX and self.dtype.name not in REAL:
            types = ", ".join([*COMPLEX, *REAL])
            raise argument("dtype", self.dtype, f"one of {types}")
        self.kinds = _kinds(kinds, self.dtype.kind == "c", axes)
        self.transform = _transform(self.kinds, self.dtype.kind == "c")
        spectral = COMPLEX[self.dtype.name] if self.transform == R2C else self.dtype
        self.dtypes = (self.dtype, np.dtype(spectral))
        self.transform_lengths = _lengths("transform", lengths[0], axes)
        self.modes = _lengths("modes", lengths[1], axes)
        kept = self.modes or self.transform_lengths or self.shape
        halved = [n // 2 + 1 if kind == "r2c" else n for n, kind in zip(kept, self.kinds)]
        self.shapes = (self.shape, tuple(halved))
        self.orders = _orders(order, axes)
        given = zip(("input", "output"), bricks, self.shapes)
        self.bricks = tuple(None if it is None else brick_of(what, it, n) for what, it, n in given)

    def options(self, library: Library, batch: int, norm: str | None, **others: Any) -> Options:
        """The options of the plan; those of `others` are not None."""
        options = Options()
        library.check(library.c.thriffty_options_init(options, ctypes.sizeof(options)))
        axes = len(self.shape)
        name = REAL.get(self.dtype.name, self.dtype.name)
        options.precision = int(name.removeprefix("float"))
        options.kinds[:axes] = [KINDS[kind] for kind in self.kinds]
        options.input_order[:axes], options.output_order[:axes] = self.orders
        options.forward_scale, options.inverse_scale = NORMS[known_norm(norm)]
        options.batch = integer("batch", batch)
        if options.batch < 1:
            raise argument("batch", batch, "1 or more")
        options.transform[:axes] = self.transform_lengths or (0,) * axes
        options.modes[:axes] = self.modes or (0,) * axes
        for field, value in others.items():
            if value is None:
                continue
            if _TYPES[field] is ctypes.c_char_p:
                if not isinstance(value, str):
                    raise argument(field, repr(value), "a text")
                value = value.encode()
            setattr(options, field, value)
        return options


def tuning(
    tune: str | float, wisdom: str | os.PathLike[str] | None, recipe: str | None
) -> dict[str, Any]:
    """The fields of options by which the recipe is chosen."""
    asked = [tune != "model", wisdom is not None, recipe is not None]
    if sum(asked) > 1:
        raise argument("ways to choose the recipe", "several", "one of tune, wisdom and recipe")
    if wisdom is not None:
        return {"tune": WISDOM, "tune_text": as_path("wisdom", wisdom)}
    if recipe is not None:
        if not isinstance(recipe, str):
            raise argument("recipe", repr(recipe), "a text")
        return {"tune": EXACT, "tune_text": recipe}
    if tune in ("model", "measure"):
        return {"tune": MODEL if tune == "model" else MEASURE}
    if isinstance(tune, (int, float)) and 0 <= tune < math.inf:
        return {"tune": MEASURE, "tune_seconds": float(tune)}
    raise argument("tune", repr(tune), "'model', 'measure' or a number of seconds")


def as_path(what: str, found: Any) -> str:
    """The text of a path."""
    if not isinstance(found, (str, bytes, os.PathLike)):
        raise argument(what, repr(found), "a path")
    return os.fsdecode(found)


def device_number(device: int | None) -> int | None:
    """The number of a device; None for the host."""
    if device is None:
        return None
    number = integer("device", device, 32)
    if number < 0:
        raise argument("device", device, "0 or more, or None for the host")
    return number


def stream_address(stream: Any) -> int | None:
    """The CUDA stream of CuPy, of torch, or a number."""
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return getattr(stream, name)
    return stream


def _lengths(what: str, lengths: int | Sequence[int] | None, axes: int) -> tuple[int, ...] | None:
    """A length for each axis, if any is given."""
    if lengths is None:
        return None
    given = lengths if isinstance(lengths, Iterable) else (lengths,) * axes
    named = tuple(integer(what, n) for n in given)
    if len(named) != axes:
        raise argument(f"number of lengths of {what}", len(named), axes)
    if min(named) < 1:
        raise argument(what, named, "1 or more along each axis")
    return named


def _kinds(
    kinds: str | Sequence[str | None] | None, is_complex: bool, axes: int
) -> tuple[str, ...]:
    if kinds is None:
        named = ["c2c"] * axes
        if not is_complex:
            named[-1] = "r2c"
        return tuple(named)
    given = [kinds] * axes if isinstance(kinds, str) else kinds
    named = ["none" if kind is None else kind for kind in given]
    if len(named) != axes:
        raise argument("number of kinds", len(named), axes)
    for kind in named:
        if kind not in KINDS:
            raise argument("kind", repr(kind), "one of " + ", ".join(KINDS))
    return tuple(named)


def _transform(kinds: tuple[str, ...], is_complex: bool) -> int:
    """The family; which kinds go together is checked by the library."""
    if is_complex:
        return C2C
    return R2C if "r2c" in kinds or "c2c" in kinds else R2R


def _orders(
    order: Order | tuple[Order, Order] | None, axes: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    both: Any = (order, order)
    if isinstance(order, (tuple, list)) and len(order) == 2 and not hasattr(order[0], "__index__"):
        both = order
    return (_order(both[0], axes), _order(both[1], axes))


def _order(order: Order | None, axes: int) -> tuple[int, ...]:
    if order is None or order == "C":
        return tuple(range(axes))
    if isinstance(order, str):
        if order != "F":
            raise argument("order", repr(order), "'C', 'F' or the axes, slowest first")
        return tuple(reversed(range(axes)))
    order = tuple(map(index, order))
    if sorted(order) != list(range(axes)):
        raise argument("order", order, f"the axes 0 to {axes - 1}, slowest first")
    return order


def brick_of(what: str, slices: Slices, shape: tuple[int, ...]) -> Brick:
    """The brick that slices name, one for each axis."""
    slices = (slices,) if isinstance(slices, slice) else tuple(slices)
    if len(slices) != len(shape):
        raise argument(f"slices of {what}", len(slices), f"one for each of {len(shape)} axes")
    brick = Brick()
    for axis, part in enumerate(slices):
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise argument(f"slices of {what}", part, "slice(start, stop)")
        # Bounds beyond the grid are the library's to refuse: it knows those of all ranks.
        brick.lo[axis] = 0 if part.start is None else integer("start", part.start)
        brick.hi[axis] = shape[axis] if part.stop is None else integer("stop", part.stop)
    return brick
