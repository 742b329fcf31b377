"""A flow whose tasks have several bodies: each engine forced, and what measurement chooses."""

import statistics
import time
from typing import Any

import numpy as np
from _by_turns import Way, by_turns, repeated

import flowos as fo

FORCED = ("python", "cpu", "opencl")
TURN_SECONDS = 0.1
"""One run in 50 ms is noted, which takes 0.3 ms: a turn has as much of it as a program that goes on
running."""


def forced_and_chosen(flow: Any, floats: int, rounds: int) -> dict[str, Any]:
    """Seconds of a run with arrays of so many floats. of_best: chosen by the best forced one."""
    values = (np.ones(floats, np.float32),) * 2
    opened = {name: fo.slice(flow, engines=(name,), workers="inline") for name in FORCED}
    opened["chosen"] = fo.slice(flow, workers="inline")
    try:
        for _ in range(40):
            opened["chosen"].run(*values)
        runs: dict[str, Way] = {
            name: lambda s=each: s.run(*values)  # type: ignore[misc]
            for name, each in opened.items()
        }
        counts = {name: count_of(run) for name, run in runs.items()}
        ways = {name: repeated(run, counts[name]) for name, run in runs.items()}
        took = by_turns(ways, rounds, 1.0)
        plan = [task.engine for task in opened["chosen"].plan(*values).tasks]
    finally:
        for each in opened.values():
            each.free()
    medians = {name: way["median"] / counts[name] for name, way in took.items()}
    best = min(medians[name] for name in FORCED)
    return {**medians, "engines": plan, "of_best": medians["chosen"] / best}


def count_of(run: Way) -> int:
    """So many runs last about a turn."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return max(1, round(TURN_SECONDS / statistics.median(took)))
