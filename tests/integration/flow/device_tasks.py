"""Tasks of GPUs and of choices, in a file that a worker imports without pytest."""

import os
import time
from pathlib import Path

import flowos as fo

CUDA = "CUDA_VISIBLE_DEVICES"
ONE, TWO = fo.Needs(gpus=1), fo.Needs(gpus=2)
EITHER = (fo.Needs(gpus=1), fo.Needs(cores=2))


@fo.task(needs=EITHER)
def seen(_: fo.int64) -> fo.str_:
    time.sleep(0.01)
    return os.environ[CUDA]


@fo.task(needs=ONE)
def alone_on_it(folder: fo.str_) -> fo.str_:
    """Fails if another task has the same GPU meanwhile. Also which process it ran in."""
    at = Path(folder, os.environ[CUDA])
    at.touch(exist_ok=False)
    at.unlink()
    return f"{at.name} {os.getpid()}"


@fo.task(needs=TWO)
def on_both(_: fo.str_) -> fo.str_:
    return f"{os.environ[CUDA]} {os.getpid()}"


@fo.task
def without(_: fo.str_) -> fo.str_:
    return f"{os.environ.get(CUDA, 'none')} {os.getpid()}"
