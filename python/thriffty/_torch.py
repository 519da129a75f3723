"""Groups of torch.distributed: gloo for data on the host, NCCL for data on GPUs."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed as dist

from ._callbacks import DeviceBytes


class TorchGroup:
    """The collectives of a group, which lives as long as its plans."""

    def __init__(self, group: Any) -> None:
        self._group = weakref.ref(group)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        # Such as "cpu:gloo,cuda:nccl". NCCL does not take tensors on the host.
        backends = str(dist.get_backend_config(group))
        on_device = "cpu:" not in backends
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_device else "cpu"
        if "nccl" in backends:
            self.device_alltoallv = self._device_alltoallv

    def _members(self) -> Any:
        group = self._group()
        # For torch, None is the group of all processes.
        if group is None:
            raise ReferenceError("the process group is gone")
        return group

    def _room(self, bytes: int) -> torch.Tensor:
        return torch.empty(bytes, dtype=torch.uint8, device=self._device)

    def allgather(self, mine: memoryview, rooms: list[memoryview]) -> None:
        received = [self._room(len(room)) for room in rooms]
        dist.all_gather(received, _tensor(mine).to(self._device), group=self._members())
        _copy(received, rooms)

    def alltoallv(self, parts: list[memoryview], rooms: list[memoryview]) -> None:
        sends, receives = [len(part) for part in parts], [len(room) for room in rooms]
        sent = torch.cat([_tensor(part) for part in parts]).to(self._device)
        received = self._room(sum(receives))
        dist.all_to_all_single(received, sent, receives, sends, group=self._members())
        _copy(received.cpu().split(receives), rooms)

    def _device_alltoallv(self, parts: list[DeviceBytes], rooms: list[DeviceBytes]) -> None:
        """Exchanges by NCCL. All arrays of a plan are on its device."""
        tensors = [torch.as_tensor(array) for array in (*rooms, *parts) if array.bytes > 0]
        device = tensors[0].device if tensors else torch.device("cuda", torch.cuda.current_device())
        none = torch.empty(0, dtype=torch.uint8, device=device)
        found = iter(tensors)
        received, sent = (
            [next(found) if array.bytes > 0 else none for array in side] for side in (rooms, parts)
        )
        with torch.cuda.device(device):
            dist.all_to_all(received, sent, group=self._members())
            torch.cuda.current_stream().synchronize()


def _tensor(memory: memoryview) -> torch.Tensor:
    """A tensor that views the same memory."""
    if len(memory) == 0:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(memory, dtype=torch.uint8)


def _copy(received: Any, rooms: list[memoryview]) -> None:
    for tensor, room in zip(received, rooms):
        _tensor(room).copy_(tensor)
