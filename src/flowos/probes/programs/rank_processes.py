"""The ranks of a program on this node, forked once what all need is imported.

Imported by torch_collectives.py, torch_training.py and torch_remote_copy.py. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable

PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.02


def forked(variables: dict[str, str], work: Callable[[], int]) -> int:
    """Its process number. It has these variables too, and ends with this program."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.environ |= variables
        code = work()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def first_failure(ranks: Iterable[int]) -> int:
    """The exit code of the first rank that fails, whose others are ended then; else 0."""
    left, code = set(ranks), 0
    while left:
        ended = {pid: status for pid in left for got, status in [_look(pid)] if got}
        left -= set(ended)
        code = code or next((c for c in map(os.waitstatus_to_exitcode, ended.values()) if c), 0)
        for pid in left if code else ():
            os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)
    return code


def _look(pid: int) -> tuple[int, int]:
    return os.waitpid(pid, os.WNOHANG)
