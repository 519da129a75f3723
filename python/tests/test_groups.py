"""Plans over process groups, without MPI: processes that pipes connect."""

import importlib.util
import multiprocessing
import os
import signal
from pathlib import Path

import groups
import pytest

import thriffty

HERE = Path(__file__).parent
SECONDS = 100


@pytest.fixture(scope="module")
def start():
    """Starts processes from one that has all modules, and no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["groups"])
    path = os.environ.get("PYTHONPATH")
    # The server finds modules by this alone.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *([path] if path else [])])
    yield context.Process
    os.environ.pop("PYTHONPATH")
    if path is not None:
        os.environ["PYTHONPATH"] = path


def pairs(ranks):
    """For each rank, a pipe to each other one."""
    pipes = [[None] * ranks for _ in range(ranks)]
    for a in range(ranks):
        for b in range(a):
            pipes[a][b], pipes[b][a] = multiprocessing.Pipe()
    return pipes


def run(start, body, ranks):
    """The exit codes of processes that run a body."""
    pipes, mail = pairs(ranks), pairs(ranks)
    processes = [
        start(target=groups.main, args=(body, rank, pipes[rank], mail[rank]))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for pipe in sum(pipes + mail, []):
        if pipe is not None:
            pipe.close()
    for process in processes:
        process.join(SECONDS)
        # It has its exit code then, and none that was expected.
        process.kill()
    return [process.exitcode for process in processes]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_groups_are_communicators(start, ranks):
    assert run(start, "plans", ranks) == [0] * ranks


@pytest.mark.parametrize("body", ["lives", "forks", "wrong_groups", "hosts"])
def test_groups_of_three(start, body):
    assert run(start, body, 3) == [0] * 3


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no torch")
def test_groups_of_torch(start):
    assert run(start, "torch_groups", 3) == [0] * 3


def test_three_go_on_when_one_of_four_is_killed(start):
    assert run(start, "a_death", 4) == [0, 0, -signal.SIGKILL, 0]


def test_what_is_no_group_is_refused():
    with pytest.raises(TypeError, match="comm: found int, expected a communicator of mpi4py"):
        thriffty.Plan((4, 6), comm=7)
