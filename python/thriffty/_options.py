"""The arguments of a plan, converted for the C library."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from ._library import AXES, ArgumentError, Brick, Library

# The type of the inverse of a cosine or sine transform, by its type.
INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}
# Values of `thriffty_transform`.
C2C, R2C, R2R = range(3)
# The options for the forward and inverse factors, and their values for NumPy's names.
SCALES = ("forward_scale", "inverse_scale")
NORMS = {
    "backward": ("none", "full"),
    "ortho": ("symmetric", "symmetric"),
    "forward": ("full", "none"),
}
# The norm that has the scales of another one exchanged.
EXCHANGED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
# The types of real data and of their spectra.
COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = {name: real for real, name in COMPLEX.items()}

Slices = slice | Sequence[slice]


def argument(what: str, found: Any, expected: Any) -> ArgumentError:
    """The error for a wrong argument, with both values."""
    return ArgumentError(f"{what}: found {found}, expected {expected}")


def integer(what: str, value: Any) -> int:
    """A signed integer of 64 bits. Larger ones are refused, because ctypes would truncate them."""
    number = index(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise argument(what, number, "an integer of 64 bits")
    return number


def known_norm(norm: str | None) -> str:
    """The norm, after checking it; "backward" by default."""
    if norm is not None and norm not in NORMS:
        raise argument("norm", repr(norm), "'backward', 'ortho' or 'forward'")
    return norm or "backward"


def scales(norm: str | None) -> dict[str, str]:
    """The options for NumPy's name."""
    return dict(zip(SCALES, NORMS[known_norm(norm)]))


class Options:
    """`thriffty_options`, freed with this object. Plans do not need them after they are made."""

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
        """The text of an option's value."""
        get = self._library.c.thriffty_options_get
        return self._library.text(get, self.handle, name.encode())


class Request:
    """A transform of a grid: the shapes, types and bricks of both sides, and the options."""

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
        # The library has replaced boundary conditions by kinds.
        self.kinds = _resolved(self.options["kinds"].split(","), is_complex)
        self.transform = _transform(self.kinds, is_complex)
        spectral = COMPLEX[self.dtype.name] if self.transform == R2C else self.dtype
        self.dtypes = (self.dtype, np.dtype(spectral))
        # The length of the transform along each axis, and the number of frequencies that are kept.
        self.lengths: tuple[int, ...] = given.get("zero_padded") or self.shape
        self.modes: tuple[int, ...] = given.get("modes") or self.lengths
        halved = [n // 2 + 1 if kind == "r2c" else n for n, kind in zip(self.modes, self.kinds)]
        self.shapes = (self.shape, tuple(halved))
        sides = zip(("input", "output"), bricks, self.shapes)
        self.bricks = tuple(None if it is None else brick_of(what, it, n) for what, it, n in sides)


def _of_axes(form: str, value: Any, axes: int) -> Any:
    """One value per axis, from a value for all axes or a name of an order."""
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
    """The text by which the library reads a value."""
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
    """The address of a CUDA stream of CuPy or torch, or the address itself."""
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return getattr(stream, name)
    return stream


def _resolved(kinds: list[str], is_complex: bool) -> tuple[str, ...]:
    """The kinds of all axes. For real data, the last c2c axis becomes r2c."""
    if "c2c" in kinds and "r2c" not in kinds and not is_complex:
        kinds[len(kinds) - 1 - kinds[::-1].index("c2c")] = "r2c"
    return tuple(kinds)


def _transform(kinds: tuple[str, ...], is_complex: bool) -> int:
    """The value of `thriffty_transform`. The library checks whether the kinds go together."""
    if is_complex:
        return C2C
    return R2C if "r2c" in kinds or "c2c" in kinds else R2R


def brick_of(what: str, slices: Slices, shape: tuple[int, ...]) -> Brick:
    """The brick for slices, one for each axis."""
    slices = (slices,) if isinstance(slices, slice) else tuple(slices)
    if len(slices) != len(shape):
        raise argument(f"slices of {what}", len(slices), f"one for each of {len(shape)} axes")
    brick = Brick()
    for axis, part in enumerate(slices):
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise argument(f"slices of {what}", part, "slice(start, stop)")
        # The library checks bounds against the grid, because it has the bricks of all ranks.
        brick.lo[axis] = 0 if part.start is None else integer("start", part.start)
        brick.hi[axis] = shape[axis] if part.stop is None else integer("stop", part.stop)
    return brick
