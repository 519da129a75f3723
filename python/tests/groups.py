"""Process groups, and the programs of their ranks in `test_groups.py`, one process each.

Most tests use the group of the example, which works over pipes.
"""

import gc
import os
import pickle
import shutil
import signal
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from several import CHECKS, World

import thriffty

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "python"))

from without_mpi import PipeGroup  # noqa: E402

SHAPE = (6, 8, 5)
LEFT = "rank {} left while others went on"


class HostGroup(PipeGroup):
    """A group whose ranks have these host names. It closes its pipes when abandoned."""

    def __init__(self, rank, pipes, hosts=("one", "two", "two")):
        super().__init__(rank, pipes)
        self.hosts = hosts

    def host(self):
        return self.hosts[self.rank % len(self.hosts)]

    def abandon(self):
        for pipe in self.pipes:
            if pipe is not None:
                pipe.close()


class MailGroup(HostGroup):
    """A group that also has messages: a tag and bytes, through separate pipes."""

    def __init__(self, rank, pipes, mail):
        super().__init__(rank, pipes)
        self.mail, self.arrived = mail, {}

    def isend(self, to, tag, message):
        self.mail[to].send((tag, message))

    def irecv(self, source, tag, most):
        return source, tag

    def test(self, request):
        if request is None:
            return b""
        source, _ = request
        while self.mail[source].poll():
            tag, message = self.mail[source].recv()
            self.arrived.setdefault((source, tag), []).append(message)
        arrived = self.arrived.get(request)
        return arrived.pop(0) if arrived else None


class BrokenGroup(HostGroup):
    """A group that works until its last rank is set to fail."""

    broken = False

    def alltoallv(self, parts):
        if self.broken and self.rank == self.size - 1:
            raise OSError("the cable is broken")
        return super().alltoallv(parts)


def world_of(group, cases=0):
    def gather(value):
        words = pickle.dumps(value)
        lengths = group.allgather(len(words).to_bytes(8, "little"))
        most = max(int.from_bytes(length, "little") for length in lengths)
        return [pickle.loads(found) for found in group.allgather(words.ljust(most))]

    return World(group, gather, cases)


def transformed(plan):
    """Whether the plan transforms like NumPy."""
    whole = np.random.default_rng(0).standard_normal(SHAPE)
    spectrum = plan.forward(np.ascontiguousarray(whole[plan.input_slices]))
    back = plan.inverse(spectrum)
    right = np.allclose(spectrum, np.fft.rfftn(whole)[plan.output_slices], atol=1e-12)
    return right and np.allclose(back, whole[plan.input_slices])


def planned(comm, **options):
    return thriffty.Plan(SHAPE, float, comm=comm, **options)


def failed(call):
    """The text of the error after a group fails."""
    try:
        call()
    except thriffty.TransportError as error:
        return str(error)
    raise AssertionError("a call that does not fail")


def plans(rank, pipes, mail):
    """The checks that plans over MPI also pass."""
    world = world_of(PipeGroup(rank, pipes), cases=30 // len(pipes))
    for check in CHECKS:
        check(world)


def lives(rank, pipes, mail):
    """Several groups, and halves of groups, which end in any order."""
    known = thriffty._groups._known
    before = len(known)
    first, second = PipeGroup(rank, pipes), PipeGroup(rank, pipes)
    half = PipeGroup(rank // 2, pipes[rank % 2 :: 2])
    groups = [first, second, half, first]
    plans = [planned(group) for group in groups]
    assert [plan.comm for plan in plans] == groups
    assert len({id(plan._ranks) for plan in plans}) == 3
    for number in np.random.default_rng(0).permutation(4):
        assert transformed(plans[number])
    # Each rank drops its plans in a different order.
    order = np.random.default_rng(rank).permutation(4)
    for number in order[:2]:
        plans[number] = None
    del groups, first, half
    gc.collect()
    with planned(second) as last:
        assert transformed(last)
    plans.clear()
    second.plan, second.itself = planned(second), second
    assert transformed(second.plan)
    del second, last
    gc.collect()
    assert len(known) == before


def forks(rank, pipes, mail):
    """A forked process has its own plans and does not belong to its parent's group."""
    group = PipeGroup(rank, pipes)
    with planned(group) as plan:
        child = os.fork()
        if child == 0:
            try:
                ends = [lambda: planned(group), lambda: plan.forward(plan.empty_input())]
                for call in ends:
                    try:
                        call()
                    except thriffty.Error as error:
                        assert "before a process was forked" in str(error), error
                    else:
                        raise AssertionError("a rank that is none")
                assert thriffty.fftn(np.ones(SHAPE))[0, 0, 0] == 240
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert transformed(plan)


def hosts(rank, pipes, mail):
    """Ranks that claim to be on several hosts use the group, with and without messages."""
    group = HostGroup(rank, pipes)
    world = world_of(group)
    for options in ({}, {"memory": "least"}, {"exchange": "alltoallv"}):
        with planned(group, **options) as plan:
            assert world.all_true(transformed(plan))
    if world.size > 1:
        expected = "found p2p, expected alltoallv"
        world.same_error(lambda: planned(group, exchange="p2p"), expected)
    mailed = MailGroup(rank, pipes, mail)
    for exchange in (None, "p2p", "pipelined", "hosts", "kway2", "alltoallv"):
        with planned(mailed, exchange=exchange) as plan:
            assert world.all_true(transformed(plan))


def wrong_groups(rank, pipes, mail):
    """Groups whose methods fail or return wrong values."""
    size = len(pipes)

    class Short(PipeGroup):
        def allgather(self, mine):
            return super().allgather(mine)[1:]

    class Shorter(PipeGroup):
        def allgather(self, mine):
            return [part[1:] for part in super().allgather(mine)]

    class Turned(PipeGroup):
        def allgather(self, mine):
            return super().allgather(mine)[::-1]

    expected = f"ValueError: found the bytes of {size - 1} ranks, expected {size}"
    assert expected in failed(lambda: planned(Short(rank, pipes)))
    assert "bytes from rank 0, expected" in failed(lambda: planned(Shorter(rank, pipes)))
    turned = Turned(rank, pipes)
    world_of(PipeGroup(rank, pipes)).same_error(lambda: planned(turned), "in its place")

    group = BrokenGroup(rank, pipes)
    with planned(group) as plan:
        assert transformed(plan)
        group.broken = True
        text = failed(lambda: transformed(plan))
        assert ("OSError: the cable is broken" in text) == (rank == size - 1), text
        assert failed(lambda: transformed(plan)) == text == failed(lambda: planned(group))


def in_torch(rank, pipes, backend="gloo"):
    """The ranks of a new torch group, and a folder to remove."""
    import torch.distributed as dist

    world = world_of(PipeGroup(rank, pipes))
    folder = world.gather(tempfile.mkdtemp() if rank == 0 else None)[0]
    store = dist.FileStore(os.path.join(folder, "store"), world.size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world.size)
    return world, folder


def torch_tensors(rank, pipes, mail):
    """DTensors, and gradients of plans."""
    tensors_of(rank, pipes, "gloo", "cpu")


def torch_tensors_on_gpus(rank, pipes, mail):
    """DTensors with one GPU per rank."""
    import torch

    torch.cuda.set_device(rank)
    tensors_of(rank, pipes, "nccl", "cuda")


def tensors_of(rank, pipes, backend, device):
    import torch_ranks

    world, folder = in_torch(rank, pipes, backend)
    torch_ranks.checks(world, device)
    torch_ranks.dist.destroy_process_group()
    if rank == 0:
        shutil.rmtree(folder)


def torch_groups(rank, pipes, mail):
    """Groups of torch.distributed, on one host and on several."""
    import torch.distributed as dist

    world, folder = in_torch(rank, pipes)
    everybody = dist.group.WORLD
    pair = dist.new_group([0, 2])
    with planned(everybody) as plan:
        assert world.all_true(transformed(plan)) and plan.comm is everybody
    if rank != 1:
        with planned(pair) as plan:
            assert transformed(plan)
    for check in CHECKS[1:]:
        check(World(everybody, world.gather, cases=0))
    from thriffty._torch import TorchGroup

    TorchGroup.host = lambda self: ("one", "two", "two")[self.rank]
    elsewhere = dist.new_group([0, 1, 2])
    for options in ({}, {"memory": "least"}):
        with planned(elsewhere, **options) as plan:
            assert world.all_true(transformed(plan))
    with planned(elsewhere) as plan:
        if rank < 2:
            failed(lambda: [transformed(plan) for _ in range(3)])
    dist.destroy_process_group()
    if rank == 0:
        shutil.rmtree(folder)


def a_death(rank, pipes, mail):
    """One of four ranks is killed during transforms, and the other three continue."""
    victim, number = 2, 0
    plan = planned(PipeGroup(rank, pipes))
    try:
        while transformed(plan):
            number += 1
            if rank == victim and number == 30:
                os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a wrong result")
    except thriffty.TransportError as error:
        assert str(error) == LEFT.format(victim)
    assert failed(lambda: transformed(plan)) == LEFT.format(victim)
    assert failed(lambda: planned(plan.comm)) == LEFT.format(victim)
    plan.close()
    rest = [pipe for other, pipe in enumerate(pipes) if other != victim]
    with planned(PipeGroup(rank - (rank > victim), rest)) as plan:
        for _ in range(30):
            assert transformed(plan)
    maps = Path("/proc/self/maps").read_text()
    assert "/memfd:thriffty" in maps or len(rest) == 1
    assert "/dev/shm" not in maps


def main(body, rank, pipes: list[Connection | None], mail: list[Connection | None]):
    globals()[body](rank, pipes, mail)
