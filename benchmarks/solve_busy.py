"""Slowdown of a solve with all threads by other programs, compared with one thread.

`python benchmarks/solve_busy.py [--json] [--rounds 9] [--cells 64]`

Solves with one thread and with all alternate in every round, while 0, 2, 4 and 8 busy loops run.
`ratio` is the time with all threads over that with one: medians of paired rounds, with quartiles.
`x` is a hash of the answer, which must not change. Exit 1 if a ratio is above 1.3, or answers
differ.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from _numbers import whole_number

import flowos as fo
from flowos.solver import Csr, poisson

LOOPS = (0, 2, 4, 8)
MAX_RATIO = 1.3


@contextmanager
def loops(count: int) -> Iterator[None]:
    word = [sys.executable, "-S", "-c", "while True: pass"]
    running = [subprocess.Popen(word) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def seconds(matrix: Csr, threads: int, answers: set[str]) -> float:
    b = np.ones(matrix.shape[0])
    start = time.perf_counter()
    x, _ = fo.solve(matrix, b, threads=threads)
    took = time.perf_counter() - start
    answers.add(hashlib.sha256(x.tobytes()).hexdigest()[:16])
    return took


def side_by_side(count: int, matrix: Csr, rounds: int, answers: set[str]) -> dict[str, Any]:
    """Seconds with one thread and with all while `count` loops run, and their ratios."""
    cores = len(os.sched_getaffinity(0))
    turns: dict[int, list[float]] = {1: [], cores: []}
    with loops(count):
        for number in range(rounds):
            for threads in sorted(turns, reverse=bool(number % 2)):
                turns[threads].append(seconds(matrix, threads, answers))
    ratios = [many / one for one, many in zip(turns[1], turns[cores], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "loops": count,
        "threads": cores,
        "one": statistics.median(turns[1]),
        "all": statistics.median(turns[cores]),
        "ratio": middle,
        "quartiles": [low, high],
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--json", action="store_true")
    options.add_argument("--rounds", type=whole_number(2, "for quartiles"), default=9)
    options.add_argument(
        "--cells", type=whole_number(), default=64, help="along each side of the grid"
    )
    args = options.parse_args()
    matrix = poisson(args.cells, args.cells, args.cells)
    answers: set[str] = set()
    rows = [side_by_side(count, matrix, args.rounds, answers) for count in LOOPS]
    holds = len(answers) == 1 and all(row["ratio"] <= MAX_RATIO for row in rows)
    found = {"cells": args.cells, "rows": rows, "x": sorted(answers), "holds": holds}
    if args.json:
        print(json.dumps(found, indent=1))
        return 0 if holds else 1
    for row in rows:
        low, high = row["quartiles"]
        print(
            f"{row['loops']} loops: one thread {row['one']:.3f} s, {row['threads']} threads "
            f"{row['all']:.3f} s, ratio {row['ratio']:.2f} ({low:.2f} to {high:.2f})"
        )
    print(f"x: {', '.join(sorted(answers))}; ratios up to {MAX_RATIO} hold: {holds}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
