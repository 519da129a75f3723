"""Plans over MPI. Each rank runs all of this: `mpirun -n 3 python -m pytest python/tests/mpi`."""

import gc
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI
from reference import TOLERANCE, cases, distance, field, problems, transformed

import thriffty

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()
LAST = RANKS - 1


def all_true(mine):
    """Whether it is true on all ranks, so that all go on or all fail."""
    return WORLD.allreduce(bool(mine), MPI.LAND)


def same_error(call, *texts):
    """Calls what fails on every rank with the same words."""
    try:
        call()
        said = None
    except ValueError as error:
        said = str(error)
    everywhere = WORLD.allgather(said)
    assert len(set(everywhere)) == 1, everywhere
    assert said is not None
    for text in texts:
        assert text in said


def told(call, *texts):
    """Calls what fails on one rank, of which the others are told, if there are any."""
    if RANKS > 1:
        same_error(call, *texts)
    else:
        call()


@st.composite
def tilings(draw, shape):
    """A brick for each rank, some perhaps empty, by cuts of cuts."""
    bricks = [tuple((0, n) for n in shape)]
    for _ in range(draw(st.integers(0, RANKS - 1))):
        old = bricks.pop(draw(st.integers(0, len(bricks) - 1)))
        axis = draw(st.integers(0, len(shape) - 1))
        lo, hi = old[axis]
        cut = draw(st.integers(lo, hi))
        for part in ((lo, cut), (cut, hi)):
            bricks.append((*old[:axis], part, *old[axis + 1 :]))
    bricks += [tuple((0, 0) for _ in shape)] * (RANKS - len(bricks))
    return [tuple(slice(*pair) for pair in brick) for brick in draw(st.permutations(bricks))]


@st.composite
def distributed(draw):
    """A problem with a tiling on each side, or even cuts."""
    problem = draw(problems(most=9))
    sides = {}
    if draw(st.booleans()):
        sides["input"] = draw(tilings(problem.shape))[RANK]
        sides["output"] = draw(tilings(problem.spectral()))[RANK]
    exchanges = [None, "p2p", "pipelined", "alltoallv", "hosts", "kway4"]
    how = {"exchange": draw(st.sampled_from(exchanges)), "threads": draw(st.sampled_from([1, 2]))}
    return problem, sides, how, draw(st.booleans())


@cases(60)
@given(distributed())
def test_ranks_transform_their_bricks(drawn):
    problem, sides, how, in_place = drawn
    x = field(problem, 1)
    expected = transformed(problem, x)
    batch = (slice(None),) if problem.batch > 1 else ()
    with thriffty.Plan(**problem.arguments(), **sides, **how, comm=WORLD) as plan:
        here, there = (plan.input_slices, plan.output_slices)
        mine, theirs = x[(*batch, *here)], expected[(*batch, *there)]
        if in_place:
            a, b = plan.empty_in_place()
        else:
            a, b = plan.empty_input(), plan.empty_output()
        a[...] = mine
        plan.forward(a, out=b)
        # Errors are those of the whole: bricks may be of small numbers.
        far = np.linalg.norm((b - theirs).ravel()) <= TOLERANCE[problem.dtype] * np.linalg.norm(
            expected.ravel()
        )
        plan.inverse(b, out=a)
        near = np.linalg.norm((a - mine).ravel()) <= TOLERANCE[problem.dtype] * np.linalg.norm(
            x.ravel()
        )
        assert all_true(far and near and a.shape == plan.input_shape)


def test_a_rank_may_refuse():
    with thriffty.Plan((6, 5), comm=WORLD) as plan:
        x = plan.empty_input()
        x[...] = 1

        def call():
            if RANK == LAST:
                plan.refuse(OSError("no such field"))
            plan.forward(x)

        same_error(call, f"rank {LAST}", "no such field")
        y = plan.forward(x)

        def operator():
            if RANK == LAST:
                with pytest.raises(thriffty.ArgumentError) as caught:
                    plan.apply("no operator", y)
                plan.refuse(caught.value)
            plan.forward(x)

        # It is told once, not again by the next transform.
        same_error(operator, "no operator")
        plan.forward(x)


def test_a_tolerance_is_kept():
    shape = (16, 12, 10)
    x = np.random.default_rng(0).standard_normal(shape)
    expected = np.fft.rfftn(x)
    lossy = dict(comm=WORLD, tolerance="1e-4 strict", ignore_shared_memory=True)
    with thriffty.Plan(shape, float, **lossy) as plan:
        y = plan.forward(np.ascontiguousarray(x[plan.input_slices]))
        # Half a spectrum counts twice but for its first and, of even lengths, last frequencies.
        weights = np.full(expected.shape, 2.0)
        weights[..., [0, -1]] = 1.0
        lost = (weights[plan.output_slices] * np.abs(y - expected[plan.output_slices]) ** 2).sum()
        error = np.sqrt(WORLD.allreduce(lost) / (weights * np.abs(expected) ** 2).sum())
        assert error <= plan.wire_error.bound <= 1e-4 if RANKS > 1 else error < 1e-14
        assert len(set(WORLD.allgather(plan.wire_error))) == 1


def test_shared_arrays():
    with thriffty.Plan((8, 6, 4), comm=WORLD, shared_arrays=True, exchange="shared") as plan:
        x, y = plan.empty_input(), plan.empty_output()
        whole = np.random.default_rng(0).standard_normal((8, 6, 4)) + 0j
        x[...] = whole[plan.input_slices]
        plan.forward(x, out=y)
        assert all_true(distance(y, np.fft.fftn(whole)[plan.output_slices]) < 1e-14)
        del x, y


def test_errors_are_the_same_on_every_rank():
    for who in {0, LAST}:
        mine = RANK == who

        def made(good, bad, **others):
            return lambda: thriffty.Plan(**{**others, **(bad if mine else good)}, comm=WORLD)

        at = f"rank {who}: "
        shape = dict(shape=(4, 6))
        for good, bad, found in [
            (dict(dtype=complex), dict(dtype="int32"), "dtype: found int32"),
            (dict(kinds="c2c"), dict(kinds="dct9"), "kinds: found dct9"),
            (dict(input_order="C"), dict(input_order="G"), "input_order: found G"),
            (dict(tuning="model"), dict(tuning="muddle"), "tuning: found muddle"),
            (dict(input=None), dict(input=(slice(0, 4),)), "slices of input: found 1"),
        ]:
            same_error(made(good, bad, **shape), at, found)
        same_error(lambda: thriffty.Plan((4, 6), comm=WORLD, input=(slice(0, 5), slice(0, 6))))
        if RANKS > 1:
            same_error(lambda: thriffty.Plan((4, 6), comm=WORLD, threads=200), "threads: found 200")
            same_error(made(dict(shape=(4, 6)), dict(shape=(4, 7))), "disagree", "4x7")
        plan = thriffty.Plan((5, 7, 3), float, comm=WORLD)
        x, y = plan.empty_input(), plan.empty_output()
        x[...] = 1
        for bad, text in [
            (x.astype(np.float32), "dtype of x: found float32, expected float64"),
            (np.zeros((9, 9, 9)), "shape of x: found (9, 9, 9), expected"),
            ("text", "x: found str, expected an array"),
        ]:
            same_error(lambda: plan.forward(bad if mine else x), at + text)
        frozen = y.copy()
        frozen.flags.writeable = False
        same_error(lambda: plan.forward(x, out=frozen if mine else y), at + "out: found read-only")
        same_error(lambda: plan.save_wisdom(None if mine else "/nowhere/wisdom"), "path")
        array = thriffty.DistArray((6, 5), [0, 1], val=1.0)
        same_error(lambda: array.redistribute(7 if mine else 0), at + "axis: found 7")
        same_error(lambda: array.get((0,) if mine else (0, 0)), at + "gslice")
        plan.forward(x, out=y)
        origin = [part.start == 0 < part.stop for part in plan.output_slices]
        assert all_true(not all(origin) or y[0, 0, 0] == 105)
        plan.close()


def test_forgotten_plans_are_destroyed_by_all_ranks():
    kept = thriffty._mpi.Ranks.of(WORLD)
    plans = [thriffty.Plan((4, 6), comm=WORLD) for _ in range(4)]
    # Each rank forgets in an order of its own, and the last one keeps one.
    for number in np.random.default_rng(RANK).permutation(4):
        if not (RANK == LAST and number == 2):
            plans[number] = None
    gc.collect()
    with thriffty.Plan((4, 6), comm=WORLD):
        left = len(kept.unused)
    assert left == (1 if RANK != LAST and RANKS > 1 else 0)
    plans.clear()
    gc.collect()
    with thriffty.Plan((4, 6), comm=WORLD):
        assert not kept.unused


def test_communicators():
    half = WORLD.Split(RANK % 2, RANK)
    with thriffty.Plan((6, 5), comm=half) as plan:
        x = np.random.default_rng(1).standard_normal((6, 5)) + 0j
        y = plan.forward(np.ascontiguousarray(x[plan.input_slices]))
        right = distance(y, np.fft.fftn(x)[plan.output_slices]) < 1e-14
        assert plan.comm is half
    half.Free()
    assert all_true(right)
    with pytest.raises(TypeError, match="comm: found int"):
        thriffty.Plan((6, 5), comm=7)


@pytest.mark.skipif(RANK > 0, reason="once is enough")
def test_the_library_says_what_it_is():
    """Not under this MPI: a process of its own."""
    code = "import thriffty.__main__ as m; m._mpi = lambda: 'not asked'; m.main()"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for word in ("thriffty", "Python", "library", "threads", "GPUs"):
        assert word in text.stdout


@pytest.mark.skipif(RANK > 0, reason="once is enough")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_a_library_for_another_mpi_is_refused(tmp_path, monkeypatch):
    source, path = tmp_path / "other.c", tmp_path / "libother.so"
    calls = "version last_error plan_recipe plan_report plan_create_f".split()
    calls += "options_create options_get options_describe".split()
    lines = [f"const char *thriffty_{call}(void) {{ return 0; }}" for call in calls]
    lines += [
        "#include <string.h>",
        "int MPI_Get_library_version(char *text, int *length) {",
        '    strcpy(text, "MPICH Version:      4.9\\nMPICH Device: none");',
        "    return *length = 0;",
        "}",
    ]
    source.write_text("\n".join(lines))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    monkeypatch.setenv("THRIFFTY_LIBRARY", str(path))
    mine = MPI.Get_library_version().split(",")[0]
    text = rf"this process uses {mine}, and .*libother.so was built for MPICH Version: 4.9"
    thriffty._library.over_mpi.cache_clear()
    with pytest.raises(ImportError, match=text):
        thriffty.Plan((4, 6), comm=MPI.COMM_SELF)
    thriffty._library.over_mpi.cache_clear()


def test_operators_on_spectra_where_they_are():
    shape, box = (8, 12, 10), (2 * np.pi, 4 * np.pi, 2 * np.pi)
    scalar = thriffty.Plan(shape, float, comm=WORLD, transposed_output=True)
    orders = {"input_order": scalar.input_order, "output_order": scalar.output_order}
    sides = dict(input=scalar.input_slices, output=scalar.output_slices, **orders)
    vector = thriffty.Plan(shape, float, comm=WORLD, batch=3, **sides)
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
        assert all_true(np.allclose(divergence, 0) and np.allclose(w[2], expected))

        def wrong_on_one():
            try:
                scalar.apply("gaussian", u_hat[0], box, np.nan if RANK == LAST else 0.1)
            except ValueError:
                assert RANK == LAST
            scalar.inverse(u_hat[0])

        told(wrong_on_one, f"rank {LAST}", "standard deviation")
        scalar.inverse(u_hat[0])


def test_operators_of_the_wrong_array_on_one_rank():
    with thriffty.Plan((4, 4, 4), complex, comm=WORLD) as plan:
        x = np.zeros(plan.output_shape, complex)

        def wrong_on_one():
            if RANK == LAST:
                with pytest.raises(ValueError, match="dtype of x"):
                    plan.apply("laplacian", x.real)
            plan.inverse(x)

        told(wrong_on_one, "dtype of x: found float64")
        plan.inverse(x)
