"""Threads that call a person's function, of which a call may never return."""

import atexit
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

_GRACE_SECONDS, _PARTING_SECONDS = 1.0, 2.0

_Words = ParamSpec("_Words")
_Result = TypeVar("_Result")


class Interrupted(BaseException):
    """Raised within a call that has not returned when the program ends."""


class DecodeThreads:
    """As a ThreadPoolExecutor; but for its threads Python waits at its end until all calls have
    returned, for these a few seconds, so that a call that hangs does not hold it up."""

    def __init__(self, threads: int) -> None:
        self._max = threads
        self._calls: SimpleQueue[tuple[Future[object], Callable[[], object]] | None] = SimpleQueue()
        self._lock = threading.Lock()  # guards what follows
        self._closed = False
        self._begun = 0

    def submit(
        self, call: Callable[_Words, _Result], *given: _Words.args, **named: _Words.kwargs
    ) -> Future[_Result]:
        """Raises RuntimeError once it is closed."""
        future: Future[_Result] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads of a decode function are closed")
            self._calls.put((future, partial(call, *given, **named)))  # type: ignore[arg-type]
            if self._begun < self._max:
                self._begun += 1
                name = f"flowos-decode_{self._begun}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                _alive[thread] = self
                thread.start()
        return future

    def close(self) -> None:
        """Cancels what is not begun; waits for nothing."""
        with self._lock:
            self._closed = True
            try:
                while (got := self._calls.get_nowait()) is not None:
                    got[0].cancel()
            except Empty:
                pass
            self._calls.put(None)

    def _work(self) -> None:
        with suppress(Interrupted):
            while (got := self._calls.get()) is not None:
                _do(*got)
                del got  # else it would keep its batch until there is another
            self._calls.put(None)  # for the next thread
        del _alive[threading.current_thread()]


def _do(future: "Future[object]", call: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except Interrupted:
        raise
    except BaseException as why:
        future.set_exception(why)


_alive: dict[threading.Thread, DecodeThreads] = {}


def _at_exit() -> None:
    """Python ends a thread that returns from native code while it shuts down by an unwind, which
    not all native code survives (as that of PyTorch): so these are waited for, then interrupted."""
    for threads in list(_alive.values()):
        threads.close()
    with suppress(KeyboardInterrupt):  # another one ends the waiting
        _join(_GRACE_SECONDS)
        for thread in list(_alive):
            _interrupt(thread)
        _join(_PARTING_SECONDS)


def _join(seconds: float) -> None:
    until = time.monotonic() + seconds
    for thread in list(_alive):
        thread.join(max(0.0, until - time.monotonic()))


def _interrupt(thread: threading.Thread) -> None:
    """Once it is in Python; what a native call waits for goes on."""
    import ctypes

    known = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(known, ctypes.py_object(Interrupted))


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_alive.clear)
