"""Ways to do the same, measured by turns."""

import statistics
import time
from collections.abc import Callable
from typing import Any

Way = Callable[[], object]


def by_turns(
    ways: dict[str, Way],
    rounds: int,
    scale: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Each way's seconds times scale: the median, and the middle half."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for turn in range(rounds):
        names = list(ways) if turn % 2 == 0 else list(reversed(ways))
        for name in names:
            began = clock()
            ways[name]()
            took[name].append((clock() - began) * scale)
    return {
        name: {"median": statistics.median(each), "middle": statistics.quantiles(each, n=4)[::2]}
        for name, each in took.items()
    }


def repeated(way: Way, count: int) -> Way:
    def run() -> None:
        for _ in range(count):
            way()

    return run
