"""Public functions made from their names: one body serves ``fftn``, ``ifft2``, ``rfftn`` and so on.

For NumPy, torch and JAX there is a body for Fourier transforms, one for cosine and sine transforms,
and for each a short one along a single axis, whose arguments have other names. A body takes what
the name stands for, a :class:`Function`, and then the public arguments. :func:`named` fills in the
first and writes the documentation, so that type checkers and ``help()`` see a function like any
other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_FAMILIES = {"fft": "c2c", "rfft": "r2c", "hfft": "hermitian", "dct": "dct", "dst": "dst"}


class Function(NamedTuple):
    """What the name of a function stands for."""

    # c2c, r2c, hermitian, dct or dst.
    family: str
    inverse: bool


# ``fftn`` and ``dctn`` have the documentation of their bodies.
_SEVERAL_AXES = {
    "ifftn": "The inverse of :func:`fftn`.",
    "rfftn": "The transform of real data, with ``n // 2 + 1`` frequencies along the last of"
    " `{axes}`.\n\nThe arguments are the same as for :func:`fftn`.",
    "irfftn": "The inverse of :func:`rfftn`.\n\n`s` is the number of points of the result along"
    " each of `{axes}`. Without it, the last\nof them gets ``2 * (m - 1)`` points from ``m``"
    " frequencies.",
    "hfftn": "The real transform of Hermitian-symmetric data, of which `x` is the first half.",
    "ihfftn": "The inverse of :func:`hfftn`.",
    "idctn": "The inverse of :func:`dctn`.",
    "dstn": "The sine transform of type 1 to 4 along `{axes}`, with the arguments of :func:`dctn`.",
    "idstn": "The inverse of :func:`dstn`.",
}
_WITH_MODES = {
    "ifftn": "\n\nWith `modes`, `s` is required: it is the shape of the result along `{axes}`.",
    "rfftn": " With ``modes=n``, the last axis\nhas ``n // 2 + 1`` frequencies.",
    "irfftn": " With `modes`, `s` is required.",
}


def named(
    name: str, body: Callable[Concatenate[Function, P], R], **defaults: Any
) -> Callable[P, R]:
    """The public function of this name.

    Parameters
    ----------
    name
        A name of ``scipy.fft``: it says what is computed and along which axes by default.
    body
        The transform, with the :class:`Function` as its first argument.
    defaults
        Defaults that replace those of `body`.
    """
    base = name.removeprefix("i").rstrip("n2")
    function = Function(_FAMILIES[base], name.startswith("i"))
    signature = inspect.signature(body)
    _, *others = signature.parameters.values()
    shown = [it.replace(default=defaults.get(it.name, it.default)) for it in others]
    # A copy with this name, which errors of wrong arguments begin with.
    named_body = _renamed(cast(FunctionType, body), name)
    named_body.__defaults__ = tuple(
        it.default
        for it in shown
        if it.kind is it.POSITIONAL_OR_KEYWORD and it.default is not it.empty
    )

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return named_body(function, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = body.__module__
    call.__doc__ = _documentation(name, body.__doc__, signature)
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return call


def _renamed(body: FunctionType, name: str) -> FunctionType:
    copy = FunctionType(body.__code__, body.__globals__, name)
    copy.__qualname__ = name
    copy.__kwdefaults__ = body.__kwdefaults__
    return copy


def _documentation(name: str, of_body: str | None, signature: inspect.Signature) -> str | None:
    if name.endswith("2"):
        return f":func:`{name[:-1]}n` along the last two axes by default."
    if not name.endswith("n"):
        return f":func:`{name}n` along one axis, with `n` points."
    if name not in _SEVERAL_AXES:
        return of_body
    text = _SEVERAL_AXES[name]
    if "modes" in signature.parameters:
        text += _WITH_MODES.get(name, "")
    return text.format(axes="dim" if "dim" in signature.parameters else "axes")
