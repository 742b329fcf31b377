"""Transient failures are retried for minutes, not before the server asks for it; a warning is
logged after seconds."""

import logging
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar, cast

from flowos.feeder._one_line import one_line
from flowos.feeder._retry_after import asked_pause
from flowos.feeder._url import line_without_secrets

A = TypeVar("A")
T = TypeVar("T")

SECONDS_VARIABLE = "FLOWOS_FEED_RETRY_SECONDS"
"""The variable that says for how many seconds."""

_FOR_SECONDS = 300.0
_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 15.0
_MAX_DOUBLINGS = 32
_WARN_AFTER_SECONDS, _WARN_EVERY_SECONDS = 3.0, 60.0
_LOOK_SECONDS = 0.2


class Retry:
    """Retries of one storage, shared by its threads: one outage is logged once.

    for_seconds: from the beginning of a call to its last failure. Of the first try, which may have
    gone well for long, at most the half counts.
    """

    def __init__(self, name: str) -> None:
        self.for_seconds = _seconds()
        self._name = name
        self._given_up = threading.Event()
        self._lock = threading.Lock()
        self._warned_at: float | None = None

    def again(
        self,
        call: Callable[[], T],
        passes: Callable[[Exception], float],
        is_over: Callable[[], bool] = lambda: False,
    ) -> T:
        """What `call` gives, or its error once that is no more to be waited for.

        passes: for how many seconds at most this error may pass; 0: it will not. is_over: the
        result is no longer needed. A Ctrl-C ends it at once, whatever `call` waits for.
        """
        if threading.current_thread() is threading.main_thread():
            return self.map(lambda _: self._again(call, passes, is_over), [None], 1)[0]
        return self._again(call, passes, is_over)

    def _again(
        self,
        call: Callable[[], T],
        passes: Callable[[Exception], float],
        is_over: Callable[[], bool],
    ) -> T:
        began = time.monotonic()
        failed: float | None = None
        tries = 0
        while True:
            try:
                return call()
            except Exception as why:
                now = time.monotonic()
                failed = now if failed is None else failed
                patience = min(passes(why), self.for_seconds)
                left = max(began, failed - patience / 2) + patience - now
                asked = asked_pause(why)
                if left <= 0 or asked > left:
                    raise
                if now - began >= _WARN_AFTER_SECONDS:
                    self._warn(why, now, began)
                pause = asked + _pause_after(tries)
                if not self._pause(min(pause, left), is_over):
                    raise
            tries += 1

    def give_up(self) -> None:
        """Nothing is tried again from here on."""
        self._given_up.set()

    def map(self, call: Callable[[A], T], items: Iterable[A], threads: int) -> list[T]:
        """As of a pool; an interrupt or an error ends it at once: no thread is waited for."""
        left = deque(enumerate(items))
        ended: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()
        made: dict[int, T] = {}
        count = len(left)

        def work() -> None:
            with suppress(IndexError):
                while not self._given_up.is_set():
                    at, item = left.popleft()
                    try:
                        ended.put((at, call(item), None))
                    except BaseException as why:
                        ended.put((at, None, why))

        try:
            for _ in range(min(threads, count)):
                threading.Thread(target=work, name="flowos-source", daemon=True).start()
            for _ in range(count):
                at, value, error = ended.get()
                if error is not None:
                    raise error
                made[at] = cast(T, value)
        except BaseException:
            self.give_up()
            raise
        return [made[at] for at in range(count)]

    def _pause(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """False: give up."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._given_up.wait(min(left, _LOOK_SECONDS)) or is_over():
                return False
        return True

    def _warn(self, why: Exception, now: float, began: float) -> None:
        with self._lock:
            due = self._warned_at is None or now - self._warned_at >= _WARN_EVERY_SECONDS
            if due:
                self._warned_at = now
        if due:
            logging.getLogger("flowos.feed").warning(
                "%s: tried without success for %.0f seconds (%s); "
                "trying again for up to %.0f seconds (%s)",
                self._name,
                now - began,
                line_without_secrets(one_line(why)),
                self.for_seconds,
                SECONDS_VARIABLE,
            )


def _pause_after(tries: int) -> float:
    """Longer each time, and spread, so that what failed together does not come back together."""
    doubled = _FIRST_SECONDS * 2.0 ** min(tries, _MAX_DOUBLINGS)
    return min(doubled, _LONGEST_SECONDS) * random.uniform(0.5, 1.5)


def _seconds() -> float:
    try:
        return max(0.0, float(os.environ.get(SECONDS_VARIABLE, _FOR_SECONDS)))
    except ValueError:
        return _FOR_SECONDS
