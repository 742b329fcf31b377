"""Tasks of cached results and journals, in a file that a worker imports without pytest."""

from pathlib import Path

import flowos as fo


@fo.task
def plain(x: fo.int64, log: fo.str_) -> fo.int64:
    with Path(log).open("a") as file:
        file.write(f"{x}\n")
    return x * 10


@fo.task(cache=True)
def cached(x: fo.int64, log: fo.str_) -> fo.int64:
    with Path(log).open("a") as file:
        file.write(f"{x}\n")
    return x + 1


@fo.task
def logged(x: fo.int64, log: fo.str_) -> fo.int64:
    with Path(log).open("a") as file:
        file.write(f"{x}\n")
    return x * 10


@fo.task
def identity(x: fo.any_) -> fo.any_:
    return x
