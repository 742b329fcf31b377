"""Finalizers that run in a thread of their own.

The garbage collector runs in any thread, at any point, whatever locks that thread holds (those of
`ThreadPoolExecutor.submit`, of an import, of ours). A finalizer may take no lock there and may not
wait. So it only starts a thread, by the one call that takes none of Python's locks.
"""

import _thread
import atexit
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

_exiting = threading.Event()


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
    else:
        _thread.start_new_thread(_begin, (call,))


def _begin(call: Callable[[], object]) -> None:
    """Start a thread that `threading` registers: an unregistered one would stay in its list.

    Not a daemon, so that Python waits for it: a thread that returns from C++ to an interpreter that
    is finalizing is unwound by force, and that aborts the process.
    """
    threading.Thread(target=call, name="flowos-collected", daemon=False).start()


@cache
def _watch_exit() -> None:
    """Register after the first `finalize`, so that this runs before the finalizers at exit."""
    atexit.register(_exiting.set)
