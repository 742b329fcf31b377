"""One thread that watches all launches of this process: their output, ends and time limits."""

import collections
import itertools
import os
import selectors
import threading
import time
from collections.abc import Callable

Act = Callable[[], object]
_MAX_SLEEP_SECONDS = 86400.0
"""epoll refuses more than 24 days."""


class Watch:
    """A small event loop. `ask` may be called from any thread, all else only from its own.

    An act must not raise and not block for long: every launch of the process waits meanwhile.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._asked: collections.deque[Act] = collections.deque()
        self._alarms: dict[int, tuple[float, Act]] = {}
        self._numbers = itertools.count()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._bell, selectors.EVENT_READ, self._answer_bell)
        thread = threading.Thread(target=self._loop, name="flowos-launches", daemon=True)
        thread.start()

    def ask(self, act: Act) -> None:
        self._asked.append(act)
        os.eventfd_write(self._bell, 1)

    def on_readable(self, fd: int, act: Act) -> None:
        self._selector.register(fd, selectors.EVENT_READ, act)

    def forget(self, fd: int) -> None:
        self._selector.unregister(fd)

    def at(self, when: float, act: Act) -> int:
        """Do `act` once at monotonic time `when`; returns what `cancel` takes."""
        number = next(self._numbers)
        self._alarms[number] = (when, act)
        return number

    def cancel(self, alarm: int) -> None:
        self._alarms.pop(alarm, None)

    def _loop(self) -> None:
        while True:
            ready = self._selector.select(self._timeout())
            self._turn(ready)
            del ready  # what has ended is not held while we sleep

    def _turn(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, _ in ready:
            if key.fd in self._selector.get_map():  # not forgotten by one before it
                key.data()
        now = time.monotonic()
        for number, (when, act) in list(self._alarms.items()):
            if when <= now and number in self._alarms:  # not cancelled by one before it
                del self._alarms[number]
                act()

    def _timeout(self) -> float | None:
        if not self._alarms:
            return None
        left = min(when for when, _ in self._alarms.values()) - time.monotonic()
        return min(max(0.0, left), _MAX_SLEEP_SECONDS)

    def _answer_bell(self) -> None:
        os.eventfd_read(self._bell)
        while self._asked:
            self._asked.popleft()()


# One for all nodes of the process: a thread may wait for any number of launches.
_guard = threading.Lock()
_watch: Watch | None = None


def the_watch() -> Watch:
    """The one of this process, started when it is first needed."""
    global _watch
    with _guard:
        if _watch is None:
            _watch = Watch()
        return _watch


def _forget_in_child() -> None:
    """fork() copies no thread: the child starts its own when it needs one."""
    global _guard, _watch
    _guard = threading.Lock()
    _watch = None


os.register_at_fork(after_in_child=_forget_in_child)
