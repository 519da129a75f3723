"""Transforms of torch's tensors, with gradients, on CPUs and GPUs, of one process or of several.

The functions have the names and arguments of ``torch.fft``, and of SciPy's cosine and sine
transforms::

    import thriffty.torch as fft
    y = fft.rfftn(x, dim=(-3, -2, -1))

A tensor is transformed on its device, and on a GPU in the order of the current stream. A DTensor is
transformed by all ranks of its mesh. :func:`forward` and :func:`inverse` transform this rank's
brick by a :class:`thriffty.Plan`, which may have any kinds and options.

All are differentiable any number of times, compile as a whole, and take tensors of half precision
as float32, as under autocast. Forward-mode derivatives and ``torch.func.vmap`` are not there:
arrays one after the other are transformed at once as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import _torch_ops
from ._cosines import ENDS
from ._options import INVERSE_TYPES, argument, known_norm
from ._plan import Plan
from ._stages import Transform, cosines, fourier
from ._torch_dtensor import distributed, is_distributed
from ._torch_ops import clear_plans

__all__ = [
    "clear_plans",
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftn",
    "forward",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "inverse",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

Lengths = int | Sequence[int] | None
Placements = Sequence[Any] | None


def forward(x: Tensor, plan: Plan) -> Tensor:
    """Transforms this rank's physical data by a plan. Collective.

    Parameters
    ----------
    x : Tensor
        Of the plan's `input_dtype` and `input_shape`, on its device. It is copied if its order in
        memory is not the plan's.
    plan : thriffty.Plan
        Gradients use it too, or a second one with exchanged scales, which the first gradient makes
        unless ``norm="ortho"``. Keep it as long as they are needed.

    Returns
    -------
    Tensor
        Of the plan's `output_dtype` and `output_shape`.

    Raises
    ------
    ArgumentError
        For a tensor of another type, shape or device; on all ranks.
    """
    return _by_plan(x, plan, False)


def inverse(x: Tensor, plan: Plan) -> Tensor:
    """Transforms this rank's spectral data by a plan, as :func:`forward`. Collective."""
    return _by_plan(x, plan, True)


def _by_plan(x: Any, plan: Plan, inverse: bool) -> Tensor:
    if not isinstance(x, Tensor) or is_distributed(x):
        plan.refuse(argument("x", type(x).__name__, "a tensor of this rank's brick"))
    return _torch_ops.run(x, _torch_ops.number_of(plan), inverse)


# -- by the arguments of torch.fft ----------------------------------------------------------------


def fftn(
    x: Tensor,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    placements: Placements = None,
) -> Tensor:
    """The transform of complex data along `dim`, all axes by default.

    Parameters
    ----------
    x : Tensor or DTensor
        Real data is made complex. A DTensor is cut along one or more axes (``Shard``), also those
        that are transformed, unevenly if need be.
    s : sequence of int, optional
        Points along each of `dim`: `x` is cut, or zeros follow it. A DTensor is not cut.
    dim : sequence of int, optional
        The last ``len(s)`` with `s`, otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is scaled by the number of points, or both by its root.
    modes : int or sequence of int, optional
        The number of lowest frequencies that are kept along each of `dim`; others are neither
        computed nor sent. The result has the shape of a transform of that many points. If their
        number is even and below the length, the middle mode is 0.
    placements : sequence of Placement, optional
        Of the result, for a DTensor; by default those of `x`. A result that is cut along another
        axis than `x`, with ``Shard(1)`` for ``Shard(0)``, saves an exchange.

    Returns
    -------
    Tensor or DTensor
        complex64 for single precision, otherwise complex128.

    Raises
    ------
    ArgumentError
        For axes and lengths without a meaning, and for placements that are not shards.
    """
    return _fourier(x, "c2c", False, s, dim, norm, modes, placements)


def ifftn(
    x: Tensor,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    placements: Placements = None,
) -> Tensor:
    """The inverse of :func:`fftn`; with `modes`, `s` is the shape of the result."""
    return _fourier(x, "c2c", True, s, dim, norm, modes, placements)


def rfftn(
    x: Tensor,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    placements: Placements = None,
) -> Tensor:
    """The transform of real data; the last of `dim` has ``n // 2 + 1`` frequencies.

    Arguments are those of :func:`fftn`; of `n` modes there are ``n // 2 + 1`` frequencies.
    """
    return _fourier(x, "r2c", False, s, dim, norm, modes, placements)


def irfftn(
    x: Tensor,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    placements: Placements = None,
) -> Tensor:
    """The inverse of :func:`rfftn`.

    `s` has the points of the result; without it, the last of `dim` has ``2 * (m - 1)`` for `m`
    frequencies. With `modes` it is needed.
    """
    return _fourier(x, "r2c", True, s, dim, norm, modes, placements)


def fft2(x: Tensor, s: Lengths = None, dim: Lengths = (-2, -1), *more: Any, **named: Any) -> Tensor:
    """:func:`fftn` along the last two axes by default."""
    return fftn(x, s, dim, *more, **named)


def ifft2(
    x: Tensor, s: Lengths = None, dim: Lengths = (-2, -1), *more: Any, **named: Any
) -> Tensor:
    """:func:`ifftn` along the last two axes by default."""
    return ifftn(x, s, dim, *more, **named)


def rfft2(
    x: Tensor, s: Lengths = None, dim: Lengths = (-2, -1), *more: Any, **named: Any
) -> Tensor:
    """:func:`rfftn` along the last two axes by default."""
    return rfftn(x, s, dim, *more, **named)


def irfft2(
    x: Tensor, s: Lengths = None, dim: Lengths = (-2, -1), *more: Any, **named: Any
) -> Tensor:
    """:func:`irfftn` along the last two axes by default."""
    return irfftn(x, s, dim, *more, **named)


def fft(x: Tensor, n: int | None = None, dim: int = -1, *more: Any, **named: Any) -> Tensor:
    """:func:`fftn` along one axis, of `n` points."""
    return fftn(x, n, dim, *more, **named)


def ifft(x: Tensor, n: int | None = None, dim: int = -1, *more: Any, **named: Any) -> Tensor:
    """:func:`ifftn` along one axis, of `n` points."""
    return ifftn(x, n, dim, *more, **named)


def rfft(x: Tensor, n: int | None = None, dim: int = -1, *more: Any, **named: Any) -> Tensor:
    """:func:`rfftn` along one axis, of `n` points."""
    return rfftn(x, n, dim, *more, **named)


def irfft(x: Tensor, n: int | None = None, dim: int = -1, *more: Any, **named: Any) -> Tensor:
    """:func:`irfftn` along one axis, of `n` points."""
    return irfftn(x, n, dim, *more, **named)


# -- cosines and sines ----------------------------------------------------------------------------


def dctn(
    x: Tensor,
    type: int = 2,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    placements: Placements = None,
) -> Tensor:
    """The cosine transform of one of the types 1 to 4 along `dim`, as SciPy's.

    `x` is real or complex. With ``norm="ortho"`` the transform is orthogonal. Other arguments are
    those of :func:`fftn`.
    """
    return _cosines(x, "dct", type, False, s, dim, norm, placements)


def idctn(
    x: Tensor,
    type: int = 2,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    placements: Placements = None,
) -> Tensor:
    """The inverse of :func:`dctn`."""
    return _cosines(x, "dct", type, True, s, dim, norm, placements)


def dstn(
    x: Tensor,
    type: int = 2,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    placements: Placements = None,
) -> Tensor:
    """The sine transform of one of the types 1 to 4 along `dim`; arguments as of :func:`dctn`."""
    return _cosines(x, "dst", type, False, s, dim, norm, placements)


def idstn(
    x: Tensor,
    type: int = 2,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    placements: Placements = None,
) -> Tensor:
    """The inverse of :func:`dstn`."""
    return _cosines(x, "dst", type, True, s, dim, norm, placements)


def dct(
    x: Tensor, type: int = 2, n: int | None = None, dim: int = -1, *more: Any, **named: Any
) -> Tensor:
    """:func:`dctn` along one axis, of `n` points."""
    return dctn(x, type, n, dim, *more, **named)


def idct(
    x: Tensor, type: int = 2, n: int | None = None, dim: int = -1, *more: Any, **named: Any
) -> Tensor:
    """:func:`idctn` along one axis, of `n` points."""
    return idctn(x, type, n, dim, *more, **named)


def dst(
    x: Tensor, type: int = 2, n: int | None = None, dim: int = -1, *more: Any, **named: Any
) -> Tensor:
    """:func:`dstn` along one axis, of `n` points."""
    return dstn(x, type, n, dim, *more, **named)


def idst(
    x: Tensor, type: int = 2, n: int | None = None, dim: int = -1, *more: Any, **named: Any
) -> Tensor:
    """:func:`idstn` along one axis, of `n` points."""
    return idstn(x, type, n, dim, *more, **named)


# -- what they share ------------------------------------------------------------------------------


def _fourier(
    x: Tensor,
    last: str,
    inverse: bool,
    s: Lengths,
    dim: Lengths,
    norm: str | None,
    modes: Lengths,
    placements: Placements,
) -> Tensor:
    x = _numbers(x)
    is_complex = last == "c2c" or inverse
    if is_complex and not x.is_complex():
        x = x.to(torch.promote_types(x.dtype, torch.complex64))
    if not is_complex and x.is_complex():
        raise argument("dtype of x", x.dtype, "real numbers")
    transform = fourier(tuple(x.shape), last, inverse, s, dim, modes)
    return _transformed(x, transform, inverse, norm, placements)


def _cosines(
    x: Tensor,
    family: str,
    type: int,
    inverse: bool,
    s: Lengths,
    dim: Lengths,
    norm: str | None,
    placements: Placements,
) -> Tensor:
    x = _numbers(x)
    transform = cosines(tuple(x.shape), family, type, s, dim)
    if norm != "ortho":
        return _transformed(x, transform, inverse, norm, placements)
    if is_distributed(x):
        found, expected = "'ortho'", "'backward' or 'forward' of a DTensor's cosines and sines"
        raise argument("norm", found, expected)
    # The transforms become orthogonal by factors at their ends.
    before, after = ENDS.get((family, INVERSE_TYPES[type] if inverse else type), ((), ()))
    x = _resized(x, transform.axes, transform.points)
    x = _ends_times(x, transform.axes, before, 2.0**0.5)
    x = _transformed(x, transform, inverse, norm, placements)
    return _ends_times(x, transform.axes, after, 0.5**0.5)


def _numbers(x: Tensor) -> Tensor:
    """Numbers of single or double precision."""
    if x.dtype in (torch.float16, torch.bfloat16):
        return x.float()
    if x.dtype == torch.complex32:
        return x.to(torch.complex64)
    if not x.is_floating_point() and not x.is_complex():
        return x.to(torch.get_default_dtype())
    return x


def _transformed(
    x: Tensor, transform: Transform, inverse: bool, norm: str | None, placements: Placements
) -> Tensor:
    norm = known_norm(norm)

    def whole(x: Tensor) -> Tensor:
        axes, kinds, points, modes = transform
        x = _resized(x, axes, transform.spectral() if inverse else points)
        return _torch_ops.fft(x, axes, ",".join(kinds), points, modes, norm, inverse)

    if is_distributed(x):
        return distributed(x, transform, inverse, norm, placements, whole)
    if placements is not None:
        raise argument("placements", placements, "None for a tensor that is no DTensor")
    return whole(x)


def _resized(x: Tensor, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Tensor:
    """Cut, or with zeros at the end, along each axis."""
    more = [0] * x.dim()
    for axis, length in zip(axes, lengths):
        if length < x.shape[axis]:
            x = x.narrow(axis, 0, length)
        else:
            more[axis] = length - x.shape[axis]
    if not any(more):
        return x
    return torch.nn.functional.pad(x, [n for axis in reversed(more) for n in (0, axis)])


def _ends_times(x: Tensor, axes: tuple[int, ...], ends: tuple[int, ...], factor: float) -> Tensor:
    for axis in axes:
        if ends:
            values = torch.ones(x.shape[axis], dtype=x.real.dtype, device=x.device)
            for end in ends:
                values[end] = factor
            x = x * values.view([-1 if other == axis else 1 for other in range(x.dim())])
    return x
