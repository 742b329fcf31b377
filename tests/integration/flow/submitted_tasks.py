"""Tasks of runs in the background, in a file that a worker imports without pytest."""

import os
import time
from pathlib import Path

import flowos as fo
from tests.waiting import PATIENCE_SECONDS


@fo.task
def invert(x: fo.int64) -> fo.int64:
    return 100 // x


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


@fo.task
def wait_for(path: fo.str_) -> fo.str_:
    Path(f"{path}.begun").touch()
    until = time.monotonic() + PATIENCE_SECONDS
    while not Path(path).exists():
        assert time.monotonic() < until
        time.sleep(0.005)
    return path


@fo.task
def sleep(seconds: fo.float64, path: fo.str_) -> fo.float64:
    Path(path).write_text(str(os.getpid()))
    time.sleep(seconds)
    return seconds
