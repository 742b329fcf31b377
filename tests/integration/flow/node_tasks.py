"""Tasks of maps over nodes, in a file that a worker imports without pytest."""

import math
import os
from pathlib import Path

import flowos as fo
from tests.waiting import comes


@fo.task
def pid_once_there(path: fo.str_) -> fo.int64:
    assert comes(Path(path).exists)
    return os.getpid()


@fo.task
def meets(name: fo.str_) -> fo.int64:
    """Until two others are there."""
    Path(name).touch()
    assert comes(lambda: len(list(Path(name).parent.iterdir())) == 3)
    return os.getpid()


@fo.task
def root(x: fo.float64) -> fo.float64:
    return math.sqrt(x)
