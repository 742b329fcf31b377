"""SciPy's cg with PyAMG's smoothed aggregation."""

from collections.abc import Sequence
from typing import Any

import pyamg
from python_contestant import Answer, Count, Solve, run
from scipy.sparse.linalg import cg


def prepare(matrix: Any, _options: Sequence[str]) -> Solve:
    levels = pyamg.smoothed_aggregation_solver(matrix)

    def solve(b: Any, rtol: float) -> Answer:
        count = Count()
        x, _ = cg(matrix, b, rtol=rtol, atol=0, M=levels.aspreconditioner(), callback=count)
        return x, count.calls, {}

    return solve


if __name__ == "__main__":
    run(prepare)
