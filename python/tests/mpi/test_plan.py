"""Plans over MPI. Every rank runs all tests: `mpirun -n 3 python -m pytest python/tests/mpi`."""

import gc
import shutil
import subprocess
import sys

import numpy as np
import pytest
from mpi4py import MPI
from reference import distance
from several import CHECKS, World

import thriffty

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()
LAST = RANKS - 1
ALL = World(WORLD, WORLD.allgather, cases=60, threads=(1, 2))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_plans(check):
    check(ALL)


def test_errors_of_arrays_are_the_same_on_every_rank():
    for who in {0, LAST}:
        mine, at = RANK == who, f"rank {who}: "
        array = thriffty.DistArray((6, 5), [0, 1], val=1.0)
        ALL.same_error(lambda: array.redistribute(7 if mine else 0), at + "axis: found 7")
        ALL.same_error(lambda: array.get((0,) if mine else (0, 0)), at + "gslice")


def test_forgotten_plans_are_destroyed_by_all_ranks():
    kept = thriffty._mpi.Ranks.of(WORLD)
    plans = [thriffty.Plan((4, 6), comm=WORLD) for _ in range(4)]
    # Each rank drops its plans in a different order, and the last rank keeps one.
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
    assert ALL.all_true(right)
    with pytest.raises(TypeError, match="comm: found int"):
        thriffty.Plan((6, 5), comm=7)


@pytest.mark.skipif(RANK > 0, reason="once is enough")
def test_the_library_says_what_it_is():
    """In a separate process, which does not run under this MPI."""
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
