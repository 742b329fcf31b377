"""CPU microseconds per task whose result is kept, or found again, with FlowOS, joblib and Parsl.

One task over many values: `without` just runs it, `kept` writes each result, `found` reads it in
another slice (joblib: memory, Parsl: data flow kernel). All ways by turns, sums compared. Parsl
has checkpoint_mode="task_exit"; all write each result as its task ends. Then bytes per second at
which FlowOS looks at a large value.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import flowos as fo

TASKS, ROUNDS, LARGE = 1000, 5, 64 << 20
Way = Callable[[Path, range], int]


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


@fo.task
def first(values: fo.array(fo.uint8, (None,))) -> fo.int64:  # type: ignore[valid-type]
    return int(values[0])


@fo.task
def size(path: fo.File) -> fo.int64:
    return path.stat().st_size


def plain_add(x: int, y: int) -> int:
    return x + y


def flowos(folder: Path | None, values: range) -> int:
    flow = fo.flow_output(add(fo.flow_input("x", fo.int64), 1))
    with fo.slice(flow, workers="inline", journal=folder) as s:
        return sum(int(str(s.run(x)[0])) for x in values)


def joblib(folder: Path, values: range) -> int:
    from joblib import Memory

    kept: Any = Memory(folder, verbose=0).cache(plain_add)
    return sum(kept(x, 1) for x in values)


def parsl(folder: Path, values: range) -> int:
    import parsl as p
    from parsl.config import Config
    from parsl.dataflow.memoization import BasicMemoizer
    from parsl.executors import ThreadPoolExecutor
    from parsl.utils import get_all_checkpoints

    executor = ThreadPoolExecutor(max_threads=1)
    config = Config(
        executors=[executor],
        run_dir=str(folder),
        memoizer=BasicMemoizer(
            checkpoint_mode="task_exit",
            checkpoint_files=get_all_checkpoints(str(folder)) if folder.exists() else [],
        ),
        initialize_logging=False,
    )
    with p.load(config) as kernel:
        app = p.python_app(plain_add, data_flow_kernel=kernel, cache=True)
        return sum(app(x, 1).result() for x in values)


WAYS: dict[str, Way] = {"flowos": flowos, "joblib": joblib, "parsl": parsl}


def us_per_task(run: Callable[[], int], total: int) -> float:
    began = time.process_time()
    found = run()
    seconds = time.process_time() - began
    if found != total:
        raise SystemExit(f"the sum is {found}, not {total}")
    return seconds / TASKS * 1e6


def measured(ways: dict[str, Way], folder: Path) -> dict[str, dict[str, float]]:
    times: dict[str, dict[str, list[float]]] = {name: {"kept": [], "found": []} for name in ways}
    times["flowos"]["without"] = []
    values = range(TASKS)
    total = sum(values) + TASKS
    for _ in range(ROUNDS):
        times["flowos"]["without"].append(us_per_task(partial(flowos, None, values), total))
        for name, way in ways.items():
            place = folder / name
            for what in ("kept", "found"):
                times[name][what].append(us_per_task(partial(way, place, values), total))
            shutil.rmtree(place)
    return {n: {w: round(median(t), 1) for w, t in each.items()} for n, each in times.items()}


def rates(folder: Path) -> dict[str, int]:
    """Bytes per second of CPU time of the first look at a large value."""
    found: dict[str, int] = {}
    file = folder / "large"
    file.write_bytes(bytes(LARGE))
    cases = (("array", first, np.zeros(LARGE, dtype=np.uint8)), ("file", size, file))
    for name, task, value in cases:
        port = fo.flow_input("x", task.inputs[0].type)
        with fo.slice(task(port), workers="inline", journal=folder / "large-journal") as s:
            began = time.process_time()
            s.run(value)
            found[name] = round(LARGE / (time.process_time() - began))
    return found


def usable(name: str, way: Way, folder: Path) -> bool:
    """A first run, which also loads what the way imports."""
    try:
        way(folder / f"first-{name}", range(3))
    except ImportError as error:
        print(f"{name} is left out: {error}", file=sys.stderr)
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        ways = {name: way for name, way in WAYS.items() if usable(name, way, folder)}
        answer = {
            "cpu_us_per_task": measured(ways, folder),
            "digest_bytes_per_second": rates(folder),
            "tasks": TASKS,
            "rounds": ROUNDS,
        }
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
