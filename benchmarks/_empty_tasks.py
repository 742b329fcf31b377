"""Empty tasks, side by side and in a chain, next to StarPU's: what the engine itself takes.

StarPU's tasks are functions in C, of which each scheduler and number of workers is tried; ours are
Python functions whose values are checked. By turns: `_starpu.c` runs in a process of its own.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import flowos as fo

TASKS, RUNS = 10_000, 3
"""RUNS: in one turn."""
SHAPES = ("wide", "chain")
SCHEDULERS, WORKERS = ("eager", "lws", "prio", "dmda"), ("1", "2")
PROGRAM = Path(__file__).with_name("_starpu.c")
Turn = Callable[[], Iterator[tuple[str, float]]]
"""One turn of a way: shapes and the seconds that each took."""


@fo.task
def nothing(v: fo.int64) -> fo.int64:
    return v


def empty_tasks(rounds: int) -> dict[str, Any]:
    """Microseconds a task."""
    with ExitStack() as opened:
        ways = {
            "inline": _ours(opened, workers="inline"),
            "threads": _ours(opened, workers="thread", cores=2),
            "threads, not fused": _ours(opened, workers="thread", cores=2, fuse="none"),
        }
        try:
            ways |= _starpu(Path(opened.enter_context(tempfile.TemporaryDirectory())))
            lacks = {}
        except NotHere as why:
            lacks = {"starpu": str(why)}
        took: dict[str, dict[str, list[float]]] = {
            name: {shape: [] for shape in SHAPES} for name in ways
        }
        for _ in range(rounds):
            for name, turn in ways.items():
                for shape, seconds in turn():
                    took[name][shape].append(seconds * 1e6 / TASKS)
    found = {
        name: {shape: statistics.median(each) for shape, each in shapes.items()}
        for name, shapes in took.items()
    }
    return {**found, **lacks, **_of_starpu(found)}


def _of_starpu(found: dict[str, Any]) -> dict[str, Any]:
    """Ours as parts of its best setting's."""
    peers = [name for name in found if name.startswith("starpu")]
    if not peers:
        return {}
    best = {shape: min(found[name][shape] for name in peers) for shape in SHAPES}
    parts = {
        name: {shape: each[shape] / best[shape] for shape in SHAPES}
        for name, each in found.items()
        if name not in peers
    }
    return {"of_starpu": parts}


def _ours(opened: ExitStack, **options: Any) -> Turn:
    value = chain = fo.flow_input("v", fo.int64)
    for _ in range(TASKS):
        chain = nothing(chain)
    flows: dict[str, Any] = {
        "wide": fo.flow_output(*(nothing(value) for _ in range(TASKS))),
        "chain": chain,
    }
    slices: dict[str, Any] = {
        shape: opened.enter_context(fo.slice(flow, **options)) for shape, flow in flows.items()
    }

    def turn() -> Iterator[tuple[str, float]]:
        for _ in range(RUNS):
            for shape, made in slices.items():
                began = time.perf_counter()
                results = made.run(1)
                yield shape, time.perf_counter() - began
                if set(results) != {1}:
                    raise SystemExit(f"{made} gave {results[:3]}...")

    for _ in turn():
        pass
    return turn


class NotHere(Exception):  # noqa: N818 - reads as what happened
    """StarPU cannot be compared with; says why."""


def _starpu(folder: Path) -> dict[str, Turn]:
    """Of each setting. Raises NotHere."""
    if shutil.which("pkg-config") is None or shutil.which("gcc") is None:
        raise NotHere("pkg-config and gcc are needed: apt install pkg-config gcc")
    asked = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "starpu-1.3"], capture_output=True, text=True
    )
    if asked.returncode:
        raise NotHere("no StarPU 1.3: apt install libstarpu-dev")
    program = folder / "starpu"
    words = ["gcc", "-O3", str(PROGRAM), *asked.stdout.split(), "-o", str(program)]
    subprocess.run(words, check=True)

    def way(scheduler: str, workers: str) -> Turn:
        variables = {
            **os.environ,
            "STARPU_SCHED": scheduler,
            "STARPU_NCPU": workers,
            "STARPU_NCUDA": "0",
            "STARPU_NOPENCL": "0",
            "STARPU_SILENT": "1",
            "STARPU_HOME": str(folder),
        }

        def turn() -> Iterator[tuple[str, float]]:
            line = [str(program), str(TASKS), str(RUNS)]
            done = subprocess.run(line, env=variables, stdout=subprocess.PIPE, check=True)
            for each in done.stdout.splitlines():
                yield from zip(SHAPES, map(float, each.split()), strict=True)

        return turn

    return {f"starpu {s} {n}": way(s, n) for s, n in product(SCHEDULERS, WORKERS)}
