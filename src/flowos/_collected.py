"""Finalizers that run in a thread of their own.

The garbage collector runs in any thread, at any point, whatever locks that thread holds (those of
`ThreadPoolExecutor.submit`, of an import, of ours). A finalizer may take no lock there and may not
wait. So it only starts a thread, by the one call that takes none of Python's locks.
"""

import _thread
import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

_exiting = threading.Event()
_waiting: "deque[Callable[[], object]]" = deque()
"""What no thread has begun yet: from Python 3.12 on, none starts once the interpreter ends."""


def when_collected(owner: object, call: Callable[[], object]) -> "weakref.finalize[Any, Any]":
    """Call `call` in a thread of its own once `owner` was garbage-collected, or at exit.

    To end the object explicitly, once: `if ending.detach(): call()`.
    """
    ending = weakref.finalize(owner, apart, call)
    _watch_exit()
    return ending


def apart(call: Callable[[], object]) -> None:
    """Call it in a thread of its own; at exit in this one, which then holds no lock.

    Also for the `finally` of a generator, which the collector runs if the generator is abandoned.
    """
    if _exiting.is_set():
        call()
        return
    _waiting.append(call)
    with suppress(RuntimeError):
        _thread.start_new_thread(_begin, ())


def _begin() -> None:
    """Start a thread that `threading` registers: an unregistered one would stay in its list.

    Not a daemon, so that Python waits for it: a thread that returns from C++ to an interpreter that
    is finalizing is unwound by force, and that aborts the process.
    """
    with suppress(IndexError):
        call = _waiting.popleft()
        try:
            threading.Thread(target=call, name="flowos-collected", daemon=False).start()
        except RuntimeError:
            _waiting.append(call)


def _at_exit() -> None:
    _exiting.set()
    with suppress(IndexError):
        while True:
            _waiting.popleft()()


@cache
def _watch_exit() -> None:
    """Register after the first `finalize`, so that this runs before the finalizers at exit."""
    atexit.register(_at_exit)


atexit.register(_at_exit)
