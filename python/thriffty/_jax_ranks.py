"""The processes of `jax.distributed` as the ranks of plans."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jax.sharding import NamedSharding

_MILLISECONDS = 60_000


class Processes:
    """A process group over the coordination service, which is only fit for small messages."""

    def __init__(self, client: Any, rank: int, size: int, name: str) -> None:
        self.rank, self.size = rank, size
        self._client, self._name, self._turns = client, name, itertools.count()

    def alltoallv(self, parts: list[bytes]) -> list[bytes]:
        turn = f"{self._name}/{next(self._turns)}"
        for rank, part in enumerate(parts):
            self._client.key_value_set_bytes(f"{turn}/{self.rank}/{rank}", part)
        ranks = range(self.size)
        keys = [f"{turn}/{rank}/{self.rank}" for rank in ranks]
        received = [self._client.blocking_key_value_get_bytes(key, _MILLISECONDS) for key in keys]
        for key in keys:
            self._client.key_value_delete(key)
        return received

    def allgather(self, mine: bytes) -> list[bytes]:
        return self.alltoallv([mine] * self.size)


@functools.cache
def _group(processes: tuple[int, ...]) -> Processes:
    """The group of the processes that own the devices of a mesh, in its order."""
    import jax
    from jax._src.distributed import global_state  # There is no public name for it.

    rank = processes.index(jax.process_index())
    name = f"thriffty/{'-'.join(map(str, processes))}"
    return Processes(global_state.client, rank, len(processes), name)


def processes_of(mesh: Any) -> tuple[int, ...]:
    """The processes that own the devices of a mesh, in its order."""
    return tuple(device.process_index for device in mesh.devices.flat)


@functools.cache
def on_one_host(processes: tuple[int, ...]) -> bool:
    """Whether processes can share memory. Collective."""
    host = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    return len(set(_group(processes).allgather(host.encode()))) == 1


class _Ranks:
    """Makes this process's arguments of a plan. Two that are equal on one rank are on all."""

    def __init__(self, sides: tuple[tuple[NamedSharding, tuple[int, ...]], ...], first: int):
        self._asked = (sides, first)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranks) and self._asked == other._asked

    def __hash__(self) -> int:
        return hash(self._asked)

    def __call__(self) -> dict[str, Any]:
        sides, first = self._asked
        mesh = sides[0][0].mesh
        device = mesh.local_devices[0]
        bricks = [
            tuple(
                slice(part.start or 0, n if part.stop is None else part.stop)
                for part, n in zip(sharding.devices_indices_map(shape)[device], shape)
            )[first:]
            for sharding, shape in sides
        ]
        # The mesh may cut a single axis where no factor fits.
        group = _group(processes_of(mesh))
        return dict(comm=group, input=bricks[0], output=bricks[1], one_rank=True)


def ranks(mesh: Any, *asked: Any) -> Callable[[], dict[str, Any]]:
    """A function that makes this process's arguments of a plan for both kinds of data."""
    *sides, first = asked
    return _Ranks(tuple(sides), first)
