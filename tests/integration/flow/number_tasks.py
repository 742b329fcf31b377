"""Tasks of numbers, in a file that a worker imports without pytest."""

import time
from pathlib import Path
from typing import Any

import flowos as fo
from flowos.model import flow_input


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


@fo.task
def nap(seconds: fo.float64) -> fo.float64:
    time.sleep(seconds)
    return seconds


@fo.task
def begins(seconds: fo.float64, path: fo.str_) -> fo.float64:
    """The first of a flow: whoever waits for the file knows that it runs."""
    Path(path).touch()
    return seconds


def integer(name: str = "a") -> Any:
    return flow_input(name, fo.int64)


def tree(leaves: int = 64) -> fo.Flow:
    """Joins in pairs, so that most stages wait for two others."""
    a = integer()
    row = [add(a, i) for i in range(leaves)]
    while len(row) > 1:
        row = [add(x, y) for x, y in zip(row[::2], row[1::2], strict=True)]
    return fo.flow_output(row[0])


@fo.task
def invert(x: fo.int64) -> fo.int64:
    return 1000 // x


@fo.task
def divide(x: fo.int64, y: fo.int64) -> tuple[fo.int64, fo.int64]:
    return divmod(x, y)
