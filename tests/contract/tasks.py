"""Tasks of tests. A worker process loads this file by its name: one of tests would load pytest."""

import time
from pathlib import Path

import flowos as fo
from tests.waiting import comes


@fo.task
def double(x: fo.int64) -> fo.int64:
    return 2 * x


@fo.task
def nap(x: fo.float64) -> fo.float64:
    time.sleep(x)
    return x


@fo.task
def awaits(path: fo.str_) -> fo.str_:
    assert comes(Path(path).exists)
    return path


@fo.task(needs=fo.Needs(remaining_seconds=60))
def long(x: fo.int64) -> fo.int64:
    return x
