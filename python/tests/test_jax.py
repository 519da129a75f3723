"""`thriffty.jax`: values and gradients against `jax.numpy.fft`, on four CPU devices.

Skipped without JAX.
"""

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
from reference import COSINES

import thriffty

if importlib.util.find_spec("jax") is None:
    pytest.skip("there is no JAX", allow_module_level=True)

# Before JAX looks for devices.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import thriffty.jax as fft  # noqa: E402
from thriffty._jax_sharded import passes  # noqa: E402
from thriffty._stages import Transform  # noqa: E402

jax.config.update("jax_enable_x64", True)

NORMS = ("backward", "ortho", "forward")
AXES = [None, (-3, -2, -1), (1, 2), (0, 3), (4,), (3, 2), (0, 1, 2, 3, 4)]


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def close(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    precise = expected.dtype in (np.float64, np.complex128)
    far = np.linalg.norm(np.ravel(found - expected))
    assert far <= (1e-14 if precise else 2e-6) * np.linalg.norm(np.ravel(expected)) + 1e-300


@pytest.mark.parametrize("axes, norm", list(zip(AXES, [None, *NORMS, *NORMS])))
def test_values_are_those_of_jax(axes, norm):
    x = random(2, 3, 6, 5, 4)
    z = x + 1j * x[:, ::-1]
    for name in ("fftn", "ifftn"):
        for given in (x, z.astype(np.complex64)):
            expected = getattr(np.fft, name)(given, axes=axes, norm=norm)
            close(getattr(fft, name)(given, axes=axes, norm=norm), expected)
    y = np.fft.rfftn(x, axes=axes, norm=norm)
    close(fft.rfftn(x, axes=axes, norm=norm), y)
    every = range(5) if axes is None else axes
    s = [x.shape[axis] for axis in every]
    for lengths in (s, [n + 1 - 2 * (n % 2) for n in s]):
        close(fft.irfftn(y, lengths, axes, norm), np.fft.irfftn(y, lengths, every, norm))


def test_other_names_and_types():
    x = random(4, 6, 5)
    for name in ("fft", "ifft", "rfft", "irfft"):
        ours, theirs = getattr(fft, name), getattr(np.fft, name)
        close(ours(x, 7, 1), theirs(x, 7, 1))
        close(getattr(fft, f"{name}2")(x, (5, 4)), getattr(np.fft, f"{name}2")(x, (5, 4)))
    close(fft.fft(jnp.arange(6)), np.fft.fft(np.arange(6)))
    assert fft.rfft(jnp.ones(6, jnp.bfloat16)).dtype == jnp.complex64
    assert fft.rfft2(jnp.zeros((0, 4, 6))).shape == (0, 4, 4)
    assert set(fft.__all__) <= set(dir(fft))
    assert inspect.signature(fft.irfft2).parameters["axes"].default == (-2, -1)
    assert "`axes`" in fft.rfftn.__doc__ and "`modes`" in fft.ifftn.__doc__


@pytest.mark.parametrize("kind", COSINES)
def test_cosines_and_sines_are_those_of_scipy(kind):
    family, type = kind[:3], int(kind[3])
    x = random(3, 5, 4)
    for norm in NORMS:
        for name in (f"{family}n", f"i{family}n"):
            expected = getattr(scipy.fft, name)(x, type, axes=(1, 2), norm=norm)
            close(getattr(fft, name)(x, type, axes=(1, 2), norm=norm), expected)
    close(getattr(fft, family)(x, type, 6, 0), getattr(scipy.fft, family)(x, type, 6, 0))


def is_gradient(call, x):
    """Checks the gradient of the linear `call` by its product with a direction."""
    y, back = jax.vjp(call, x)
    weights = random(*y.shape) + (1j * random(*y.shape) if jnp.iscomplexobj(y) else 0)
    step = random(*x.shape) + (1j * random(*x.shape) if jnp.iscomplexobj(x) else 0)
    (found,) = back(jnp.asarray(weights, y.dtype))
    # JAX's products do not conjugate.
    expected, product = (weights * call(step)).sum().real, (found * step).sum().real
    assert found.dtype == x.dtype and abs(expected - product) <= 1e-13 * abs(expected) + 1e-12


def test_gradients():
    norm = "forward"
    x, z = random(2, 5, 6), random(2, 5, 6) + 1j * random(2, 5, 6)[::-1]
    axes, half = (1, 2), np.fft.rfftn(x, axes=(1, 2))
    kept = fft.rfftn(x, axes=axes, modes=(4, 5))
    for call, given in [
        (lambda x: fft.fftn(x, norm=norm), z),
        (lambda x: fft.ifftn(x, axes=axes, norm=norm), z),
        (lambda x: fft.rfftn(x, axes=axes, norm=norm), x),
        (lambda x: fft.rfftn(x, (4, 3), axes, norm), x),
        (lambda x: fft.irfftn(x, (5, 6), axes, norm), half),
        (lambda x: fft.irfftn(x, None, axes, norm), half),
        (lambda x: fft.rfftn(x, axes=axes, norm=norm, modes=(4, 5)), x),
        (lambda x: fft.irfftn(x, (5, 6), axes, norm, modes=(4, 5)), kept),
        (lambda x: fft.fftn(x, axes=axes, norm=norm, modes=2), z),
    ]:
        is_gradient(call, given)
    for kind in COSINES:
        for name in (f"{kind[:3]}n", f"i{kind[:3]}n"):
            call = getattr(fft, name)
            is_gradient(lambda x: call(x, int(kind[3]), axes=axes, norm=norm), x)


def loss_of(rfftn, irfftn):
    def loss(x):
        y = rfftn(x)
        return (jnp.abs(y) ** 4).sum() + (irfftn(y * y, x.shape) * x).sum()

    return loss


def test_transformations_of_jax():
    """jit, grad, vmap over a leading axis and another, and the second derivative."""
    x = random(3, 4, 6)
    ours, theirs = loss_of(fft.rfftn, fft.irfftn), loss_of(jnp.fft.rfftn, jnp.fft.irfftn)
    for change in [
        jax.grad,
        lambda f: jax.jit(jax.vmap(jax.grad(f))),
        lambda f: jax.vmap(jax.grad(f), in_axes=2),
        lambda f: jax.grad(lambda x: (jax.grad(f)(x) ** 2).sum()),
        lambda f: jax.vmap(jax.vmap(lambda x: f(x[None, None]))),
    ]:
        found, expected = change(ours)(x), change(theirs)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


CUTS = [
    ((4,), [("a",), ("a",)]),
    ((4,), [("a",), (None, "a")]),
    ((4,), [(None, None, "a"), ("a",)]),
    ((2, 2), [("a", "b"), (None, "a", "b")]),
    ((2, 2), [(("b", "a"),), (None, "a", "b")]),
    ((2, 2), [("a", None, "b"), ("a", "b")]),
]


@pytest.mark.parametrize("shape, cuts", CUTS)
def test_devices_share_an_array(shape, cuts):
    devices = np.array(jax.devices()).reshape(shape)
    mesh = Mesh(devices, ("a", "b")[: devices.ndim])
    given, made = (NamedSharding(mesh, PartitionSpec(*cut)) for cut in cuts)
    x = random(4, 8, 12)
    there, back = dict(sharding=given, out_sharding=made), dict(sharding=made, out_sharding=given)
    for forward, inverse, expected, whole in [
        (fft.fftn, fft.ifftn, jnp.fft.fftn, x + 1j),
        (fft.dctn, fft.idctn, fft.dctn, x),
    ]:
        y = jax.jit(lambda x: forward(x, **there))(whole)
        assert y.sharding.is_equivalent_to(made, 3)
        close(y, expected(whole))
        close(jax.jit(lambda y: inverse(y, **back))(y), whole)
    scaled = random(*x.shape)
    found, right = (
        jax.jit(jax.grad(lambda x: (jnp.abs(call(x)) ** 2 * scaled).sum()))(x)
        for call in (lambda x: fft.dctn(x, **there), fft.dctn)
    )
    close(found, right)


def test_real_arrays_are_shared():
    mesh = Mesh(np.array(jax.devices()), "a")
    cut = [NamedSharding(mesh, PartitionSpec(*[None] * axis, "a")) for axis in range(3)]
    x = random(4, 8, 12)
    for given, made in [(cut[0], cut[1]), (cut[0], cut[0]), (cut[2], cut[0])]:
        there = dict(sharding=given, out_sharding=made)
        back = dict(sharding=made, out_sharding=given)
        y = jax.jit(lambda x: fft.rfftn(x, **there))(x)
        close(y, np.fft.rfftn(x))
        close(fft.irfftn(y, x.shape, **back), x)
        ours = loss_of(lambda x: fft.rfftn(x, **there), lambda y, s: fft.irfftn(y, s, **back))
        found = jax.jit(jax.grad(ours))(x)
        right = jax.grad(loss_of(jnp.fft.rfftn, jnp.fft.irfftn))(x)
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11 * np.abs(right).max())
        y = fft.rfftn(x, modes=(4, 4, 6), **there)
        close(y, fft.rfftn(x, modes=(4, 4, 6)))


def test_passes_leave_axes_whole():
    def found(given, made, kinds, inverse=False, fits=lambda spec, left: True):
        axes = tuple(axis for axis, kind in enumerate(kinds) if kind != "none")
        transform = Transform(axes, tuple(kinds[axis] for axis in axes), (8,), (8,))
        return [tuple(it) for it in passes(given, made, transform, inverse, fits)]

    a, b, c = ("a", None, None), (None, "a", None), (None, None, "a")
    fourier, real = ("c2c",) * 3, ("c2c", "c2c", "r2c")
    assert found(a, b, fourier) == [(a, (1, 2)), (b, (0,))]
    assert found(a, a, fourier) == [(a, (1, 2)), (b, (0,))]
    assert found(a, a, ("none", *real[1:])) == [(a, (1, 2))]
    # The halved axis comes first, and in the inverse last.
    assert found(a, c, real) == [(a, (1, 2)), (c, (0,))]
    assert found(c, b, real) == [(b, (0, 2)), (a, (1,))]
    assert found(c, b, real, True) == [(c, (0, 1)), (b, (2,))]
    assert found(a, c, real, True) == [(a, (1,)), (c, (0,)), (a, (2,))]
    # If devices would have different numbers of points.
    assert found(a, c, real, True, lambda spec, left: spec != c) == [(a, (1,)), (b, (0, 2))]
    with pytest.raises(thriffty.ArgumentError, match="axis 0 can be whole in between"):
        found(("a", "b"), ("a", "b"), ("c2c", "c2c"))


def test_wrong_arguments():
    x = random(4, 8)
    mesh = Mesh(np.array(jax.devices()), "a")
    cut, whole = (NamedSharding(mesh, PartitionSpec(*names)) for names in (("a",), ()))
    for call, text in [
        (lambda: fft.fftn(x, axes=(0, 0)), "axes: found"),
        (lambda: fft.fftn(x, norm="none"), "norm: found 'none'"),
        (lambda: fft.rfftn(x * 1j), "dtype of a: found complex128"),
        (lambda: fft.rfftn(x, modes=9), "modes: found"),
        (lambda: fft.irfftn(x, modes=3), "s: found None"),
        (lambda: fft.dctn(x, 5), "type: found 5"),
        (lambda: fft.fftn(x, sharding=whole), "parts by sharding: found 1, expected 4"),
        (lambda: fft.fftn(x, sharding=cut, out_sharding=whole), "parts by out_sharding"),
        (lambda: fft.fftn(x, out_sharding=cut), "None without sharding"),
    ]:
        with pytest.raises(thriffty.ArgumentError, match=text):
            call()
    # An error of the library is an error of the call.
    with pytest.raises(jax.errors.JaxRuntimeError, match="ArgumentError: .*dct1"):
        fft.dctn(x[:1], 1)


def test_processes_are_ranks(tmp_path):
    """Two processes whose calls exchange data. Each call needs the result of the previous one."""
    program = Path(__file__).with_name("jax_ranks.py")
    environment = os.environ | {"XLA_FLAGS": ""}
    processes = [
        subprocess.Popen([sys.executable, program, str(rank), str(tmp_path)], env=environment)
        for rank in range(2)
    ]
    assert [process.wait(100) for process in processes] == [0, 0]
