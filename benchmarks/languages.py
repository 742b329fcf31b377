"""What task bodies in R and Julia cost (`fo.r`, `fo.julia`): the first call of a process, each call
of a number, and 100 MB there and back, next to a copy by NumPy. The last two by turns."""

import argparse
import json
import shutil
import sys
import time
from typing import Any

import numpy as np
from _by_turns import Way, by_turns, repeated
from _numbers import whole_number

import flowos as fo

VECTOR = fo.array(fo.float64, ("n",))
NUMBER = fo.float64
NUMBERS: Any = {"inputs": {"x": NUMBER}, "outputs": {"y": NUMBER}}
VECTORS: Any = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
TASKS: dict[str, tuple[Any, Any]] = {
    "Rscript": (
        fo.r("f <- function(x) x + 1", "f", **NUMBERS),
        fo.r("g <- function(x) x", "g", **VECTORS),
    ),
    "julia": (
        fo.julia("f(x) = x + 1", "f", **NUMBERS),
        fo.julia("g(x) = x", "g", **VECTORS),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=whole_number(2, "for a median"), default=9)
    parser.add_argument("--calls", type=whole_number(), default=200)
    parser.add_argument("--floats", type=whole_number(), default=12_500_000)
    parser.add_argument("--json", action="store_true", help="the only form there is")
    given = parser.parse_args()
    found = {
        program: measured(*tasks, given)
        for program, tasks in TASKS.items()
        if shutil.which(program)
    }
    print(json.dumps(found, indent=1))
    return 0 if all(each["right"] for each in found.values()) else 1


def measured(plus_one: Any, same: Any, given: argparse.Namespace) -> dict[str, Any]:
    numbers = fo.flow_output(plus_one(fo.flow_input("x", NUMBER)))
    arrays = fo.flow_output(same(fo.flow_input("x", VECTOR)))
    x = np.arange(given.floats, dtype=np.float64)
    with fo.slice(numbers, workers="inline") as one, fo.slice(arrays, workers="inline") as many:
        began = time.perf_counter()
        right = one.run(1.0) == [2.0]
        first = time.perf_counter() - began
        right &= np.array_equal(many.run(x)[0], x)  # type: ignore[arg-type]

        calls = repeated(lambda: one.run(1.0), given.calls)
        ways: dict[str, Way] = {"there and back": lambda: many.run(x), "copy": lambda: x.copy()}
        return {
            "first_s": first,
            "call_us": by_turns({"number": calls}, given.rounds, 1e6 / given.calls),
            "array_s": by_turns(ways, given.rounds, 1.0),
            "right": bool(right),
        }


if __name__ == "__main__":
    sys.exit(main())
