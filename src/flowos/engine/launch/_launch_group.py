"""Launches that end together: those that a thread starts on nodes which may be taken from it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flowos.engine.launch._prepared import of_thread

if TYPE_CHECKING:
    from flowos.engine.launch._running import RunningProcess


class LaunchGroup:
    """Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[RunningProcess] = []
        self._over = False

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Until the end of the `with` each launch that this thread starts is one of them."""
        before = getattr(of_thread, "group", None)
        of_thread.group = self
        try:
            yield
        finally:
            of_thread.group = before

    def add(self, running: "RunningProcess") -> None:
        """One that begins when the others were ended is ended, too."""
        with self._lock:
            self._running = [each for each in self._running if not each.done] + [running]
            over = self._over
        if over:
            running.stop()

    def end(self) -> None:
        """Ask them all for their end; whoever waits for them sees it."""
        with self._lock:
            self._over, left = True, self._running
        for running in left:
            running.stop()
