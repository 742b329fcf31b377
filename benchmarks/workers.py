"""Cost of a worker process: hop against the floor of a socket pair, fused chain, 100 MB array.

`python benchmarks/workers.py [--json] [--rounds 11]`

Floor and hop are interleaved in every round, so that their ratio is valid on a busy machine too.
Times are medians over rounds, in seconds; `checks` are the computed results.
"""

import argparse
import json
import os
import socket
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _numbers import whole_number

import flowos as fo
from flowos.engine import here
from flowos.engine.flow._inside import Surroundings
from flowos.engine.workers._process_lanes import ProcessLanes
from flowos.plan import compile_flow

HOPS = 1000
CHAIN = 1000
ELEMENTS = 12_500_000
"""Elements of float64: 100 MB."""


def add(a: int, b: int) -> int:
    return a + b


_made: dict[int, Any] = {}


def produce(seed: int) -> Any:
    """The same array for the same seed, made once per process."""
    if seed not in _made:
        _made[seed] = np.random.default_rng(seed).random(ELEMENTS)
    return _made[seed]


def ends(x: Any) -> float:
    return float(x[0] + x[-1])


def pages(x: Any) -> float:
    """Read one element of every page."""
    return float(x[:: os.sysconf("SC_PAGE_SIZE") // 8].sum())


def task(name: str, fun: Callable[..., Any], inputs: tuple[Any, ...], output: Any) -> Any:
    ports = tuple((f"i{k}", kind) for k, kind in enumerate(inputs))
    return fo.task(
        {"task_name": name, "iport_nametypes": ports, "oport_nametypes": output, "fun": fun}
    )


class Floor:
    """Round trips over a socket pair to a forked child that does nothing else."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._child = os.fork()
        if self._child == 0:
            self._ours.close()
            while message := theirs.recv(4096):
                theirs.send(message)
            os._exit(0)
        theirs.close()

    def seconds(self) -> float:
        began = time.perf_counter()
        for _ in range(HOPS):
            self._ours.send(bytes(64))
            self._ours.recv(4096)
        return (time.perf_counter() - began) / HOPS

    def close(self) -> None:
        self._ours.close()
        os.waitpid(self._child, 0)


def hops(rounds: int) -> dict[str, Any]:
    floor = Floor()
    a, b = fo.flow_input("a", fo.int64), fo.flow_input("b", fo.int64)
    plus = task("add", add, (fo.int64, fo.int64), fo.int64)
    single = compile_flow(fo.flow_output(plus(a, b)))
    total = a
    for _ in range(CHAIN):
        total = plus(total, b)
    chain = compile_flow(fo.flow_output(total))
    began = time.perf_counter()
    lanes = [ProcessLanes(s, 1, around=Surroundings(node=here())) for s in (single, chain)]
    results = [
        ls.lanes[0].run(s.stages, [[1, 2]]) for ls, s in zip(lanes, (single, chain), strict=True)
    ]
    started = (time.perf_counter() - began) / 2
    floors, hop, fused = [], [], []
    for _ in range(rounds):
        floors.append(floor.seconds())
        began = time.perf_counter()
        for _ in range(HOPS):
            lanes[0].lanes[0].run(single.stages, [[1, 2]])
        hop.append((time.perf_counter() - began) / HOPS)
        began = time.perf_counter()
        lanes[1].lanes[0].run(chain.stages, [[1, 2]])
        fused.append((time.perf_counter() - began) / CHAIN)
    for each in lanes:
        each.close()
    floor.close()
    return {
        "start_and_first_run_seconds": started,
        "floor_seconds": statistics.median(floors),
        "hop_seconds": statistics.median(hop),
        "hop_over_floor": statistics.median(h / f for h, f in zip(hop, floors, strict=True)),
        "fused_seconds_per_task": statistics.median(fused),
        "checks": results,
    }


def arrays(rounds: int, use: Callable[..., Any]) -> dict[str, Any]:
    """Time an array from one worker to another; it exists in the first, the second uses it."""
    kind = fo.array(fo.float64, (None,))
    seed = fo.flow_input("seed", fo.int64)
    made = task("produce", produce, (fo.int64,), kind)(seed)
    schedule = compile_flow(
        fo.flow_output(task("use", use, (kind,), fo.float64)(made)), fuse="none"
    )
    lanes = ProcessLanes(schedule, 2, around=Surroundings(node=here()))
    make, take = schedule.stages
    seconds, results = [], set()
    for _ in range(rounds + 2):
        began = time.perf_counter()
        array = lanes.lanes[0].run([make], [[7]])
        results.add(lanes.lanes[1].run([take], array)[0][0])
        seconds.append(time.perf_counter() - began)
        del array
    lanes.close()
    return {
        "first_seconds": seconds[0],
        "seconds": statistics.median(seconds[2:]),
        "checks": list(results),
    }


def memory_bytes() -> int:
    """PSS of this process and two workers after a run of integers."""
    a = fo.flow_input("a", fo.int64)
    plus = task("add", add, (fo.int64, fo.int64), fo.int64)
    schedule = compile_flow(fo.flow_output(plus(a, a), plus(a, a)))
    lanes = ProcessLanes(schedule, 2, around=Surroundings(node=here()))
    for lane, stage in zip(lanes.lanes, schedule.stages, strict=True):
        lane.run([stage], [[1]])
    me = os.getpid()
    found = {me}
    for _ in range(3):
        found |= {
            p
            for p in map(int, filter(str.isdigit, (f.name for f in Path("/proc").iterdir())))
            if parent(p) in found
        }
    rollups = [Path(f"/proc/{p}/smaps_rollup").read_text() for p in found]
    lanes.close()
    return sum(
        int(line.split()[1]) * 1024
        for text in rollups
        for line in text.splitlines()
        if line.startswith("Pss:")
    )


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--rounds", type=whole_number(), default=11)
    rounds = parser.parse_args().rounds
    report = {
        "memory_bytes_with_numpy_here": memory_bytes(),
        "hops": hops(rounds),
        "array_100MB_ends_used": arrays(rounds, ends),
        "array_100MB_every_page_used": arrays(rounds, pages),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
