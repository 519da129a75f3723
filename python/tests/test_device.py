"""Plans on a GPU, with arrays of CuPy and torch. Skipped without either."""

import numpy as np
import pytest

import thriffty

cupy = pytest.importorskip("cupy")
if not cupy.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

SHAPE = (12, 10, 14)


def field(dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def close(found, expected):
    found = np.asarray(found)
    assert found.dtype == expected.dtype
    error = np.linalg.norm((found - expected).ravel()) / np.linalg.norm(expected.ravel())
    assert error < (1e-6 if expected.real.dtype == np.float32 else 1e-14), error


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float64", "float32"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cupy(dtype, order):
    x = field(dtype)
    expected = (np.fft.fftn if x.dtype.kind == "c" else np.fft.rfftn)(x)
    with thriffty.Plan(SHAPE, dtype, device=0, input_order=order, output_order=order) as plan:
        there = cupy.asarray(x, order=order)
        y = plan.forward(there)
        assert isinstance(y, cupy.ndarray)
        close(cupy.asnumpy(y), expected.astype(plan.output_dtype))
        close(cupy.asnumpy(plan.inverse(y)), x)
        np.testing.assert_array_equal(cupy.asnumpy(there), x)


def test_cosines_and_batches():
    scipy_fft = pytest.importorskip("scipy.fft")
    x = np.random.default_rng(0).standard_normal((3, 8, 6))
    with thriffty.Plan((8, 6), float, kinds=("dct2", "dst3"), batch=3, device=0) as plan:
        y = plan.forward(cupy.asarray(x))
        close(cupy.asnumpy(y), scipy_fft.dst(scipy_fft.dct(x, 2, axis=1), 3, axis=2))


def test_padding_and_open_space():
    x, lengths = field("float64"), (24, 20, 28)
    with thriffty.Plan(SHAPE, float, zero_padded=lengths, device=0) as plan:
        y = plan.forward(cupy.asarray(x))
        close(cupy.asnumpy(y), np.fft.rfftn(x, lengths, axes=(0, 1, 2)))
        close(cupy.asnumpy(plan.inverse(y)), x)
        kernel = plan.green_function(0.1)
        with thriffty.Plan(SHAPE, float, zero_padded=lengths) as host:
            close(cupy.asnumpy(kernel), host.green_function(0.1))


def test_walls():
    x, kinds = field("float64"), ("periodic", "tridiagonal", "periodic")
    found = []
    for device, array in (("host", x), (0, cupy.asarray(x))):
        with thriffty.Plan(SHAPE, float, kinds=kinds, device=device) as plan:
            plan.set_schemes("staggered2")
            plan.set_stretched("dirichlet-neumann", np.arange(11) ** 1.5)
            found.append(plan.inverse(plan.apply("poisson", plan.forward(array), SHAPE)))
    error = abs(cupy.asnumpy(found[1]) - found[0]).max()
    assert error < 1e-12 * abs(found[0]).max(), error


def test_torch():
    torch = pytest.importorskip("torch")
    x = field("complex64")
    with thriffty.Plan(SHAPE, "complex64", device=0) as plan:
        there = torch.asarray(x, device="cuda:0")
        y = plan.forward(there)
        assert y.device == there.device and y.dtype == torch.complex64
        close(y.cpu().numpy(), np.fft.fftn(x).astype("complex64"))
        torch.testing.assert_close(y, torch.fft.fftn(there), rtol=1e-4, atol=1e-3)


def test_streams():
    x = field("complex128")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, thriffty.Plan(SHAPE, device=0, stream=stream) as plan:
        # Work before and after on the same stream, without waiting in between.
        y = plan.inverse(2 * plan.forward(cupy.asarray(x) + 1) / 2)
        close(cupy.asnumpy(y), x + 1)
    # The transform waits for work on another stream.
    with thriffty.Plan(SHAPE, device=0) as plan:
        with stream:
            slow = cupy.asarray(x)
            for _ in range(100):
                slow = slow * 1.0
            y = plan.forward(slow)
            cupy.cuda.Device().synchronize()
        close(cupy.asnumpy(y), np.fft.fftn(x))


def test_arrays_of_the_plan():
    x = field("float64")
    plan = thriffty.Plan(SHAPE, float, device=0)
    here, there = plan.empty_in_place()
    here[...] = cupy.asarray(x)
    assert plan.forward(here, out=there) is there
    close(cupy.asnumpy(there), np.fft.rfftn(x))
    a, b = plan.empty_input(), plan.empty_output()
    assert a.shape == SHAPE and not a.any() and b.dtype == complex
    plan.close()
    # The arrays keep their memory.
    a[...] = 1
    assert float(a.sum()) == a.size


def test_copies_and_ghost_points():
    x = field("float64")
    with thriffty.Plan(SHAPE, float, device=0) as plan:
        around = cupy.full([n + 2 for n in SHAPE], cupy.nan)
        inner, brick = around[1:-1, 1:-1, 1:-1], tuple(slice(0, n) for n in SHAPE)
        with thriffty.ParallelCopy(plan, [(brick, cupy.asarray(x))], [(brick, inner)]) as copy:
            copy.run()
        with thriffty.Halo(plan, [(brick, around)], 1, 1) as halo:
            halo.run()
        np.testing.assert_array_equal(cupy.asnumpy(around), np.pad(x, 1, mode="wrap"))
        with pytest.raises(ValueError, match="source: found on the host, expected on a device"):
            thriffty.ParallelCopy(plan, [(brick, x)], [(brick, inner)])


def test_wrong_memory():
    x = field("complex128")
    with thriffty.Plan(SHAPE, device=0) as plan:
        with pytest.raises(ValueError, match="x: found on the host, expected on a device"):
            plan.forward(x)
        with pytest.raises(ValueError, match="out: found on the host"):
            plan.forward(cupy.asarray(x), out=np.empty_like(x))
        with pytest.raises(ValueError, match="memory of x: found strides"):
            plan.forward(cupy.asarray(x, order="F"))
    with thriffty.Plan(SHAPE) as plan:
        with pytest.raises(ValueError, match="x: found on a device, expected on the host"):
            plan.forward(cupy.asarray(x), out=np.empty_like(x))
