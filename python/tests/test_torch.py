"""`thriffty.torch`: values against torch and SciPy, gradients, and compiling.

Skipped without torch. If there is a GPU, it is tested too.
"""

import inspect
import itertools

import numpy as np
import pytest
import scipy.fft
from reference import COSINES

import thriffty

torch = pytest.importorskip("torch")
fft = pytest.importorskip("thriffty.torch")
ops = torch.ops.thriffty

NORMS = ("backward", "ortho", "forward")
DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]


def random(*shape, dtype=torch.float64, grad=False, device="cpu"):
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.randn(shape, dtype=dtype, generator=generator).to(device)
    return x.requires_grad_() if grad else x


def close(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    precise = expected.dtype in (torch.float64, torch.complex128)
    far = torch.linalg.vector_norm(found - expected)
    assert far <= (1e-14 if precise else 2e-6) * torch.linalg.vector_norm(expected)


AXES = [None, (-3, -2, -1), (1, 2), (0, 3), (4,), (3, 2), (0, 1, 2, 3, 4)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", [None, *NORMS])
@pytest.mark.parametrize("dim", AXES)
def test_values_are_those_of_torch(dim, norm, device):
    x = random(2, 3, 6, 5, 4, device=device)
    z = torch.complex(x, x.flip(2))
    for name in ("fftn", "ifftn"):
        for given in (x, z, z.to(torch.complex64), z.conj()):
            ours, theirs = getattr(fft, name), getattr(torch.fft, name)
            close(ours(given, dim=dim, norm=norm), theirs(given, dim=dim, norm=norm))
    y = torch.fft.rfftn(x, dim=dim, norm=norm)
    close(fft.rfftn(x, dim=dim, norm=norm), y)
    axes = range(5) if dim is None else dim
    s = [x.shape[axis] for axis in axes]
    for lengths in (None, s, [n + 1 for n in s], [max(1, n - 1) for n in s]):
        close(fft.irfftn(y, lengths, dim, norm), torch.fft.irfftn(y, lengths, dim, norm))
        if lengths is not None:
            close(fft.rfftn(x, lengths, dim, norm), torch.fft.rfftn(x, lengths, dim, norm))


def test_other_names_and_types():
    x = random(4, 6, 5)
    for name in ("fft", "ifft", "rfft", "irfft"):
        ours, theirs = getattr(fft, name), getattr(torch.fft, name)
        close(ours(x, 7, 1), theirs(x, 7, 1))
        close(getattr(fft, f"{name}2")(x, (5, 4)), getattr(torch.fft, f"{name}2")(x, (5, 4)))
    close(fft.fft(torch.arange(6)), torch.fft.fft(torch.arange(6)))
    for half in (torch.float16, torch.bfloat16):
        close(fft.rfft(x.to(half)), torch.fft.rfft(x.to(half).float()))
    strided = random(4, 6, 10)[:, ::2, 1::3]
    close(fft.rfftn(strided), torch.fft.rfftn(strided))
    assert fft.rfft2(torch.zeros(0, 4, 6)).shape == (0, 4, 4)
    assert set(fft.__all__) <= set(dir(fft))
    assert inspect.signature(fft.irfft2).parameters["dim"].default == (-2, -1)
    assert "`dim`" in fft.rfftn.__doc__ and "`modes`" in fft.ifftn.__doc__


@pytest.mark.parametrize("kind", COSINES)
@pytest.mark.parametrize("norm", NORMS)
def test_cosines_and_sines_are_those_of_scipy(kind, norm):
    family, type = kind[:3], int(kind[3])
    x = random(3, 5, 4)
    for name in (f"{family}n", f"i{family}n"):
        expected = getattr(scipy.fft, name)(x.numpy(), type, axes=(1, 2), norm=norm)
        close(getattr(fft, name)(x, type, dim=(1, 2), norm=norm), torch.from_numpy(expected))
    one = getattr(scipy.fft, family)(x.numpy(), type, 6, 0)
    close(getattr(fft, family)(x, type, 6, 0), torch.from_numpy(one))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("length", [5, 6])
def test_gradients_of_fourier_transforms(norm, length, device):
    x = random(2, 3, length, grad=True, device=device)
    z = random(2, 3, length, dtype=torch.complex128, grad=True, device=device)
    half = random(2, 3, length // 2 + 1, dtype=torch.complex128, grad=True, device=device)
    for call, given in [
        (lambda x: fft.fftn(x, norm=norm), z),
        (lambda x: fft.ifftn(x, dim=(1, 2), norm=norm), z),
        (lambda x: fft.rfftn(x, dim=(1, 2), norm=norm), x),
        (lambda x: fft.rfftn(x, (4, 3), (2, 1), norm=norm), x),
        (lambda x: fft.irfftn(x, (3, length), norm=norm), half),
    ]:
        assert torch.autograd.gradcheck(call, given)
        assert torch.autograd.gradgradcheck(call, given)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("modes", [(3, 4), (4, 5), (5, 6), 2])
def test_gradients_with_modes(modes, device):
    x = random(2, 5, 6, grad=True, device=device)
    y = fft.rfftn(x, dim=(1, 2), modes=modes)
    kept = (modes, modes) if isinstance(modes, int) else modes
    assert y.shape == (2, kept[0], kept[1] // 2 + 1)
    back = y.detach().requires_grad_()
    z = torch.fft.fftn(x.detach(), dim=(1, 2))[:, : kept[0], : kept[1]].requires_grad_()
    for call, given in [
        (lambda x: fft.rfftn(x, dim=(1, 2), modes=modes), x),
        (lambda y: fft.irfftn(y, (5, 6), (1, 2), modes=modes), back),
        (lambda z: fft.ifftn(z, (5, 6), (1, 2), modes=modes), z),
        (lambda z: fft.fftn(z, dim=(1, 2), modes=1), z),
    ]:
        assert torch.autograd.gradcheck(call, given)


def test_modes_are_the_lowest():
    x = random(2, 8, 9)
    whole = torch.fft.rfftn(x, dim=(1, 2))
    y = fft.rfftn(x, dim=(1, 2), modes=(5, 5))
    close(y, whole[:, [0, 1, 2, -2, -1], :3])
    cut = torch.zeros_like(whole)
    cut[:, [0, 1, 2, -2, -1], :3] = y
    close(fft.irfftn(y, (8, 9), (1, 2), modes=5), torch.fft.irfftn(cut, (8, 9), (1, 2)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", COSINES)
def test_gradients_of_cosines_and_sines(kind, device):
    family, type = kind[:3], int(kind[3])
    x = random(2, 4, 3, grad=True, device=device)
    z = random(2, 4, 3, dtype=torch.complex128, grad=True, device=device)
    for name, norm in itertools.product((f"{family}n", f"i{family}n"), NORMS):
        for given in (x, z):
            call = getattr(fft, name)
            assert torch.autograd.gradcheck(lambda x: call(x, type, dim=(1, 2), norm=norm), given)


PLANS = [
    dict(shape=(4, 5), dtype=complex),
    dict(shape=(4, 5), dtype=complex, batch=3, norm="ortho", input_order="F"),
    dict(shape=(4, 6), dtype=float, norm="forward", output_order=(1, 0)),
    dict(shape=(4, 5), dtype=float, kinds=("r2c", "c2c"), batch=2),
    dict(shape=(4, 5), dtype=float, zero_padded=(7, 8), modes=(4, 6)),
    dict(shape=(4, 5, 3), dtype=float, kinds=("dct1", "r2c", "dst3"), forward_scale="full"),
    dict(shape=(4, 5), dtype=float, kinds=("dct2", "dst2"), inverse_scale="symmetric"),
    dict(shape=(4, 5), dtype=float, kinds=("none", "r2c"), transposed_output=True),
    dict(shape=(4, 5), dtype=float, kinds=("neumann", "dirichlet@faces")),
    dict(shape=(4, 5), dtype=float, kinds=("periodic", "tridiagonal"), transposed_output=True),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("arguments", PLANS)
def test_gradients_of_plans(arguments, device):
    with thriffty.Plan(**arguments, device="host" if device == "cpu" else 0) as plan:
        x, y = (
            torch.randn(plan._shapes[side], dtype=getattr(torch, plan._dtypes[side].name))
            for side in (0, 1)
        )
        x, y = (
            it.permute(order).contiguous().permute(np.argsort(order).tolist())
            for it, order in zip((x, y), plan._orders)
        )
        x, y = (it.to(device).requires_grad_() for it in (x, y))
        expected = plan.forward(x.detach())
        assert torch.equal(fft.forward(x, plan), expected)
        for call, given in ((fft.forward, x), (fft.inverse, y)):
            assert torch.autograd.gradcheck(lambda x: call(x, plan), given)
        number = fft._torch_ops.number_of(plan)
        torch.library.opcheck(ops.run, (x, number, False))
        torch.library.opcheck(ops.run, (y, number, True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_streams_of_a_gpu():
    """Transforms wait for other streams, without the host."""
    x = torch.randn(64, 64, 64, device="cuda")
    expected = torch.fft.rfftn(100 * x)
    with thriffty.Plan(x.shape, "float32", device=0) as plan:
        for call in (fft.rfftn, lambda x: fft.forward(x, plan)):
            with torch.cuda.stream(torch.cuda.Stream()):
                slow = torch.zeros_like(x)
                for _ in range(100):
                    slow = slow + x
                y = call(slow) * 1
            y.record_stream(torch.cuda.current_stream())
            torch.cuda.synchronize()
            torch.testing.assert_close(y, expected, rtol=1e-3, atol=0.5)
    odd = torch.randn(2, 4, 7, device="cuda")[1, 1:, 0:].flatten()[1:]
    close(fft.rfft(odd), torch.fft.rfft(odd))


def test_operations_are_as_torch_wants_them():
    real, half = random(2, 4, 6, grad=True), random(2, 4, 4, dtype=torch.complex128, grad=True)
    norm = "backward"
    for arguments in [
        (real, [1, 2], "c2c,r2c", [4, 6], [4, 6], norm, False),
        (real, [2, 0], "dct2,dst1", [6, 2], [6, 2], norm, True),
        (half, [1, 2], "c2c,r2c", [4, 6], [4, 6], norm, True),
        (half.transpose(1, 2), [0, 1], "c2c,c2c", [2, 4], [2, 3], norm, False),
    ]:
        torch.library.opcheck(ops.fft, arguments)


def test_functions_compile_as_a_whole():
    x = random(2, 4, 6, grad=True)
    with thriffty.Plan((4, 6), float, batch=2) as plan:

        def loss(x):
            y = fft.rfftn(x, dim=(1, 2), modes=(3, 4))
            z = fft.irfft2(fft.rfft2(x), (4, 6)) + fft.inverse(fft.forward(x, plan), plan)
            return y.abs().square().sum() + fft.dctn(z * x, norm="ortho", dim=1).sum()

        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        for size in (1, 2):
            (expected,) = torch.autograd.grad(loss(x * size), x)
            (found,) = torch.autograd.grad(compiled(x * size), x)
            close(found, expected)


def test_other_shapes_compile():
    def loss(x):
        return fft.irfftn(fft.rfftn(x) ** 2, x.shape).square().sum() + fft.dctn(x).sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for shape in ((4, 6), (5, 6), (5, 7), (8, 9)):
        x = random(*shape, grad=True)
        (expected,), (found,) = (torch.autograd.grad(call(x), x) for call in (loss, compiled))
        close(found, expected)


def test_autocast():
    x = random(4, 6, dtype=torch.float32, grad=True)
    gradients = []
    for rfftn in (fft.rfftn, lambda x: torch.fft.rfftn(x.float())):
        with torch.autocast("cpu", torch.bfloat16):
            product = torch.eye(6) @ x.T
            assert product.dtype == torch.bfloat16
            y = rfftn(product)
            assert y.dtype == torch.complex64
            gradients.append(torch.autograd.grad(y.abs().square().sum(), x)[0])
    # Rounded to bfloat16 on the way back.
    torch.testing.assert_close(*gradients, rtol=2**-7, atol=2**-7)


def test_wrong_arguments():
    x = random(4, 6)
    for call, text in [
        (lambda: fft.fftn(x, dim=(0, 0)), "axes: found"),
        (lambda: fft.fftn(x, norm="none"), "norm: found 'none'"),
        (lambda: fft.fftn(x, dim=2), "axis: found 2"),
        (lambda: fft.rfftn(x * 1j), "dtype of x: found torch.complex128"),
        (lambda: fft.rfftn(x, modes=(3,) * 3), "modes: found"),
        (lambda: fft.rfftn(x, modes=7), "modes: found"),
        (lambda: fft.irfftn(x, modes=3), "s: found None"),
        (lambda: fft.irfftn(x, (8, 8), modes=3), "frequencies of x: found"),
        (lambda: fft.fftn(x, placements=[]), "placements: found"),
        (lambda: fft.irfft(x[:, :1]), "points along the halved axis: found 0"),
        (lambda: fft.dctn(x, 5), "type: found 5"),
        (lambda: fft.dctn(x[:1], 1), "dct1"),
    ]:
        with pytest.raises(thriffty.ArgumentError, match=text):
            call()
    with thriffty.Plan((4, 6), float) as plan:
        with pytest.raises(thriffty.ArgumentError, match="shape of x: found"):
            fft.forward(x[1:], plan)
        with pytest.raises(thriffty.ArgumentError, match="dtype of x: found"):
            fft.forward(x.float(), plan)
        with pytest.raises(thriffty.ArgumentError, match="x: found ndarray"):
            fft.forward(x.numpy(), plan)
    y = fft.forward(x, thriffty.Plan((4, 6), float))
    assert y.grad_fn is None
    with thriffty.Plan((4, 6), float) as plan:
        with pytest.raises(TypeError, match="requires gradients: see thriffty.torch"):
            plan.forward(x.requires_grad_())
    fft.clear_plans()
    with pytest.raises(thriffty.Error, match="the plan is gone"):
        ops.run(x, 10**9, False)
