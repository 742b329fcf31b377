"""Tasks of conds and loops, in a file that a worker imports without pytest and NumPy."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import flowos as fo

VECTOR = fo.array(fo.float64, (None,))


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


@fo.task
def half(x: fo.int64) -> fo.int64:
    return x // 2


@fo.task(retries=1)
def minus_one(x: fo.int64) -> fo.int64:
    return x - 1


@fo.task
def divide(x: fo.int64, y: fo.int64) -> tuple[fo.int64, fo.int64]:
    return divmod(x, y)


@fo.task
def even(x: fo.int64) -> bool:
    return x % 2 == 0


@fo.task
def tiny(x: fo.int64) -> bool:
    return x <= 1


@fo.task
def thrice_plus_one(x: fo.int64) -> fo.int64:
    return 3 * x + 1


@fo.task(retries=2)
def ends_at_one(x: fo.int64) -> bool:
    return x == 1


def integer(name: str = "x") -> Any:
    return fo.flow_input(name, fo.int64)


@fo.task
def count_lines(path: fo.File) -> fo.int64:
    return len(Path(path).read_text().splitlines())


@fo.task
def at_least(count: fo.int64, most: fo.int64) -> bool:
    return count >= most


def smoothed(values: Any) -> VECTOR:  # type: ignore[valid-type]
    found = values.copy()
    found[1:-1] = (found[:-2] + found[2:]) / 2
    return found  # type: ignore[no-any-return]


@fo.task
def mean_of_neighbours(values: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return smoothed(values)


@fo.task(retries=1)
def mean_again(values: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return smoothed(values)


@fo.task
def fails_at(x: fo.int64, where: fo.int64) -> fo.int64:
    if x == where:
        raise ValueError(f"not {where}")
    return x + 1


@fo.task(retries=1)
def fails_twice_at(x: fo.int64, where: fo.int64) -> fo.int64:
    if x == where:
        raise ValueError(f"not {where}")
    return x + 1


@fo.task
def wrong_at_two(x: fo.int64) -> fo.int64:
    return "two" if x == 2 else x + 1  # type: ignore[return-value]


@fo.task
def dies_at(x: fo.int64, where: fo.int64) -> fo.int64:
    if x == where:
        os.kill(os.getpid(), signal.SIGKILL)
    return x + 1


@fo.task(limit_seconds=2)
def sleeps_at(x: fo.int64, where: fo.int64) -> fo.int64:
    if x == where:
        time.sleep(600)
    return x + 1
