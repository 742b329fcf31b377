"""SciPy's cg with the incomplete Cholesky factors of ilupp."""

from collections.abc import Sequence
from typing import Any

import ilupp
from python_contestant import Answer, Count, Solve, run
from scipy.sparse.linalg import cg


def prepare(matrix: Any, _options: Sequence[str]) -> Solve:
    factors = ilupp.IChol0Preconditioner(matrix)

    def solve(b: Any, rtol: float) -> Answer:
        count = Count()
        x, _ = cg(matrix, b, rtol=rtol, atol=0, M=factors, callback=count)
        return x, count.calls, {}

    return solve


if __name__ == "__main__":
    run(prepare)
