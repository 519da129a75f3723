"""Transforms of JAX's arrays, with gradients, on CPUs and GPUs, of one device or of a mesh.

The functions have the names and arguments of ``jax.numpy.fft``, and of SciPy's cosine and sine
transforms::

    import thriffty.jax as fft
    y = fft.rfftn(x, axes=(-3, -2, -1))

They work in `jit`, `grad` and `vmap`. With `sharding` an array is distributed over the devices of a
mesh, along axes that are transformed as well::

    cut = NamedSharding(mesh, PartitionSpec("ranks"))
    y = fft.rfftn(x, sharding=cut, out_sharding=NamedSharding(mesh, PartitionSpec(None, "ranks")))

If each process of ``jax.distributed`` has one GPU of the mesh, all on one host, the library
exchanges the data. Otherwise it transforms the axes that devices have whole, and XLA exchanges the
data in between, because XLA runs several calls on CPUs in an order of its own on each device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ._cosines import ENDS
from ._jax_calls import How, transformed
from ._jax_sharded import distributed
from ._options import INVERSE_TYPES, argument, known_norm
from ._stages import Transform, cosines, fourier, replaced

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


def fftn(
    a: Any,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The transform of complex data along `axes`, all by default.

    Parameters
    ----------
    a : array_like
        Real data is made complex.
    s : sequence of int, optional
        Points along each of `axes`: `a` is cut, or zeros follow it.
    axes : sequence of int, optional
        The last ``len(s)`` with `s`, otherwise all.
    norm : {"backward", "ortho", "forward"}, optional
        The direction that is scaled by the number of points, or both by its root.
    modes : int or sequence of int, optional
        The number of lowest frequencies that are kept along each of `axes`; others are neither
        computed nor sent. The result has the shape of a transform of that many points. If their
        number is even and below the length, the middle mode is 0.
    sharding : NamedSharding, optional
        How `a` is distributed. Each device has another part.
    out_sharding : NamedSharding, optional
        How the result is distributed; by default as `a`. To have another axis cut saves an
        exchange.

    Returns
    -------
    array
        complex64 for single precision, otherwise complex128.

    Raises
    ------
    ArgumentError
        For axes and lengths without a meaning.
    """
    return _fourier(a, "c2c", False, s, axes, norm, modes, sharding, out_sharding)


def ifftn(
    a: Any,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The inverse of :func:`fftn`; with `modes`, `s` is the shape of the result."""
    return _fourier(a, "c2c", True, s, axes, norm, modes, sharding, out_sharding)


def rfftn(
    a: Any,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The transform of real data; the last of `axes` has ``n // 2 + 1`` frequencies.

    Arguments are those of :func:`fftn`; of `n` modes there are ``n // 2 + 1`` frequencies.
    """
    return _fourier(a, "r2c", False, s, axes, norm, modes, sharding, out_sharding)


def irfftn(
    a: Any,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    modes: Lengths = None,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The inverse of :func:`rfftn`.

    `s` has the points of the result; without it, the last of `axes` has ``2 * (m - 1)`` for `m`
    frequencies. With `modes` it is needed.
    """
    return _fourier(a, "r2c", True, s, axes, norm, modes, sharding, out_sharding)


def fft2(a: Any, s: Lengths = None, axes: Lengths = (-2, -1), *more: Any, **named: Any) -> Array:
    """:func:`fftn` along the last two axes by default."""
    return fftn(a, s, axes, *more, **named)


def ifft2(a: Any, s: Lengths = None, axes: Lengths = (-2, -1), *more: Any, **named: Any) -> Array:
    """:func:`ifftn` along the last two axes by default."""
    return ifftn(a, s, axes, *more, **named)


def rfft2(a: Any, s: Lengths = None, axes: Lengths = (-2, -1), *more: Any, **named: Any) -> Array:
    """:func:`rfftn` along the last two axes by default."""
    return rfftn(a, s, axes, *more, **named)


def irfft2(a: Any, s: Lengths = None, axes: Lengths = (-2, -1), *more: Any, **named: Any) -> Array:
    """:func:`irfftn` along the last two axes by default."""
    return irfftn(a, s, axes, *more, **named)


def fft(a: Any, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Array:
    """:func:`fftn` along one axis, of `n` points."""
    return fftn(a, n, axis, *more, **named)


def ifft(a: Any, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Array:
    """:func:`ifftn` along one axis, of `n` points."""
    return ifftn(a, n, axis, *more, **named)


def rfft(a: Any, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Array:
    """:func:`rfftn` along one axis, of `n` points."""
    return rfftn(a, n, axis, *more, **named)


def irfft(a: Any, n: int | None = None, axis: int = -1, *more: Any, **named: Any) -> Array:
    """:func:`irfftn` along one axis, of `n` points."""
    return irfftn(a, n, axis, *more, **named)


# -- cosines and sines ----------------------------------------------------------------------------


def dctn(
    a: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The cosine transform of one of the types 1 to 4 along `axes`, as SciPy's.

    `a` is real or complex. With ``norm="ortho"`` the transform is orthogonal. Other arguments are
    those of :func:`fftn`.
    """
    return _cosines(a, "dct", type, False, s, axes, norm, sharding, out_sharding)


def idctn(
    a: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The inverse of :func:`dctn`."""
    return _cosines(a, "dct", type, True, s, axes, norm, sharding, out_sharding)


def dstn(
    a: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The sine transform of one of the types 1 to 4 along `axes`; arguments as of :func:`dctn`."""
    return _cosines(a, "dst", type, False, s, axes, norm, sharding, out_sharding)


def idstn(
    a: Any,
    type: int = 2,
    s: Lengths = None,
    axes: Lengths = None,
    norm: str | None = None,
    *,
    sharding: Sharding = None,
    out_sharding: Sharding = None,
) -> Array:
    """The inverse of :func:`dstn`."""
    return _cosines(a, "dst", type, True, s, axes, norm, sharding, out_sharding)


def dct(
    a: Any, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> Array:
    """:func:`dctn` along one axis, of `n` points."""
    return dctn(a, type, n, axis, *more, **named)


def idct(
    a: Any, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> Array:
    """:func:`idctn` along one axis, of `n` points."""
    return idctn(a, type, n, axis, *more, **named)


def dst(
    a: Any, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> Array:
    """:func:`dstn` along one axis, of `n` points."""
    return dstn(a, type, n, axis, *more, **named)


def idst(
    a: Any, type: int = 2, n: int | None = None, axis: int = -1, *more: Any, **named: Any
) -> Array:
    """:func:`idstn` along one axis, of `n` points."""
    return idstn(a, type, n, axis, *more, **named)


# -- what they share ------------------------------------------------------------------------------


def _fourier(
    a: Any,
    last: str,
    inverse: bool,
    s: Lengths,
    axes: Lengths,
    norm: str | None,
    modes: Lengths,
    sharding: Sharding,
    out_sharding: Sharding,
) -> Array:
    x = _numbers(a)
    is_complex = last == "c2c" or inverse
    if is_complex and not jnp.iscomplexobj(x):
        x = x.astype(jnp.result_type(x, jnp.complex64))
    if not is_complex and jnp.iscomplexobj(x):
        raise argument("dtype of a", x.dtype, "real numbers")
    transform = fourier(x.shape, last, inverse, s, axes, modes)
    return _transformed(x, transform, inverse, norm, sharding, out_sharding)


def _cosines(
    a: Any,
    family: str,
    type: int,
    inverse: bool,
    s: Lengths,
    axes: Lengths,
    norm: str | None,
    sharding: Sharding,
    out_sharding: Sharding,
) -> Array:
    x = _numbers(a)
    transform = cosines(x.shape, family, type, s, axes)
    if norm != "ortho":
        return _transformed(x, transform, inverse, norm, sharding, out_sharding)
    # The transforms become orthogonal by factors at their ends.
    before, after = ENDS.get((family, INVERSE_TYPES[type] if inverse else type), ((), ()))
    x = _resized(x, transform.axes, transform.points)
    x = _ends_times(x, transform.axes, before, 2.0**0.5)
    x = _transformed(x, transform, inverse, norm, sharding, out_sharding)
    return _ends_times(x, transform.axes, after, 0.5**0.5)


def _numbers(a: Any) -> Array:
    """Numbers of single or double precision."""
    x = jnp.asarray(a)
    if x.dtype in (jnp.float16, jnp.bfloat16):
        return x.astype(jnp.float32)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x.astype(jnp.result_type(float))
    return x


def _transformed(
    x: Array,
    transform: Transform,
    inverse: bool,
    norm: str | None,
    sharding: Sharding,
    out_sharding: Sharding,
) -> Array:
    norm = known_norm(norm)
    x = _resized(x, transform.axes, transform.spectral() if inverse else transform.points)
    if sharding is not None:
        return distributed(x, transform, inverse, norm, sharding, out_sharding or sharding)
    if out_sharding is not None:
        raise argument("out_sharding", out_sharding, "None without sharding")
    return transformed(x, How(transform, norm, inverse))


def _resized(x: Array, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """Cut, or with zeros at the end, along each axis."""
    shape = tuple(replaced(x.shape, axes, lengths))
    x = x[tuple(map(slice, shape))]
    if x.shape == shape:
        return x
    return jnp.pad(x, [(0, n - m) for n, m in zip(shape, x.shape)])


def _ends_times(x: Array, axes: tuple[int, ...], ends: tuple[int, ...], factor: float) -> Array:
    for axis in axes:
        for end in ends:
            x = x.at[(slice(None),) * axis + (end,)].multiply(factor)
    return x
