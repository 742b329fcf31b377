"""Tasks that fail, hang or print, in a file that a worker imports without pytest and NumPy."""

import contextlib
import ctypes
import itertools
import os
import signal
import time
from typing import Any

from .shared import write_pid


def die(how: object) -> object:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        os._exit(3)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "segfault in a child's parent":
        if os.fork() == 0:
            time.sleep(300)
        ctypes.string_at(0)
    return how


def raises(x: Any) -> Any:
    raise ValueError(x.shape)


def dies(_: Any) -> Any:
    os._exit(3)


LONG_SECONDS = 600.0


def work(how: object) -> object:
    if how == "sleeps":
        time.sleep(LONG_SECONDS)
    elif how == "ignores TERM":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(LONG_SECONDS)
    elif how == "holds the interpreter in C":
        signal.signal(signal.SIGTERM, lambda *_: None)
        ctypes.PyDLL(None).sleep(int(LONG_SECONDS))
    elif how == "computes":
        sum(itertools.count())
    elif how == "catches all":
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(LONG_SECONDS)
    elif how == "has a child":
        if os.fork() == 0:
            time.sleep(LONG_SECONDS)
        time.sleep(LONG_SECONDS)
    return how


def sleeps(path: Any) -> Any:
    """Long, but for a path of None; once it begins there is a file."""
    if path is not None:
        write_pid(path)
        time.sleep(300)
    return path
