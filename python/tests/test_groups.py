"""Plans over process groups without MPI: processes connected by pipes."""

import ctypes
import importlib.util
import multiprocessing
import os
import signal
from pathlib import Path

import groups
import pytest

import thriffty
from thriffty._callbacks import Callbacks

HERE = Path(__file__).parent
SECONDS = 100


@pytest.fixture(scope="module")
def start():
    """Starts processes from one that has imported all modules and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["groups"])
    path = os.environ.get("PYTHONPATH")
    # The server only finds modules through this.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *([path] if path else [])])
    yield context.Process
    os.environ.pop("PYTHONPATH")
    if path is not None:
        os.environ["PYTHONPATH"] = path


def pairs(ranks):
    """For each rank, a pipe to every other rank."""
    pipes = [[None] * ranks for _ in range(ranks)]
    for a in range(ranks):
        for b in range(a):
            pipes[a][b], pipes[b][a] = multiprocessing.Pipe()
    return pipes


def run(start, body, ranks, seconds=SECONDS):
    """The exit codes of processes that run a function."""
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
        process.join(seconds)
        # It then has an exit code, and not an expected one.
        process.kill()
    return [process.exitcode for process in processes]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_groups_are_communicators(start, ranks):
    assert run(start, "plans", ranks) == [0] * ranks


@pytest.mark.parametrize("body", ["lives", "forks", "wrong_groups", "hosts"])
def test_groups_of_three(start, body):
    assert run(start, body, 3) == [0] * 3


WITH_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="there is no torch"
)


@WITH_TORCH
def test_groups_of_torch(start):
    assert run(start, "torch_groups", 3) == [0] * 3


@WITH_TORCH
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_tensors_of_torch(start, ranks):
    assert run(start, "torch_tensors", ranks, 400) == [0] * ranks


@WITH_TORCH
def test_tensors_of_torch_on_gpus(start):
    import torch

    ranks = min(torch.cuda.device_count(), 4)
    if ranks < 2:
        pytest.skip("there are not two GPUs")
    assert run(start, "torch_tensors_on_gpus", ranks, 400) == [0] * ranks


def test_three_go_on_when_one_of_four_is_killed(start):
    assert run(start, "a_death", 4) == [0, 0, -signal.SIGKILL, 0]


def test_what_is_no_group_is_refused():
    with pytest.raises(TypeError, match="comm: found int, expected a communicator of mpi4py"):
        thriffty.Plan((4, 6), comm=7)


def test_messages_of_devices_are_arrays_of_bytes():
    """The buffers that NCCL sends and receives, without a device."""

    class Group:
        rank, size = 0, 2

        def device_alltoallv(self, parts, rooms):
            described = [
                [(array["data"][0], array["shape"]) for array in map(interface, side)]
                for side in (parts, rooms)
            ]
            assert described == [[(4096, (3,)), (4164, (5,))], [(0, (0,)), (8256, (7,))]]
            if self.size == 3:
                raise RuntimeError("no device")

        def allgather(self, mine, rooms): ...

        def alltoallv(self, parts, rooms): ...

    def interface(array):
        return array.__cuda_array_interface__

    def numbers(*values):
        return (ctypes.c_size_t * len(values))(*values)

    group = Group()
    call = Callbacks(group, 2).struct.device_alltoallv
    places = 4096, numbers(3, 5), numbers(0, 68), 8192, numbers(0, 7), numbers(0, 64)
    assert call(None, *places) == 0
    group.size = 3
    assert call(None, *places) == 1
