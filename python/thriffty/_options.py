"""What a plan is asked for, as the C library wants it."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from ._library import AXES, ArgumentError, Brick, Library

# Of cosine and sine transforms, the type of the inverse by the type.
INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}
# Values of `thriffty_transform`.
C2C, R2C, R2R = range(3)
# The options of the factors forward and inverse, and their values by NumPy's names.
SCALES = ("forward_scale", "inverse_scale")
NORMS = {
    "backward": ("none", "full"),
    "ortho": ("symmetric", "symmetric"),
    "forward": ("full", "none"),
}
# The norm that has the scales of another one exchanged.
EXCHANGED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
# The numbers of a transform: of real ones, those of its spectrum.
COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = {name: real for real, name in COMPLEX.items()}

Slices = slice | Sequence[slice]


def argument(what: str, found: Any, expected: Any) -> ArgumentError:
    """The error of an argument, with both values."""
    return ArgumentError(f"{what}: found {found}, expected {expected}")


def integer(what: str, value: Any) -> int:
    """A signed integer of 64 bits: ctypes would cut off others."""
    number = index(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise argument(what, number, "an integer of 64 bits")
    return number


def known_norm(norm: str | None) -> str:
    """The name of the factors; "backward" by default."""
    if norm is not None and norm not in NORMS:
        raise argument("norm", repr(norm), "'backward', 'ortho' or 'forward'")
    return norm or "backward"


def scales(norm: str | None) -> dict[str, str]:
    """The options that NumPy's name stands for."""
    return dict(zip(SCALES, NORMS[known_norm(norm)]))


class Options:
    """`thriffty_options`, which end with this object. Plans do not need them once they are made."""

    def __init__(self, library: Library, values: Mapping[str, Any], stream: Any = None) -> None:
        self._library, c = library, library.c
        self.handle = ctypes.c_void_p()
        library.check(c.thriffty_options_create(self.handle))
        weakref.finalize(self, c.thriffty_options_destroy, self.handle)
        for name, value in values.items():
            text = _text(value)
            if text != library.options[name]["default"]:
                status = c.thriffty_options_set(self.handle, name.encode(), text.encode())
                library.check(status)
        library.check(c.thriffty_options_set_stream(self.handle, stream_address(stream)))

    def __getitem__(self, name: str) -> str:
        """The value of an option as text."""
        get = self._library.c.thriffty_options_get
        return self._library.text(get, self.handle, name.encode())


class Request:
    """A transform of a grid: the shapes and types of both sides, bricks, and options by name."""

    def __init__(
        self,
        library: Library,
        shape: int | Sequence[int],
        dtype: Any,
        values: Mapping[str, Any],
        bricks: tuple[Slices | None, Slices | None] = (None, None),
        stream: Any = None,
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
        known = library.options
        given = {name: _of_axes(known[name]["form"], it, axes) for name, it in values.items()}
        is_complex = self.dtype.kind == "c"
        usual = ("c2c",) * (axes - 1) + ("c2c" if is_complex else "r2c",)
        precision = REAL.get(self.dtype.name, self.dtype.name).replace("float", "f")
        given.update(kinds=given.get("kinds") or usual, precision=precision)
        self.options = Options(library, given, stream)
        # Boundary conditions have become kinds.
        self.kinds = _resolved(self.options["kinds"].split(","), is_complex)
        self.transform = _transform(self.kinds, is_complex)
        spectral = COMPLEX[self.dtype.name] if self.transform == R2C else self.dtype
        self.dtypes = (self.dtype, np.dtype(spectral))
        # Of the transform along each axis, and how many of its frequencies are kept.
        self.lengths: tuple[int, ...] = given.get("zero_padded") or self.shape
        self.modes: tuple[int, ...] = given.get("modes") or self.lengths
        halved = [n // 2 + 1 if kind == "r2c" else n for n, kind in zip(self.modes, self.kinds)]
        self.shapes = (self.shape, tuple(halved))
        sides = zip(("input", "output"), bricks, self.shapes)
        self.bricks = tuple(None if it is None else brick_of(what, it, n) for what, it, n in sides)


def _of_axes(form: str, value: Any, axes: int) -> Any:
    """The values of all axes, where one may stand for all, or a name for an order."""
    if value is None or isinstance(value, str) and value == "default":
        return None
    if form == "order" and isinstance(value, str):
        rows = tuple(range(axes))
        return {"C": rows, "F": rows[::-1]}.get(value, value)
    if form == "kinds":
        if isinstance(value, str):
            named = tuple(kind.strip() for kind in value.split(","))
            return named if len(named) > 1 else named * axes
        return tuple("none" if kind is None else kind for kind in value)
    if form == "lengths":
        if isinstance(value, str):
            raise argument("lengths", repr(value), "a number, or one for each axis")
        return tuple(map(index, value)) if isinstance(value, Iterable) else (index(value),) * axes
    return value


def _text(value: Any) -> str:
    """The value of an option as the library reads it."""
    if value is None:
        return "default"
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, Iterable):
        return ",".join(map(_text, value))
    return str(value)


def as_path(what: str, found: Any) -> str:
    """The text of a path."""
    if not isinstance(found, (str, bytes, os.PathLike)):
        raise argument(what, repr(found), "a path")
    return os.fsdecode(found)


def stream_address(stream: Any) -> int | None:
    """The CUDA stream of CuPy, of torch, or a number."""
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return getattr(stream, name)
    return stream


def _resolved(kinds: list[str], is_complex: bool) -> tuple[str, ...]:
    """The kinds of all axes, of which the last of kind c2c is r2c for real data."""
    if "c2c" in kinds and "r2c" not in kinds and not is_complex:
        kinds[len(kinds) - 1 - kinds[::-1].index("c2c")] = "r2c"
    return tuple(kinds)


def _transform(kinds: tuple[str, ...], is_complex: bool) -> int:
    """The family; which kinds go together is checked by the library."""
    if is_complex:
        return C2C
    return R2C if "r2c" in kinds or "c2c" in kinds else R2R


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
