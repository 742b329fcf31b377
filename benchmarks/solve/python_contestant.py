"""Shared code of contestants in Python: `MATRIX B X RTOL [OPTION...]`, as those in C++.

Times are from a matrix of scipy.sparse in memory to x in memory, without imports.
"""

import json
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import csr_file
import numpy as np

Answer = tuple[Any, int, Mapping[str, object]]
"""x, iterations, and other values to print."""
Solve = Callable[[Any, float], Answer]


def run(prepare: Callable[[Any, Sequence[str]], Solve]) -> None:
    """Run a contestant. prepare: sets up a solver for a matrix."""
    matrix_file, b_file, x_file, rtol, *options = sys.argv[1:]
    matrix = csr_file.read(Path(matrix_file)).scipy()
    b = np.fromfile(b_file)
    began = perf_counter()
    solve = prepare(matrix, options)
    ready = perf_counter()
    x, iterations, more = solve(b, float(rtol))
    done = perf_counter()
    np.asarray(x, np.float64).tofile(x_file)
    answer = {
        "setup_seconds": ready - began,
        "solve_seconds": done - ready,
        "iterations": iterations,
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **more,
    }
    print(json.dumps(answer))


class Count:
    """A callback that counts iterations."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, _x: Any) -> None:
        self.calls += 1
