"""A sweep of 500 points that goes on where it was killed: a journal keeps the results.

python examples/sweep.py FOLDER; end it at any time, with kill -9 too, and start it again. What was
computed is in FOLDER/computed.txt, a line for each point.
"""

import math
import sys

import numpy as np

import flowos as fo

POINTS = 500


@fo.task
def lyapunov(r: fo.float64, computed: fo.str_) -> fo.float64:
    """How fast neighbours part under x -> r x (1 - x); above 0 is chaos."""
    x, total, steps = 0.5, 0.0, 20_000
    for _ in range(steps):
        x = r * x * (1 - x)
        total += math.log(max(abs(r * (1 - 2 * x)), 1e-12))
    with open(computed, "a") as file:  # noqa: PTH123
        file.write(f"{r}\n")
    return total / steps


if __name__ == "__main__":
    folder = sys.argv[1]
    r = fo.flow_input("r", fo.float64)
    flow = fo.flow_output(lyapunov(r, f"{folder}/computed.txt"))
    values = [3 + i / POINTS for i in range(POINTS)]
    with fo.slice(flow, journal=f"{folder}/journal") as s:
        exponents = np.array(list(s.map(values)))
        print(*s.notes, sep="\n")
    print(f"{(exponents > 0).sum()} of {POINTS} are chaotic")
