"""What a task body in R costs (`fo.r`): the first call of a process, each call of a number, and
100 MB there and back, next to a copy of them by NumPy. The last two by turns."""

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from _by_turns import Way, by_turns, repeated

import flowos as fo

VECTOR = fo.array(fo.float64, ("n",))
NUMBER = fo.float64
PLUS_ONE: Any = fo.r("f <- function(x) x + 1", "f", inputs={"x": NUMBER}, outputs={"y": NUMBER})
SAME: Any = fo.r("g <- function(x) x", "g", inputs={"x": VECTOR}, outputs={"y": VECTOR})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--floats", type=int, default=12_500_000)
    given = parser.parse_args()
    numbers = fo.flow_output(PLUS_ONE(fo.flow_input("x", NUMBER)))
    arrays = fo.flow_output(SAME(fo.flow_input("x", VECTOR)))
    x = np.arange(given.floats, dtype=np.float64)
    with fo.slice(numbers, workers="inline") as one, fo.slice(arrays, workers="inline") as many:
        began = time.perf_counter()
        right = one.run(1.0) == [2.0]
        first = time.perf_counter() - began
        right &= np.array_equal(many.run(x)[0], x)  # type: ignore[arg-type]

        calls = repeated(lambda: one.run(1.0), given.calls)
        ways: dict[str, Way] = {"there and back": lambda: many.run(x), "copy": lambda: x.copy()}
        found = {
            "first_s": first,
            "call_us": by_turns({"number": calls}, given.rounds, 1e6 / given.calls),
            "array_s": by_turns(ways, given.rounds, 1.0),
            "right": right,
        }
    print(json.dumps(found, indent=1))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
