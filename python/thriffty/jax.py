"""Transforms of JAX arrays with gradients, on CPUs and GPUs, for one device or a mesh.

The functions have the names and arguments of ``jax.numpy.fft``, and of SciPy's cosine and sine
transforms::

    import thriffty.jax as fft
    y = fft.rfftn(x, axes=(-3, -2, -1))

They work under `jit`, `grad` and `vmap`. With `sharding` an array is distributed over the devices
of a mesh, and may be cut along transformed axes::

    cut = NamedSharding(mesh, PartitionSpec("ranks"))
    y = fft.rfftn(x, sharding=cut, out_sharding=NamedSharding(mesh, PartitionSpec(None, "ranks")))

If each process of ``jax.distributed`` has one GPU of the mesh and all are on one host, the library
exchanges the data. Otherwise it only transforms axes that are whole on each device, and XLA
exchanges data in between, because on CPUs XLA may run calls in a different order on each device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ._functions import with_lengths
from ._jax_calls import How, transformed
from ._jax_sharded import distributed
from ._options import argument
from ._stages import Arrays, Transform
from ._wrappers import Function, named

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

Lengths = int | Sequence[int] | None
Sharding = jax.sharding.NamedSharding | None
Array = jax.Array


def _fourier(
    function: Function,
    a: Any,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The transform of complex data along `axes`, by default all of them.

    Parameters
    ----------
    a : array_like
        Real data is made complex.
    s : sequence of int, optional
        Points along each of `axes`: `a` is cut, or padded with zeros at the end.
    axes : sequence of int, optional
        By default the last ``len(s)`` axes if `s` is given, and otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is divided by the number of points; "ortho" divides both by its root.
    modes : int or sequence of int, optional
        The number of lowest frequencies that are kept along each of `axes`. The others are neither
        computed nor sent, and the result has the shape of a transform of `modes` points. If `modes`
        is even and below the length, the middle mode is 0.
    sharding : NamedSharding, optional
        How `a` is distributed. No two devices may have the same part.
    out_sharding : NamedSharding, optional
        How the result is distributed; by default like `a`. Cutting the result along another axis
        saves an exchange.

    Returns
    -------
    array
        complex64 for single precision, otherwise complex128.

    Raises
    ------
    ArgumentError
        If axes or lengths are invalid.
    """
    return _arrays.fourier(function, a, s, axes, norm, modes, (sharding, out_sharding))


def _fourier_along_one(
    function: Function,
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    return _arrays.fourier(function, a, n, axis, norm, modes, (sharding, out_sharding))


def _cosines(
    function: Function,
    a: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The cosine transform of type 1 to 4 along `axes`, as in SciPy.

    `a` is real or complex. With ``norm="ortho"`` the transform is orthogonal. The other arguments
    are the same as for :func:`fftn`.
    """
    return _arrays.cosines(function, a, type, s, axes, norm, (sharding, out_sharding))


def _cosines_along_one(
    function: Function,
    a: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    return _arrays.cosines(function, a, type, n, axis, norm, (sharding, out_sharding))


fftn = named("fftn", _fourier)
ifftn = named("ifftn", _fourier)
rfftn = named("rfftn", _fourier)
irfftn = named("irfftn", _fourier)
fft2 = named("fft2", _fourier, axes=(-2, -1))
ifft2 = named("ifft2", _fourier, axes=(-2, -1))
rfft2 = named("rfft2", _fourier, axes=(-2, -1))
irfft2 = named("irfft2", _fourier, axes=(-2, -1))
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


# -- what is particular to JAX --------------------------------------------------------------------


class _Arrays(Arrays[Array, tuple[Sharding, Sharding]]):
    name = "a"

    def numbers(self, x: Any) -> Array:
        x = jnp.asarray(x)
        if x.dtype in (jnp.float16, jnp.bfloat16):
            return x.astype(jnp.float32)
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            return x.astype(jnp.result_type(float))
        return x

    def is_complex(self, x: Array) -> bool:
        return jnp.iscomplexobj(x)

    def as_complex(self, x: Array) -> Array:
        return x.astype(jnp.result_type(x, jnp.complex64))

    def resized(self, x: Array, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
        shape = with_lengths(x.shape, axes, lengths)
        x = x[tuple(map(slice, shape))]
        if x.shape == shape:
            return x
        return jnp.pad(x, [(0, n - m) for n, m in zip(shape, x.shape)])

    def scaled(self, x: Array, axis: int, points: tuple[int, ...], factor: float) -> Array:
        for point in points:
            x = x.at[(slice(None),) * axis + (point,)].multiply(factor)
        return x

    def transformed(
        self,
        x: Array,
        transform: Transform,
        inverse: bool,
        norm: str,
        where: tuple[Sharding, Sharding],
    ) -> Array:
        sharding, out_sharding = where
        lengths = transform.spectral() if inverse else transform.points
        x = self.resized(x, transform.axes, lengths)
        if sharding is not None:
            return distributed(x, transform, inverse, norm, sharding, out_sharding or sharding)
        if out_sharding is not None:
            raise argument("out_sharding", out_sharding, "None without sharding")
        return transformed(x, How(transform, norm, inverse))


_arrays = _Arrays()
