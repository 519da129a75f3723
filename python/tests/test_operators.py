"""Operators on spectra against NumPy, in one process."""

import numpy as np
import pytest

import thriffty

LENGTHS = (2.0, 3.0, 5.0)


@pytest.fixture(params=[np.complex128, np.float64, np.float32])
def plan(request):
    with thriffty.Plan((8, 6, 10), request.param, output_order=(1, 0, 2), threads=2) as plan:
        yield plan


def waves(plan):
    """NumPy's wavenumbers, and the ones for odd derivatives."""
    frequencies = [np.fft.fftfreq(n, 1 / n) for n in plan.shape]
    if plan.input_dtype.kind == "f":
        frequencies[-1] = np.fft.rfftfreq(plan.shape[-1], 1 / plan.shape[-1])
    grid = np.meshgrid(*frequencies, indexing="ij")
    middle = [2 * abs(f) == n for f, n in zip(grid, plan.shape)]
    k = [2 * np.pi * f / length for f, length in zip(grid, LENGTHS)]
    return k, [np.where(mid, 0, one) for one, mid in zip(k, middle)]


def spectrum(plan, *leading):
    rng = np.random.default_rng(1)
    shape = (*leading, *plan.output_shape)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    order = (*range(len(leading)), *(len(leading) + axis for axis in plan.output_order))
    made = np.empty([shape[axis] for axis in order], plan.output_dtype)
    made = made.transpose(np.argsort(order))
    made[...] = x
    return made


def close(found, expected):
    eps = np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=64 * eps, atol=64 * eps * abs(expected).max())


def test_operators_are_numpys_expressions(plan):
    k, odd = waves(plan)
    square = sum(one**2 for one in k)
    x, u = spectrum(plan), spectrum(plan, 3)
    inverse = np.divide(1, square, where=square > 0, out=np.zeros_like(square))
    along = sum(1j * a * b for a, b in zip(odd, u))
    odd_square = sum(one**2 for one in odd)
    over = np.divide(1, odd_square, where=odd_square > 0, out=np.zeros_like(square))
    inside = np.all([abs(a) * l < 2 / 3 * np.pi * n * (1 - 1e-9)
                     for a, l, n in zip(k, LENGTHS, plan.shape)], axis=0)  # fmt: skip
    expected = {
        "laplacian": -square * x,
        "poisson": inverse * x,
        "gradient": np.stack([1j * a * x for a in odd]),
        "divergence": along,
        "curl": np.stack([1j * (odd[a - 2] * u[a - 1] - odd[a - 1] * u[a - 2]) for a in range(3)]),
        "project": np.stack([u[a] + 1j * odd[a] * over * along for a in range(3)]),
    }
    for operator, result in expected.items():
        operand = u if operator in ("divergence", "curl", "project") else x
        found = plan.apply(operator, operand, LENGTHS)
        close(found, result)
        out = np.empty_like(found)
        assert plan.apply(operator, operand, LENGTHS, out=out) is out
        np.testing.assert_array_equal(out, found)
    close(plan.apply("derivative", x, LENGTHS, 1), 1j * odd[1] * x)
    close(plan.apply("helmholtz", x, LENGTHS, 0.5), x / (0.5 + square))
    close(plan.apply("gaussian", x, LENGTHS, 0.1), np.exp(-0.005 * square) * x)
    close(plan.apply("cutoff", x, LENGTHS, 2 / 3), inside * x)
    several = spectrum(plan, 2, 3)
    close(plan.apply("curl", several, LENGTHS)[1], plan.apply("curl", several[1], LENGTHS))
    same = several.copy(order="K")
    assert plan.apply("project", same, LENGTHS, out=same) is same
    close(same, plan.apply("project", several, LENGTHS))


def test_wavenumbers_broadcast(plan):
    k, odd = waves(plan)
    for all_of, derivative in [(k, False), (odd, True)]:
        found = plan.wavenumbers(LENGTHS, derivative)
        assert [one.ndim for one in found] == [3, 3, 3]
        for one, expected in zip(found, all_of):
            np.testing.assert_allclose(np.broadcast_to(one, plan.output_shape), expected)


@pytest.mark.parametrize("correlate", [False, True])
def test_products_convolve(correlate):
    rng = np.random.default_rng(2)
    kernel, x = rng.standard_normal(12), rng.standard_normal((2, 12))
    with thriffty.Plan(12, float) as one, thriffty.Plan(12, float, batch=2) as two:
        found = two.inverse(one.convolve(one.forward(kernel), two.forward(x), correlate))
    sign = -1 if correlate else 1
    index = np.arange(12)
    sums = [[sum(kernel[j] * row[(i - sign * j) % 12] for j in index) for i in index] for row in x]
    np.testing.assert_allclose(found, sums, atol=1e-12)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("twist",), "operator: found 'twist'"),
        (("curl",), "shape of x"),
        (("gradient", (1.0, 2.0)), "number of lengths: found 2, expected 3"),
        (("gradient", (1.0, 2.0, -1.0)), "length of axis 2: found -1"),
        (("gradient", None), "lengths: found None, expected a number, or one for each axis"),
        (("gradient", ("a", 1, 1)), "lengths: found .*, expected a number"),
        ((["gradient"],), r"operator: found \['gradient'\]"),
        (("derivative", 1.0, 3), "axis of the derivative: found 3, expected 0 to 2"),
        (("derivative", 1.0, 0.5), "axis of the derivative: found 0.5, expected 0 to 2"),
        (("derivative",), "parameter of derivative: found none, expected the axis"),
        (("helmholtz",), "parameter of helmholtz: found none, expected the shift"),
        (("gaussian",), "parameter of gaussian: found none, expected the standard deviation"),
        (("cutoff",), "parameter of cutoff: found none, expected the fraction of the highest"),
        (("gaussian", 1.0, "a"), "parameter of gaussian: found 'a', expected the standard"),
        (("laplacian", 1.0, 0), "parameter of laplacian: found 0, expected none"),
        (("gaussian", 1.0, np.inf), "standard deviation: found inf, expected a finite number"),
        (("gaussian", 1.0, -0.1), "standard deviation: found -0.1, expected 0 or more"),
        (("cutoff", 1.0, -1.0), "fraction: found -1, expected 0 or more"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_wrong_is_told_once(arguments, text, threads):
    """On one process the next transform does not repeat the error."""
    with thriffty.Plan((4, 4, 4), threads=threads) as plan:
        x = np.zeros((4, 4, 4), complex)
        operator, *others = arguments
        for _ in range(2):
            with pytest.raises(thriffty.ArgumentError, match=text):
                plan.apply(operator, x, *others)
            plan.forward(x)
        with pytest.raises(thriffty.ArgumentError, match="dtype of kernel"):
            plan.convolve(x.real.copy(), x)
        with pytest.raises(thriffty.ArgumentError, match="zero_padded along axis 0"):
            plan.green_function(1.0)
        with pytest.raises(thriffty.ArgumentError, match="spacings: found None"):
            plan.green_function(None)
        plan.forward(x)


def test_padding_and_truncation_are_numpys():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, 5))
    with thriffty.Plan((6, 5), float, zero_padded=(12, 10), output_order="F") as plan:
        y = plan.forward(x)
        np.testing.assert_allclose(y, np.fft.rfft2(x, (12, 10)), atol=1e-12)
        np.testing.assert_allclose(plan.inverse(y), x, atol=1e-12)
    with thriffty.Plan((6, 5), complex, modes=(3, 4)) as plan:
        whole = np.fft.fft2(x)[np.ix_([0, 1, -1], [0, 1, 2, -1])]
        whole[:, 2] = 0  # the middle one of an even number
        np.testing.assert_allclose(plan.forward(x + 0j), whole, atol=1e-12)
    wrong = [dict(zero_padded=(5, 5)), dict(modes=(7, 5)), dict(modes=0), dict(modes=(3,))]
    for arguments in wrong:
        with pytest.raises(thriffty.ArgumentError, match="zero_padded|modes"):
            thriffty.Plan((6, 5), **arguments)


def test_charges_in_open_space_have_their_potential():
    with thriffty.Plan((6, 8, 6), float, zero_padded=(12, 16, 12)) as plan:
        kernel = plan.green_function((0.1, 0.1, 0.2))
        x = np.zeros((6, 8, 6))
        x[1, 1, 1] = 2
        found = plan.inverse(plan.convolve(kernel, plan.forward(x)))
        assert abs(found[1, 7, 1] * 4 * np.pi * 0.6 / (2 * 0.1 * 0.1 * 0.2) - 1) < 0.02
        with pytest.raises(thriffty.ArgumentError, match="spacing of axis 1"):
            plan.green_function((1.0, -1.0, 1.0))
    with thriffty.Plan((6, 8), float) as plan:
        with pytest.raises(thriffty.ArgumentError, match="in open space"):
            plan.green_function(1.0)
    with thriffty.Plan((6, 8), float, batch=2, zero_padded=16) as plan:
        with pytest.raises(thriffty.ArgumentError, match="batch in open space: found 2"):
            plan.green_function(1.0)


def second(n, ends):
    """The matrix of the second difference, with images beyond the ends at cells."""
    made = -2 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
    sign = {"neumann": 1, "dirichlet": -1}
    if ends == "periodic":
        made[0, -1] += 1
        made[-1, 0] += 1
        return made
    first, last = ends.split("-") if "-" in ends else (ends, ends)
    made[0, 0] += sign[first]
    made[-1, -1] += sign[last]
    return made


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("ends", [("periodic", "neumann-dirichlet"), ("dirichlet", "neumann")])
def test_walls_are_a_dense_system(dtype, ends):
    rng = np.random.default_rng(2)
    shape, width = (6, 5, 4), rng.uniform(0.5, 2, 5)
    z = np.concatenate([[0], np.cumsum(width)])
    centres = (z[1:] + z[:-1]) / 2
    lower, upper = np.zeros(5), np.zeros(5)
    lower[1:], upper[:-1] = 1 / (np.diff(centres) * width[1:]), 1 / (np.diff(centres) * width[:-1])
    diagonal = -(lower + upper)
    diagonal[0] -= 1 / (width[0] * (centres[0] - z[0]))
    stretched = np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    parts = [second(6, ends[0]), stretched, second(4, ends[1])]
    eye = [np.eye(n) for n in shape]
    dense = sum(
        np.kron(np.kron(parts[0] if a == 0 else eye[0], parts[1] if a == 1 else eye[1]),
                parts[2] if a == 2 else eye[2])
        for a in range(3)
    )  # fmt: skip
    rho = rng.standard_normal(shape).astype(dtype)
    expected = np.linalg.solve(0.3 * np.eye(120) - dense, rho.ravel()).reshape(shape)
    kinds = (ends[0], "tridiagonal", ends[1])
    with thriffty.Plan(shape, dtype, kinds=kinds, output_order=(1, 0, 2), threads=2) as plan:
        plan.set_schemes("staggered2")
        for way in range(2):
            if way:
                plan.set_stretched("dirichlet-neumann", z)
            else:
                plan.set_tridiagonal(lower, diagonal, upper)
            spectrum = plan.apply("helmholtz", plan.forward(rho), shape, 0.3)
            close(plan.inverse(spectrum), expected.astype(dtype))
            close(plan.inverse(plan.apply("laplacian", spectrum, shape)),
                  (dense @ expected.ravel()).reshape(shape).astype(dtype))  # fmt: skip
        with pytest.raises(ValueError, match="coefficients"):
            plan.set_tridiagonal(lower, diagonal[:4], upper)
        with pytest.raises(ValueError, match="scheme"):
            plan.set_schemes("upwind")
