"""Times collectives of torch.distributed between ranks of one node or several: NCCL, or Gloo.

usage: python torch_collectives.py --ranks N --backend nccl|gloo --seconds S --sizes BYTES,...
       [--nodes N]

Times and bandwidths as nccl-tests define them (doc/PERFORMANCE.md): size is the larger of the send
and the receive buffer of a rank; algorithm bandwidth is size over time; bus bandwidth is that times
2 (n - 1) / n for allreduce and (n - 1) / n for allgather and reducescatter. A time is the mean over
the ranks. Every result is checked before it is timed.
With --nodes, mpirun or srun starts this on each of them, in a folder that all see; --ranks are
those of each.
Prints the JSON that probes read, on the first node; exits with 1 and a line if a result is wrong.
The ranks are forked once PyTorch is imported, and end with this program.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from node_links import ALONE, NodeLinks, NodeLinksError, linked
from rank_processes import first_failure, forked

BUS: dict[str, Callable[[int], float]] = {
    "allreduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "allgather": lambda ranks: (ranks - 1) / ranks,
    "reducescatter": lambda ranks: (ranks - 1) / ranks,
}
MIN_SAMPLES, MAX_SAMPLES, CALLS = 3, 20, 10
TimedCall = Callable[[], Any]


def named(new: str, old: str) -> Any:
    """A function of torch.distributed by its name, or by the one before PyTorch 2.13."""
    return getattr(distributed, new, None) or getattr(distributed, old)


# --- a rank ------------------------------------------------------------------------------------


class Rank:
    """One of the ranks of all nodes, with its buffers of f32 on its device.

    each: ranks of a node.
    """

    def __init__(self, rank: int, each: int, nodes: int, backend: str) -> None:
        self.rank, self.ranks, self.is_gpu = rank, each * nodes, backend == "nccl"
        self.device = f"cuda:{rank % each}" if self.is_gpu else "cpu"

    def wait(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def collective(self, kind: str, size: int) -> tuple[TimedCall, TimedCall]:
        """The call; and one that says whether its first result is right."""
        ranks = self.ranks
        count = max(1, size // 4 // ranks)
        part = torch.full((count,), 1.0 + self.rank, device=self.device)
        whole = torch.full((count * ranks,), 1.0 + self.rank, device=self.device)
        gather = named("all_gather_single", "all_gather_into_tensor")
        scatter = named("reduce_scatter_single", "reduce_scatter_tensor")
        total, each = ranks * (ranks + 1) / 2, torch.arange(1.0, ranks + 1, device=self.device)
        calls: dict[str, tuple[TimedCall, TimedCall]] = {
            "allreduce": (
                lambda: distributed.all_reduce(whole),
                lambda: bool((whole == total).all()),
            ),
            "allgather": (
                lambda: gather(whole, part),
                lambda: bool((whole.view(ranks, count) == each[:, None]).all()),
            ),
            "reducescatter": (
                lambda: scatter(part, whole),
                lambda: bool((part == total).all()),
            ),
        }
        return calls[kind]

    def times(self, kind: str, size: int, seconds: float) -> list[float]:
        call, is_right = self.collective(kind, size)
        call()
        if not is_right():
            sys.exit(f"torch_collectives: {kind} of {size} bytes gave wrong sums on a rank")
        once = self._calls(call, CALLS)
        count = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / max(once * CALLS, 1e-9))))
        (agreed,) = self._agreed([float(count)])
        return [self._calls(call, CALLS) for _ in range(round(agreed))]

    def _calls(self, call: TimedCall, calls: int) -> float:
        """Seconds of one of these calls, the mean over the ranks."""
        distributed.barrier()
        self.wait()
        began = time.perf_counter()
        for _ in range(calls):
            call()
        self.wait()
        (mean,) = self._agreed([(time.perf_counter() - began) / calls])
        return mean

    def _agreed(self, values: list[float]) -> list[float]:
        """The mean over the ranks."""
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(shared)
        return [float(value) / self.ranks for value in shared]


def readings_of(kind: str, size: int, ranks: int, times: list[float]) -> list[dict[str, Any]]:
    size = max(1, size // 4 // ranks) * 4 * ranks
    of = {
        "time": ("second", times),
        "algorithm_bandwidth": ("byte/s", [size / seconds for seconds in times]),
        "bus_bandwidth": ("byte/s", [BUS[kind](ranks) * size / seconds for seconds in times]),
    }
    levels, notes = {"collective": kind, "bytes": str(size)}, {"torch": torch.__version__}
    return [
        {"metric": name, "unit": unit, "values": values, "levels": levels, "notes": notes}
        for name, (unit, values) in of.items()
    ]


def be_rank(number: int, options: argparse.Namespace, meet: str) -> int:
    rank = Rank(number, options.ranks, options.nodes, options.backend)
    if rank.is_gpu:
        torch.cuda.set_device(rank.device)
    else:
        torch.set_num_threads(1)
    distributed.init_process_group(
        options.backend, init_method=meet, rank=rank.rank, world_size=rank.ranks
    )
    sizes = [int(word) for word in options.sizes.split(",")]
    each = options.seconds / len(BUS) / len(sizes)
    found = [
        reading
        for kind in BUS
        for size in sizes
        for reading in readings_of(kind, size, rank.ranks, rank.times(kind, size, each))
    ]
    if number == 0:
        sys.stdout.write(json.dumps({"readings": found}))
        sys.stdout.flush()
    distributed.destroy_process_group()
    return 0


# --- all together ------------------------------------------------------------------------------


def run_ranks(options: argparse.Namespace, links: NodeLinks = ALONE) -> int:
    """Fork the ranks of this node; when one fails the others, which wait for it, are ended."""
    own = {"GLOO_SOCKET_IFNAME": links.interface} if links.interface else {}
    before = options.ranks * links.number
    with tempfile.TemporaryDirectory() as folder:
        meet = f"file://{folder}/meet" if links.count == 1 else links.meeting_place()
        ranks = range(before, before + options.ranks)
        started = [forked(own, partial(be_rank, rank, options, meet)) for rank in ranks]
        return abs(first_failure(started))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time collectives of torch.distributed.")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--backend", choices=("nccl", "gloo"), required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--nodes", type=int, default=1)
    return parser.parse_args()


def main(options: argparse.Namespace) -> None:
    try:
        sys.exit(run_ranks(options, linked(options.nodes, Path("flowos-nodes.json"))))
    except NodeLinksError as why:
        sys.exit(f"torch_collectives: {why}")


if __name__ == "__main__":
    given = read_options()
    import torch
    from torch import distributed

    main(given)
