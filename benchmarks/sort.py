"""`fo.kernels.sort` next to NumPy's sorts, by turns.

`python benchmarks/sort.py [--json] [--elements 100000000] [--rounds 7]`
`ndarray.sort` sorts in place an array that was copied before the clock started; `np.sort` and ours
give a new one. Prints how many times as fast as each ours is, by type, and whether that is what it
has to be next to ndarray.sort. Exit 1 if results differ.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _numbers import whole_number

import flowos as fo

MIN_TIMES = 1.25
"""As fast as ndarray.sort, with 1e8 elements on two cores."""


def in_place(x: Any) -> tuple[float, Any]:
    copy = x.copy()
    began = time.perf_counter()
    copy.sort()
    return time.perf_counter() - began, copy


def by(function: Callable[[Any], Any]) -> Callable[[Any], tuple[float, Any]]:
    def timed(x: Any) -> tuple[float, Any]:
        began = time.perf_counter()
        result = function(x)
        return time.perf_counter() - began, result

    return timed


WAYS = {"ours": by(fo.kernels.sort), "ndarray.sort": in_place, "np.sort": by(np.sort)}


def compared(x: Any, rounds: int) -> dict[str, Any]:
    took: dict[str, list[float]] = {name: [] for name in WAYS}
    equal = True
    for turn in range(rounds):
        results = {}
        for name in list(WAYS)[:: 1 if turn % 2 == 0 else -1]:
            seconds, results[name] = WAYS[name](x)
            took[name].append(seconds)
        equal = equal and all(np.array_equal(results["ours"], each) for each in results.values())
    times = {
        f"times_{name}": statistics.median(
            theirs / ours for theirs, ours in zip(each, took["ours"], strict=True)
        )
        for name, each in took.items()
        if name != "ours"
    }
    rates = {name: x.size / statistics.median(each) / 1e6 for name, each in took.items()}
    holds = times["times_ndarray.sort"] >= MIN_TIMES
    return {"M_per_s": rates, **times, "at least": MIN_TIMES, "holds": holds, "equal": equal}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="as always")
    parser.add_argument("--elements", type=whole_number(), default=100_000_000)
    parser.add_argument("--rounds", type=whole_number(), default=7)
    given = parser.parse_args()
    dice = np.random.default_rng(0)
    found = {
        "float32": compared(dice.random(given.elements, np.float32), given.rounds),
        "int64": compared(dice.integers(-(2**62), 2**62, given.elements), given.rounds),
    }
    print(json.dumps(found, indent=1))
    return 0 if all(each["equal"] for each in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
