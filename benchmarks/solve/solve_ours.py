"""FlowOS. OPTIONS: settings of fo.Solver as NAME=VALUE; none: the default."""

from collections.abc import Sequence
from typing import Any

from python_contestant import Answer, Solve, run

import flowos._native  # noqa: F401 - loaded now, as lazy imports are not timed
from flowos import Solver


def _setting(option: str) -> tuple[str, Any]:
    name, value = option.split("=", 1)
    return name, int(value) if value.isdigit() else value


def prepare(matrix: Any, options: Sequence[str]) -> Solve:
    solver = Solver(matrix, **dict(map(_setting, options)))

    def solve(b: Any, rtol: float) -> Answer:
        x, info = solver.solve(b, rtol=rtol)
        details = {
            "precision": info.precision,
            "reason": info.reason,
            "bytes_per_iteration": solver.setup.bytes_per_iteration,
        }
        return x, info.iterations, details

    return solve


if __name__ == "__main__":
    run(prepare)
