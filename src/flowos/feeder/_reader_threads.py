"""Threads of Python that read samples for the native feeder."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from flowos.feeder._interfaces import Tickets
from flowos.feeder._one_line import one_line

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PARTING_SECONDS = 1.0


def serve_in_threads(tickets: Tickets, read: "Callable[[int], Buffer]", max_threads: int) -> None:
    """Answers tickets until they are closed, in as many threads as the feeder keeps busy.

    read: of a sample, in any thread; FeedError with the reason. One that hangs when the feeder is
    closed is left to end by itself.
    """
    pool = _ReaderPool(tickets, read, max_threads)
    pool.start_another()
    pool.closed.wait()
    pool.leave(_PARTING_SECONDS)


class _ReaderPool:
    """Threads that read one sample after the other; when all are at work there is another."""

    def __init__(self, tickets: Tickets, read: "Callable[[int], Buffer]", max_threads: int) -> None:
        self.closed = threading.Event()
        self._tickets, self._read, self._max_threads = tickets, read, max_threads
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()

    def start_another(self) -> None:
        thread = threading.Thread(target=self._work, name="flowos-read", daemon=True)
        self._idle += 1
        self._threads.append(thread)
        thread.start()

    def leave(self, seconds: float) -> None:
        """Waits for those that are not held up."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        try:
            while got := self._tickets.pull(1):
                with self._lock:
                    self._idle -= 1
                    if self._idle == 0 and len(self._threads) < self._max_threads:
                        self.start_another()
                for ticket, sample in got:
                    answer(self._tickets, ticket, partial(self._read, sample))
                with self._lock:
                    self._idle += 1
        finally:
            self.closed.set()


def answer(tickets: Tickets, ticket: int, read: "Callable[[], Buffer]") -> None:
    """Pushes what `read` gives, or the reason why it does not."""
    try:
        data = read()
    except Exception as why:
        tickets.fail(ticket, one_line(why))
    else:
        tickets.push(ticket, data)


def run_threads(work: Callable[[], None], threads: int) -> None:
    """`work` in so many threads, this one among them, until all have ended."""
    others = [
        threading.Thread(target=work, name=f"flowos-source-{number}", daemon=True)
        for number in range(1, threads)
    ]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
