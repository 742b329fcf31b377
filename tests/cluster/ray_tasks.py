"""Tasks of the tests of Ray, whose workers load this file: one of tests would load pytest."""

import os
import signal
import sys
import time
from threading import Lock

import numpy as np

import flowos as fo

VECTOR = fo.array(fo.float64, (None,))


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


@fo.task
def subtract(x: fo.int64, y: fo.int64) -> fo.int64:
    return x - y


@fo.task
def drawn(seed: fo.int64) -> VECTOR:  # type: ignore[valid-type]
    return np.random.default_rng(seed).normal(size=1000)


@fo.task
def mixed(
    x: VECTOR,  # type: ignore[valid-type]
    y: VECTOR,  # type: ignore[valid-type]
) -> VECTOR:  # type: ignore[valid-type]
    return np.add(np.sin(x), np.roll(y, 1))  # type: ignore[no-any-return]


class Stays:
    """A value that may not come to the program that holds the slice."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return stays, (self.name,)


def stays(name: str) -> Stays:
    assert "SLURMD_NODENAME" in os.environ
    return Stays(name)


@fo.task
def made(name: fo.str_) -> fo.any_:
    return Stays(f"{name} of {os.environ['SLURMD_NODENAME']}")


@fo.task
def read(value: fo.any_, _: fo.int64) -> fo.str_:
    time.sleep(1)  # so that the other one does not come here
    return f"{value.name} at {os.environ['SLURMD_NODENAME']}"


@fo.task
def root(x: fo.float64) -> fo.float64:
    if x < 0:
        raise ArithmeticError(f"no root of {x}")
    return x**0.5 if x < 1e6 else "much"  # type: ignore[return-value]


@fo.task(limit_seconds=0.5)
def naps(x: fo.float64) -> fo.float64:
    time.sleep(60)
    return x


@fo.task
def locked(_: fo.any_) -> fo.any_:
    return Lock()


def ended_once(flag: str) -> int:
    """The worker's end where the flag was not there yet."""
    if not os.path.exists(flag):  # noqa: PTH110 - by value
        open(flag, "w").close()  # noqa: PTH123
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


@fo.task
def dies_once(flag: fo.str_) -> fo.int64:
    return ended_once(flag)


@fo.task(retries=1)
def dies_and_runs_again(flag: fo.str_) -> fo.int64:
    return ended_once(flag)


@fo.task(needs=fo.Needs(cores=2))
def threads(_: fo.int64) -> fo.str_:
    return os.environ["OMP_NUM_THREADS"]


@fo.task(needs=fo.Needs(cores=3))
def three(x: fo.int64) -> fo.int64:
    return x


@fo.task
def says(x: fo.int64) -> fo.str_:
    sys.stdout.write(f"at {x}\n")
    time.sleep(0.02)  # else one node may have run all before the other begins
    return os.environ["SLURMD_NODENAME"]


@fo.task
def waits(seconds: fo.float64) -> fo.str_:
    time.sleep(seconds)
    return os.environ["SLURMD_NODENAME"]


@fo.task
def begins(flag: fo.str_) -> fo.int64:
    open(flag, "w").close()  # noqa: PTH123
    time.sleep(600)
    return 1
