"""Transforms by name, for the argument `transforms` of `thriffty.PFFT`.

The names are the same as in `mpi4py_fft.fftw`. They select the transform that PFFT computes along
some axes, and compute nothing themselves. `functools.partial(dctn, type=3)` selects one of the four
cosine transforms. You can also pass functions of other libraries that have these names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from ._library import ArgumentError
from ._options import INVERSE_TYPES

__all__ = ["fftn", "ifftn", "rfftn", "irfftn", "dctn", "idctn", "dstn", "idstn"]

_FOURIER = {"fftn": "c2c", "rfftn": "r2c"}
_TRIGONOMETRIC = {"dctn": "dct", "dstn": "dst"}


def _refuse(name: str) -> NoReturn:
    raise ArgumentError(f"{name} names a transform for PFFT; thriffty.{name} computes one")


def fftn(*_: Any, **__: Any) -> NoReturn:
    """The Fourier transform of complex data. Its inverse is `ifftn`."""
    _refuse("fftn")


def ifftn(*_: Any, **__: Any) -> NoReturn:
    """The inverse of `fftn`."""
    _refuse("ifftn")


def rfftn(*_: Any, **__: Any) -> NoReturn:
    """The Fourier transform of real data, with n // 2 + 1 frequencies along the last axis."""
    _refuse("rfftn")


def irfftn(*_: Any, **__: Any) -> NoReturn:
    """The inverse of `rfftn`."""
    _refuse("irfftn")


def dctn(*_: Any, type: int = 2, **__: Any) -> NoReturn:
    """The cosine transform of type 1 to 4, as in SciPy and FFTW."""
    _refuse("dctn")


def idctn(*_: Any, type: int = 2, **__: Any) -> NoReturn:
    """The inverse of the cosine transform of this type."""
    _refuse("idctn")


def dstn(*_: Any, type: int = 2, **__: Any) -> NoReturn:
    """The sine transform of type 1 to 4, as in SciPy and FFTW."""
    _refuse("dstn")


def idstn(*_: Any, type: int = 2, **__: Any) -> NoReturn:
    """The inverse of the sine transform of this type."""
    _refuse("idstn")


def kind_of_pair(axes: tuple[int, ...], pair: Any) -> str:
    """The kind of a pair of transforms, forward and backward.

    Parameters
    ----------
    axes
        The axes that the pair is for; errors name them.
    pair
        Two functions of this module, or `functools.partial` of them.

    Returns
    -------
    str
        'c2c', 'r2c', or 'dct1' to 'dst4'.
    """
    try:
        forward, backward = map(_name_and_type, pair)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"transforms[{axes}] is {pair!r}, not a pair of functions like (dctn, idctn)"
        ) from None
    for name, inverse, kind in _pairs(forward[1]):
        if forward[0] == name:
            if backward != inverse:
                raise ArgumentError(
                    f"transforms[{axes}] is {_text(forward)} with {_text(backward)};"
                    f" the inverse is {_text(inverse)}"
                )
            return kind
    raise ArgumentError(
        f"transforms[{axes}] begins with {_text(forward)}; possible are fftn, rfftn,"
        " and dctn, idctn, dstn, idstn of a type from 1 to 4"
    )


Named = tuple[str, int]


def _pairs(type: int) -> list[tuple[str, Named, str]]:
    """The forward transforms of this type: the name, the inverse, and the kind of each."""
    pairs = [(name, ("i" + name, 2), kind) for name, kind in _FOURIER.items()]
    if type in INVERSE_TYPES:
        for name, kind in _TRIGONOMETRIC.items():
            pairs.append((name, ("i" + name, type), f"{kind}{type}"))
            # The inverse of a type, unscaled, is the transform of another type.
            pairs.append(("i" + name, (name, type), f"{kind}{INVERSE_TYPES[type]}"))
    return pairs


def _name_and_type(function: Callable) -> Named:
    """The name of a function, and the `type` that `functools.partial` has bound, by default 2."""
    type = 2
    if isinstance(function, functools.partial):
        type = function.keywords.get("type", 2)
        function = function.func
    name = getattr(function, "__name__", None)
    if name is None:
        raise TypeError(f"{function!r} has no name")
    return name, type


def _text(named: Named) -> str:
    name, type = named
    return f"{name} of type {type}" if name.lstrip("i")[:3] in ("dct", "dst") else name


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})
