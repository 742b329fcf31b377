"""What is to be ended with an object that nobody holds any more.

The collector runs in any thread, in the middle of anything, whatever locks that thread holds (those
of `ThreadPoolExecutor.submit`, of an import, of ours). What it calls there may take no lock and may
not wait. So it starts a thread and nothing else, by the one call that takes no lock of Python's.
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
    """Calls `call` in a thread of its own once the collector has taken `owner`, or at exit.

    Who ends the object by hand does so in turn, once: `if ending.detach(): call()`.
    """
    ending = weakref.finalize(owner, apart, call)
    _watch_exit()
    return ending


def apart(call: Callable[[], object]) -> None:
    """Calls it in a thread of its own, at exit in this one, which then holds nothing.

    For the `finally` of a generator too: the collector runs that of one that was left.
    """
    if _exiting.is_set():
        call()
    else:
        _thread.start_new_thread(_begin, (call,))


def _begin(call: Callable[[], object]) -> None:
    """A thread that `threading` knows: one that it does not would stay in its list for good.

    No daemon, so that Python ends after it: a thread that returns from C++ to an interpreter that
    is finalizing is unwound by force, and that aborts the process.
    """
    threading.Thread(target=call, name="flowos-collected", daemon=False).start()


@cache
def _watch_exit() -> None:
    """After the first `finalize`, so that this is called before the finalizers at exit are."""
    atexit.register(_exiting.set)
