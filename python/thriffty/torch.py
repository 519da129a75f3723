"""Transforms of torch tensors with gradients, on CPUs and GPUs, for one process or several.

The functions have the names and arguments of ``torch.fft``, and of SciPy's cosine and sine
transforms::

    import thriffty.torch as fft
    y = fft.rfftn(x, dim=(-3, -2, -1))

A tensor is transformed on its device, and on a GPU in the order of the current stream. A DTensor is
transformed by all ranks of its mesh. :func:`forward` and :func:`inverse` transform this rank's
brick by a :class:`thriffty.Plan`, which may have any kinds and options.

All functions are differentiable any number of times and compile with ``fullgraph=True``. Tensors of
half precision become float32, also under autocast. Forward-mode derivatives and ``torch.func.vmap``
are not supported. You do not need vmap for batches: leading axes are transformed in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import _torch_ops
from ._options import argument
from ._placements import shards
from ._plan import Plan
from ._stages import Arrays, Transform
from ._torch_dtensor import distributed, is_distributed
from ._torch_ops import clear_plans
from ._wrappers import Function, named

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
        A tensor of the plan's `input_dtype` and `input_shape`, on its device. It is copied if its
        order in memory is not the plan's.
    plan : thriffty.Plan
        Keep it as long as you need gradients. With ``norm="ortho"`` gradients use the same plan;
        otherwise the first gradient makes a second one with exchanged scales.

    Returns
    -------
    Tensor
        A tensor of the plan's `output_dtype` and `output_shape`.

    Raises
    ------
    ArgumentError
        If the type, shape or device is wrong; on all ranks.
    """
    return _by_plan(x, plan, False)


def inverse(x: Tensor, plan: Plan) -> Tensor:
    """Transforms this rank's spectral data by a plan, like :func:`forward`. Collective."""
    return _by_plan(x, plan, True)


def _by_plan(x: Any, plan: Plan, inverse: bool) -> Tensor:
    if not isinstance(x, Tensor) or is_distributed(x):
        plan.refuse(argument("x", type(x).__name__, "a tensor of this rank's brick"))
    return _torch_ops.run(x, _torch_ops.number_of(plan), inverse)


# -- by the arguments of torch.fft and SciPy ------------------------------------------------------


def _fourier(
    function: Function,
    x: Tensor,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    placements: Placements = None,
) -> Tensor:
    """The transform of complex data along `dim`, by default along all axes.

    Parameters
    ----------
    x : Tensor or DTensor
        Real data is made complex. A DTensor is cut (``Shard``) along one or more axes, which may be
        transformed axes, and unevenly if need be.
    s : sequence of int, optional
        Points along each of `dim`: `x` is cut, or padded with zeros at the end. A DTensor is not
        cut.
    dim : sequence of int, optional
        By default the last ``len(s)`` axes if `s` is given, and otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is divided by the number of points; "ortho" divides both by its root.
    modes : int or sequence of int, optional
        The number of lowest frequencies that are kept along each of `dim`. The others are neither
        computed nor sent, and the result has the shape of a transform of `modes` points. If `modes`
        is even and below the length, the middle mode is 0.
    placements : sequence of Placement, optional
        The placements of the result, if `x` is a DTensor; by default those of `x`. Cutting the
        result along another axis, with ``Shard(1)`` for ``Shard(0)``, saves an exchange.

    Returns
    -------
    Tensor or DTensor
        complex64 for single precision, otherwise complex128.

    Raises
    ------
    ArgumentError
        If axes or lengths are invalid, or placements are not shards.
    """
    return _tensors.fourier(function, x, s, dim, norm, modes, placements)


def _fourier_along_one(
    function: Function,
    x: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    placements: Placements = None,
) -> Tensor:
    return _fourier(function, x, n, dim, norm, modes=modes, placements=placements)


def _cosines(
    function: Function,
    x: Tensor,
    type: int = 2,
    s: Lengths = None,
    dim: Lengths = None,
    norm: str | None = None,
    *,
    placements: Placements = None,
) -> Tensor:
    """The cosine transform of type 1 to 4 along `dim`, as in SciPy.

    `x` is real or complex. With ``norm="ortho"`` the transform is orthogonal. The other arguments
    are the same as for :func:`fftn`.
    """
    if norm == "ortho" and is_distributed(x):
        found, expected = "'ortho'", "'backward' or 'forward' of a DTensor's cosines and sines"
        raise argument("norm", found, expected)
    return _tensors.cosines(function, x, type, s, dim, norm, placements)


def _cosines_along_one(
    function: Function,
    x: Tensor,
    type: int = 2,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    placements: Placements = None,
) -> Tensor:
    return _cosines(function, x, type, n, dim, norm, placements=placements)


fftn = named("fftn", _fourier)
ifftn = named("ifftn", _fourier)
rfftn = named("rfftn", _fourier)
irfftn = named("irfftn", _fourier)
fft2 = named("fft2", _fourier, dim=(-2, -1))
ifft2 = named("ifft2", _fourier, dim=(-2, -1))
rfft2 = named("rfft2", _fourier, dim=(-2, -1))
irfft2 = named("irfft2", _fourier, dim=(-2, -1))
fft = named("fft", _fourier_along_one)
ifft = named("ifft", _fourier_along_one)
rfft = named("rfft", _fourier_along_one)
irfft = named("irfft", _fourier_along_one)
dctn = named("dctn", _cosines)
idctn = named("idctn", _cosines)
dstn = named("dstn", _cosines)
idstn = named("idstn", _cosines)
dct = named("dct", _cosines_along_one)
idct = named("idct", _cosines_along_one)
dst = named("dst", _cosines_along_one)
idst = named("idst", _cosines_along_one)


# -- what is particular to tensors ----------------------------------------------------------------


class _Tensors(Arrays[Tensor, Placements]):
    name = "x"

    def numbers(self, x: Tensor) -> Tensor:
        if is_distributed(x):
            # Converting a tensor whose parts must still be added would add them.
            shards(x.placements, x.dim())
        if x.dtype in (torch.float16, torch.bfloat16):
            return x.float()
        if x.dtype == torch.complex32:
            return x.to(torch.complex64)
        if not x.is_floating_point() and not x.is_complex():
            return x.to(torch.get_default_dtype())
        return x

    def is_complex(self, x: Tensor) -> bool:
        return x.is_complex()

    def as_complex(self, x: Tensor) -> Tensor:
        return x.to(torch.promote_types(x.dtype, torch.complex64))

    def resized(self, x: Tensor, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Tensor:
        more = [0] * x.dim()
        for axis, length in zip(axes, lengths):
            if length < x.shape[axis]:
                x = x.narrow(axis, 0, length)
            else:
                more[axis] = length - x.shape[axis]
        if not any(more):
            return x
        return torch.nn.functional.pad(x, [n for axis in reversed(more) for n in (0, axis)])

    def scaled(self, x: Tensor, axis: int, points: tuple[int, ...], factor: float) -> Tensor:
        values = torch.ones(x.shape[axis], dtype=x.real.dtype, device=x.device)
        for point in points:
            values[point] = factor
        return x * values.view([-1 if other == axis else 1 for other in range(x.dim())])

    def transformed(
        self,
        x: Tensor,
        transform: Transform,
        inverse: bool,
        norm: str,
        placements: Placements,
    ) -> Tensor:
        def whole(x: Tensor) -> Tensor:
            axes, kinds, points, modes = transform
            x = self.resized(x, axes, transform.spectral() if inverse else points)
            return _torch_ops.fft(x, axes, ",".join(kinds), points, modes, norm, inverse)

        if is_distributed(x):
            return distributed(x, transform, inverse, norm, placements, whole)
        if placements is not None:
            raise argument("placements", placements, "None for a tensor that is no DTensor")
        return whole(x)


_tensors = _Tensors()
