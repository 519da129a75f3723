"""The parts of gradients that need neither torch nor JAX: adjoints, bricks of placements."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import COSINES, cases, problems

import thriffty
from thriffty._adjoint import factors, plan_factors
from thriffty._placements import brick, first_of_plan, shards


def adjoint(plan, y, inverse):
    """Applies the adjoint of one direction of the plan to `y`."""
    before, after = plan_factors(plan, inverse)
    other = plan._exchanged()
    x = multiplied(y, before)
    x = (other.forward if inverse else other.inverse)(x)
    return multiplied(x, after)


def multiplied(x, values):
    for axis, along in enumerate(values, x.ndim - len(values)):
        if along is not None:
            x = x * along.reshape([-1 if other == axis else 1 for other in range(x.ndim)])
    return x


def product(a, b):
    """The real inner product, in which a complex number is two reals."""
    return float(np.vdot(a, b).real)


def random(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x


@st.composite
def adjoints(draw):
    """Problems in double precision, padded or truncated if possible."""
    problem = draw(problems(most=7))
    assume(problem.dtype in ("float64", "complex128"))
    more = {}
    fourier = [kind in ("c2c", "r2c") for kind in problem.kinds]
    if draw(st.booleans()):
        more["zero_padded"] = tuple(
            n + draw(st.integers(0, 4 * it)) for n, it in zip(problem.shape, fourier)
        )
    if draw(st.booleans()):
        lengths = more.get("zero_padded", problem.shape)
        more["modes"] = tuple(
            draw(st.integers(1 if it else n, n)) for n, it in zip(lengths, fourier)
        )
    return problem, more, draw(st.booleans())


@cases(150)
@given(adjoints())
def test_a_plan_has_adjoints(drawn):
    problem, more, inverse = drawn
    with thriffty.Plan(**problem.arguments(), **more) as plan:
        x, y = plan.empty_input(), plan.empty_output()
        x[...] = random(x.shape, x.dtype, 1)
        y[...] = random(y.shape, y.dtype, 2)
        given, other = (y, x) if inverse else (x, y)
        there = (plan.inverse if inverse else plan.forward)(given)
        back = adjoint(plan, other, inverse)
        scale = np.linalg.norm(there.ravel()) * np.linalg.norm(other.ravel())
        bound = 1e-14 * max(scale, np.linalg.norm(back.ravel()) * np.linalg.norm(given.ravel()))
        assert abs(product(other, there) - product(back, given)) <= bound + 1e-300


def test_half_a_spectrum_counts_twice_but_for_its_ends():
    np.testing.assert_array_equal(factors("r2c", True, 8, 8).after, [1, 2, 2, 2, 1])
    np.testing.assert_array_equal(factors("r2c", True, 7, 7).after, [1, 2, 2, 2])
    np.testing.assert_array_equal(factors("r2c", False, 8, 8).before, [1, 0.5, 0.5, 0.5, 1])
    np.testing.assert_array_equal(factors("r2c", False, 9, 5).before, [1, 0.5, 0.5])
    assert factors("c2c", False, 8, 8) == (None, None)


@pytest.mark.parametrize("kind", COSINES)
def test_cosines_and_sines_are_transposed(kind):
    n = 5
    for inverse in (False, True):
        with thriffty.Plan((n, n), float, kinds=kind, norm="forward") as plan:
            direction = plan.inverse if inverse else plan.forward
            units = np.eye(n * n).reshape(-1, n, n)
            matrix = np.array([direction(unit).ravel() for unit in units]).T
            back = np.array([adjoint(plan, unit, inverse).ravel() for unit in units])
            np.testing.assert_allclose(back, matrix, atol=1e-13)


def test_the_second_plan_ends_with_the_first():
    plan = thriffty.Plan((6, 4), float)
    other = plan._exchanged()
    assert other is not plan and other._exchanged() is plan
    assert plan._exchanged() is other and plan.recipe.replace("inverse", "forward") == other.recipe
    plan.close()
    with pytest.raises(thriffty.Error, match="the plan is closed"):
        other.forward(np.zeros((6, 4)))
    with thriffty.Plan((6, 4), float, norm="ortho") as plan:
        assert plan._exchanged() is plan


def shard(axis):
    """Like torch's."""

    class Shard:
        dim = axis
        is_replicate = is_partial = staticmethod(lambda: False)

    return Shard()


@cases(100)
@given(st.data())
def test_bricks_of_placements_are_chunks(data):
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3))
    mesh = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    axes = st.integers(0, len(shape) - 1)
    cut = [data.draw(axes) for _ in mesh]
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    for place in np.ndindex(*mesh):
        part = whole
        for ranks, index, axis in zip(mesh, place, cut):
            # torch.chunk: parts of equal length, one with the remainder, and then empty ones.
            each = max(1, -(-part.shape[axis] // ranks))
            ends = [min(each * k, part.shape[axis]) for k in range(1, ranks)]
            part = np.split(part, ends, axis)[index]
        slices = tuple(slice(*ends) for ends in brick(shape, mesh, place, cut))
        np.testing.assert_array_equal(whole[slices], part)


def test_placements_that_are_no_shards_are_refused():
    assert shards([shard(1), shard(-3)], 3) == (1, 0)
    replicate = SimpleNamespace(is_replicate=lambda: True)
    partial = SimpleNamespace(is_replicate=lambda: False, is_partial=lambda: True)
    for placements, reason in [
        ([shard(0), replicate], "along axis 1 of the mesh: .*would all transform it"),
        ([partial], "along axis 0 of the mesh: .*redistribute the tensor first"),
        ([shard(3)], "Shard of an axis from -3 to 2"),
    ]:
        with pytest.raises(thriffty.ArgumentError, match=reason):
            shards(placements, 3)


def test_a_plan_has_the_axes_from_the_first_that_it_changes():
    assert first_of_plan([2, 3], [0], [0]) == 2
    assert first_of_plan([2, 3], [2], [3]) == 2
    assert first_of_plan([2, 3], [1], [2]) == 1
    assert first_of_plan([3], [0, 2], [0, 3]) == 2
