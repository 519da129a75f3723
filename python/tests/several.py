"""Checks of plans over MPI or a process group. Every rank calls every check."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import TOLERANCE, cases, distance, field, problems, transformed

import thriffty


@dataclass
class World:
    """The ranks, and a function that gathers one object from each."""

    comm: Any
    gather: Any
    # The number of random problems, and the numbers of threads that a rank may have.
    cases: int
    threads: tuple = (1,)

    def __post_init__(self):
        rank, size = self.comm.rank, self.comm.size
        # A method in torch, a number elsewhere.
        self.rank, self.size = (rank(), size()) if callable(rank) else (rank, size)
        self.last = self.size - 1

    def all_true(self, mine):
        """Whether a condition holds on all ranks, so that all continue or all fail."""
        return all(self.gather(bool(mine)))

    def same_error(self, call, *texts):
        """Checks that a call fails with the same text on every rank."""
        try:
            call()
            said = None
        except ValueError as error:
            said = str(error)
        everywhere = self.gather(said)
        assert len(set(everywhere)) == 1, everywhere
        assert said is not None
        for text in texts:
            assert text in said, said

    def told(self, call, *texts):
        """Checks that all ranks get the error of one. On a single rank the call succeeds."""
        if self.size > 1:
            self.same_error(call, *texts)
        else:
            call()


def refused(call, text):
    """Checks that a call fails on this rank."""
    try:
        call()
    except ValueError as error:
        assert text in str(error), error
        return error
    raise AssertionError("a call that does not fail")


@st.composite
def tilings(draw, shape, ranks):
    """A brick for each rank by recursive cuts. Some may be empty."""
    bricks = [tuple((0, n) for n in shape)]
    for _ in range(draw(st.integers(0, ranks - 1))):
        old = bricks.pop(draw(st.integers(0, len(bricks) - 1)))
        axis = draw(st.integers(0, len(shape) - 1))
        lo, hi = old[axis]
        cut = draw(st.integers(lo, hi))
        for part in ((lo, cut), (cut, hi)):
            bricks.append((*old[:axis], part, *old[axis + 1 :]))
    bricks += [tuple((0, 0) for _ in shape)] * (ranks - len(bricks))
    return [tuple(slice(*pair) for pair in brick) for brick in draw(st.permutations(bricks))]


@st.composite
def distributed(draw, world):
    """A problem with a tiling for each side, or with even cuts."""
    problem = draw(problems(most=9))
    sides = {}
    if draw(st.booleans()):
        sides["input"] = draw(tilings(problem.shape, world.size))[world.rank]
        sides["output"] = draw(tilings(problem.spectral(), world.size))[world.rank]
    exchanges = [None, "p2p", "pipelined", "alltoallv", "hosts", "kway4"]
    threads = draw(st.sampled_from(world.threads))
    how = {"exchange": draw(st.sampled_from(exchanges)), "threads": threads}
    return problem, sides, how, draw(st.booleans())


def check_bricks(world):
    @cases(world.cases)
    @given(distributed(world))
    def run(drawn):
        problem, sides, how, in_place = drawn
        x = field(problem, 1)
        expected = transformed(problem, x)
        batch = (slice(None),) if problem.batch > 1 else ()
        # The bricks of a single axis need not suit its factors.
        how = {**how, "one_rank": True}
        with thriffty.Plan(**problem.arguments(), **sides, **how, comm=world.comm) as plan:
            here, there = (plan.input_slices, plan.output_slices)
            mine, theirs = x[(*batch, *here)], expected[(*batch, *there)]
            if in_place:
                a, b = plan.empty_in_place()
            else:
                a, b = plan.empty_input(), plan.empty_output()
            a[...] = mine
            plan.forward(a, out=b)
            # Errors are relative to the whole, because the numbers of a brick may all be small.
            far = np.linalg.norm((b - theirs).ravel()) <= TOLERANCE[problem.dtype] * np.linalg.norm(
                expected.ravel()
            )
            plan.inverse(b, out=a)
            near = np.linalg.norm((a - mine).ravel()) <= TOLERANCE[problem.dtype] * np.linalg.norm(
                x.ravel()
            )
            assert world.all_true(far and near and a.shape == plan.input_shape)

    run()


def check_refusals(world):
    with thriffty.Plan((6, 5), comm=world.comm) as plan:
        x = plan.empty_input()
        x[...] = 1

        def call():
            if world.rank == world.last:
                plan.refuse(OSError("no such field"))
            plan.forward(x)

        world.same_error(call, f"rank {world.last}", "no such field")
        y = plan.forward(x)

        def operator():
            if world.rank == world.last:
                plan.refuse(refused(lambda: plan.apply("no operator", y), "no operator"))
            plan.forward(x)

        # It is reported once, and not again by the next transform.
        world.same_error(operator, "no operator")
        plan.forward(x)


def check_tolerance(world):
    shape = (16, 12, 10)
    x = np.random.default_rng(0).standard_normal(shape)
    expected = np.fft.rfftn(x)
    lossy = dict(comm=world.comm, tolerance="1e-4 strict", ignore_shared_memory=True)
    with thriffty.Plan(shape, float, **lossy) as plan:
        y = plan.forward(np.ascontiguousarray(x[plan.input_slices]))
        # Half a spectrum counts twice except its first and, for even lengths, last frequencies.
        weights = np.full(expected.shape, 2.0)
        weights[..., [0, -1]] = 1.0
        lost = (weights[plan.output_slices] * np.abs(y - expected[plan.output_slices]) ** 2).sum()
        error = np.sqrt(sum(world.gather(lost)) / (weights * np.abs(expected) ** 2).sum())
        assert error <= plan.wire_error.bound <= 1e-4 if world.size > 1 else error < 1e-14
        assert len(set(world.gather(plan.wire_error))) == 1


def check_shared_arrays(world):
    shared = dict(comm=world.comm, shared_arrays=True, exchange="shared")
    with thriffty.Plan((8, 6, 4), **shared) as plan:
        x, y = plan.empty_input(), plan.empty_output()
        whole = np.random.default_rng(0).standard_normal((8, 6, 4)) + 0j
        x[...] = whole[plan.input_slices]
        plan.forward(x, out=y)
        assert world.all_true(distance(y, np.fft.fftn(whole)[plan.output_slices]) < 1e-14)
        del x, y


def check_errors(world):
    comm = world.comm
    for who in {0, world.last}:
        mine = world.rank == who

        def made(good, bad, **others):
            return lambda: thriffty.Plan(**{**others, **(bad if mine else good)}, comm=comm)

        at = f"rank {who}: "
        shape = dict(shape=(4, 6))
        for good, bad, found in [
            (dict(dtype=complex), dict(dtype="int32"), "dtype: found int32"),
            (dict(kinds="c2c"), dict(kinds="dct9"), "kinds: found dct9"),
            (dict(input_order="C"), dict(input_order="G"), "input_order: found G"),
            (dict(tuning="model"), dict(tuning="muddle"), "tuning: found muddle"),
            (dict(input=None), dict(input=(slice(0, 4),)), "slices of input: found 1"),
        ]:
            world.same_error(made(good, bad, **shape), at, found)
        bricks = (slice(0, 5), slice(0, 6))
        world.same_error(lambda: thriffty.Plan((4, 6), comm=comm, input=bricks))
        if world.size > 1:
            many = "found 200"
            world.same_error(lambda: thriffty.Plan((4, 6), comm=comm, threads=200), many)
            world.same_error(made(dict(shape=(4, 6)), dict(shape=(4, 7))), "disagree", "4x7")
        plan = thriffty.Plan((5, 7, 3), float, comm=comm)
        x, y = plan.empty_input(), plan.empty_output()
        x[...] = 1
        for bad, text in [
            (x.astype(np.float32), "dtype of x: found float32, expected float64"),
            (np.zeros((9, 9, 9)), "shape of x: found (9, 9, 9), expected"),
            ("text", "x: found str, expected an array"),
        ]:
            world.same_error(lambda: plan.forward(bad if mine else x), at + text)
        frozen, text = y.copy(), at + "out: found read-only"
        frozen.flags.writeable = False
        world.same_error(lambda: plan.forward(x, out=frozen if mine else y), text)
        world.same_error(lambda: plan.save_wisdom(None if mine else "/nowhere/wisdom"), "path")
        plan.forward(x, out=y)
        origin = [part.start == 0 < part.stop for part in plan.output_slices]
        assert world.all_true(not all(origin) or y[0, 0, 0] == 105)
        plan.close()


def check_operators(world):
    shape, box = (8, 12, 10), (2 * np.pi, 4 * np.pi, 2 * np.pi)
    scalar = thriffty.Plan(shape, float, comm=world.comm, transposed_output=True)
    orders = {"input_order": scalar.input_order, "output_order": scalar.output_order}
    sides = dict(input=scalar.input_slices, output=scalar.output_slices, **orders)
    vector = thriffty.Plan(shape, float, comm=world.comm, batch=3, **sides)
    with scalar, vector:
        points = [np.arange(n) * length / n for n, length in zip(shape, box)]
        x, y, z = np.ix_(*(along[part] for along, part in zip(points, vector.input_slices)))
        u = vector.empty_input()
        u[0], u[1], u[2] = np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0
        u_hat = vector.forward(u)
        divergence = scalar.inverse(vector.apply("divergence", u_hat, box))
        w = vector.inverse(vector.apply("curl", u_hat, box))
        k = scalar.wavenumbers(box)
        assert [one.size for one in k] == list(scalar.output_shape)
        expected = 2 * np.sin(x) * np.sin(y) * np.cos(z)
        assert world.all_true(np.allclose(divergence, 0) and np.allclose(w[2], expected))

        def wrong_on_one():
            sigma = np.nan if world.rank == world.last else 0.1
            try:
                scalar.apply("gaussian", u_hat[0], box, sigma)
            except ValueError:
                assert world.rank == world.last
            scalar.inverse(u_hat[0])

        world.told(wrong_on_one, f"rank {world.last}", "standard deviation")
        scalar.inverse(u_hat[0])


def check_operator_of_a_wrong_array(world):
    with thriffty.Plan((4, 4, 4), complex, comm=world.comm) as plan:
        x = np.zeros(plan.output_shape, complex)

        def wrong_on_one():
            if world.rank == world.last:
                refused(lambda: plan.apply("laplacian", x.real), "dtype of x")
            plan.inverse(x)

        world.told(wrong_on_one, "dtype of x: found float64")
        plan.inverse(x)


def check_divided_systems(world):
    n = 2 * world.size + 1
    rows = slice(2 * world.rank, n if world.rank == world.last else 2 * world.rank + 2)
    bricks = dict(input=(rows, slice(0, 6)), output=(rows, slice(0, 6)))
    whole = np.random.default_rng(0).standard_normal((n, 6))

    def solve(plan, rho, operator="poisson"):
        plan.set_schemes("staggered2")
        plan.set_stretched("dirichlet", np.arange(n + 1.0) ** 1.5)
        return plan.inverse(plan.apply(operator, plan.forward(rho), lengths=6))

    kinds = dict(dtype=float, kinds=("tridiagonal", "neumann"))
    with thriffty.Plan(whole.shape, **kinds) as alone:
        expected = solve(alone, whole)
    with thriffty.Plan(whole.shape, **kinds, **bricks, comm=world.comm) as plan:
        rho = whole[rows].copy()
        assert world.all_true(np.allclose(solve(plan, rho), expected[rows], atol=1e-12))
        # Python refuses the first on one rank, the library the second.
        for wrong, text in [("grad", "grad"), ("gradient", "kind of axis 1")]:
            mine = wrong if world.rank == world.last else "poisson"
            world.same_error(lambda mine=mine: solve(plan, rho, mine), text)
            assert world.all_true(np.allclose(solve(plan, rho), expected[rows], atol=1e-12))


def check_ghost_points(world):
    whole = np.arange(10.0 * world.size).reshape(2 * world.size, 5)
    rows = slice(2 * world.rank, 2 * world.rank + 2)
    with thriffty.Plan(whole.shape, float, comm=world.comm) as plan:
        u = np.zeros((4, 5))
        u[1:-1] = whole[rows]
        halo = thriffty.Halo(plan, [((rows, slice(0, 5)), u)], (1, 0), (1, 0))
    # The plan may be closed before its copies.
    with halo:
        halo.run()
    around = np.arange(2 * world.rank - 1, 2 * world.rank + 3) % len(whole)
    assert world.all_true(np.array_equal(u, whole[around]))


def check_lines(world):
    """A single axis that ranks share: random data in blocks, transposed and cyclic."""
    n = 4 * 9 * world.size**2
    rng = np.random.default_rng(11)
    whole = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    expected = np.fft.fft(whole)
    cyclic = {"input_cyclic": (world.size,), "output_cyclic": (world.size,)}
    for options in ({}, {"transposed_output": True}, {"transposed_input": True}, cyclic):
        with thriffty.Plan((n,), complex, comm=world.comm, **options) as plan:
            x, modes = whole[plan.input_indices()], plan.output_indices()
            y = plan.forward(x)
            assert world.all_true(np.allclose(y, expected[modes], atol=1e-12 * n, rtol=0))
            assert world.all_true(np.allclose(plan.inverse(y), x, atol=1e-13, rtol=0))
            assert sorted(sum(map(list, world.gather(modes)), [])) == list(range(n))
            if options is cyclic:
                assert plan.input_strides == plan.output_strides == (world.size,)
    if world.size > 1:

        def prime():
            thriffty.Plan((10007,), complex, comm=world.comm)

        world.same_error(prime, "10007", "one_rank")
        with thriffty.Plan((10007,), complex, comm=world.comm, one_rank=True) as plan:
            plan.forward(np.zeros(plan.input_shape, complex))


CHECKS = [
    check_bricks,
    check_lines,
    check_refusals,
    check_tolerance,
    check_shared_arrays,
    check_errors,
    check_operators,
    check_operator_of_a_wrong_array,
    check_divided_systems,
    check_ghost_points,
]
