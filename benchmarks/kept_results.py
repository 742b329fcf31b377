"""CPU microseconds per task without a journal, with a new one and with a full one.

One task over many values, in the calling thread, the ways by turns; then the digest of an array and
of a file in bytes per second.
"""

import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

import flowos as fo

TASKS, ROUNDS, LARGE = 2000, 7, 64 << 20


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


@fo.task
def first(values: fo.array(fo.uint8, (None,))) -> fo.int64:  # type: ignore[valid-type]
    return int(values[0])


@fo.task
def size(path: fo.File) -> fo.int64:
    return path.stat().st_size


def us_per_task(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return (time.process_time() - began) / TASKS * 1e6


def sweep(journal: Path | None, values: range) -> list[object]:
    flow = fo.flow_output(add(fo.flow_input("x", fo.int64), 1))
    with fo.slice(flow, workers="inline", journal=journal) as s:
        return [s.run(x) for x in values]


def rates(folder: Path) -> dict[str, float]:
    """Bytes per second of the first look at a large value."""
    found: dict[str, float] = {}
    file = folder / "large"
    file.write_bytes(bytes(LARGE))
    cases = (("array", first, np.zeros(LARGE, dtype=np.uint8)), ("file", size, file))
    for name, task, value in cases:
        port = fo.flow_input("x", task.inputs[0].type)
        with fo.slice(task(port), workers="inline", journal=folder / "large-journal") as s:
            began = time.process_time()
            s.run(value)
            found[name] = LARGE / (time.process_time() - began)
    return found


def main() -> None:
    times: dict[str, list[float]] = {"without": [], "kept": [], "found": []}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for turn in range(ROUNDS):
            values = range(turn * TASKS, (turn + 1) * TASKS)
            times["without"].append(us_per_task(partial(sweep, None, values)))
            times["kept"].append(us_per_task(partial(sweep, folder / "journal", values)))
            times["found"].append(us_per_task(partial(sweep, folder / "journal", values)))
        answer = {
            "us_per_task": {name: round(median(each), 2) for name, each in times.items()},
            "digest_bytes_per_second": {k: round(v) for k, v in rates(folder).items()},
            "tasks": TASKS,
            "rounds": ROUNDS,
        }
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
