"""The processes of a training: torch.distributed where there are several, nothing where one is."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


class TrainingError(Exception):
    """What a person can mend; its text is one line."""


@dataclass(frozen=True, slots=True)
class TrainingRanks:
    """This process is `rank` of `size`, and computes on `device`.

    hosts: a group for values in host memory, which is never in the way of gradients.
    """

    rank: int
    size: int
    device: Any
    hosts: Any

    def gathered(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self.hosts)
        return values


@contextmanager
def joined(device: str) -> Iterator[TrainingRanks]:
    """Joins the others, by the variables of torchrun. device: "auto", "cuda" or "cpu"."""
    size, local = (int(os.environ.get(name, low)) for name, low in _VARIABLES)
    where = _device(device, local)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    if size == 1:
        yield TrainingRanks(rank=0, size=1, device=where, hosts=None)
        return
    dist.init_process_group("nccl" if where.type == "cuda" else "gloo")
    try:
        hosts = dist.new_group(backend="gloo")
        yield TrainingRanks(rank=dist.get_rank(), size=size, device=where, hosts=hosts)
    finally:
        dist.destroy_process_group()


_VARIABLES = (("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))


def _device(name: str, local: int) -> Any:
    count = torch.cuda.device_count()
    if name == "cpu" or (name == "auto" and count == 0):
        return torch.device("cpu")
    if local >= count:
        raise TrainingError(
            f"rank {local} of this machine has no GPU, there are {count}: "
            "start fewer with --nproc-per-node, or give --device cpu"
        )
    return torch.device("cuda", local)


class StopRequest:
    """SIGTERM and SIGINT, on which all ranks agree, so that all stop after the same step.

    A second one of them ends the process, as it does elsewhere.
    """

    def __init__(self, ranks: TrainingRanks) -> None:
        self._ranks, self._work, self._flag = ranks, None, torch.zeros(1, dtype=torch.int32)
        self._number = 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._requested)

    def _requested(self, number: int, _: object) -> None:
        self._number = number
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)

    def ask(self) -> None:
        """Begins to ask all ranks; the answer travels while the step is computed."""
        self._flag.fill_(self._number)
        if self._ranks.size > 1:
            self._work = dist.all_reduce(
                self._flag, dist.ReduceOp.MAX, group=self._ranks.hosts, async_op=True
            )

    def agreed(self) -> int:
        """The signal that any rank had got when all were asked; 0: none."""
        if self._work is not None:
            self._work.wait()
        return int(self._flag.item())
