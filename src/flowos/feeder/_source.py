"""Samples that native code cannot read by itself: what such a source promises, and how it serves.

    source.catalog(found)            what there is, in byte order of the names
    source.listing(meanwhile)        the same, and what reads samples while it runs
    source.serve(tickets, catalog)   answers tickets until the feeder is closed; in a thread

The native feeder says which samples it wants (`pull`), the source gives their bytes (`push`) or
says in one line why it cannot (`fail`). How many are asked for at once is the feeder's decision.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from flowos.model import FeedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Catalog, Counter
    from flowos.feeder._early import Listing, Meanwhile

_PARTING_SECONDS = 1.0


class Tickets(Protocol):
    """The side of the native feeder that a source sees; safe from many threads."""

    def pull(self, most: int) -> list[tuple[int, int]]:
        """(id, sample) of one wanted sample at least, of `most` at most; waits. []: closed."""

    def push(self, id: int, data: "Buffer") -> None:
        """The whole sample. The buffer is free again afterwards."""

    def fail(self, id: int, why: str) -> None:
        """Why it cannot be had, without its name."""

    def closed(self) -> bool:
        """Nobody wants a sample any more: what is tried again need not be."""

    def offer(self, sample: int, data: "Buffer") -> bool:
        """Bytes that were at hand anyway, for the cache. False: there is none, or it is full."""


class Source(Protocol):
    """Where samples come from."""

    @property
    def name(self) -> str:
        """As a person wrote it, without secrets."""

    def identity(self) -> str:
        """Changes when what a kept catalog says is no longer so; costs a listing of shards.

        Empty: cannot be told more cheaply than by making the catalog anew. FeedError.
        """

    def catalog(self, found: "Counter | None" = None) -> "Catalog":
        """What there is; `found` counts while it runs. FeedError: nothing, or no way to it."""

    def listing(self, meanwhile: "Meanwhile") -> "Listing":
        """The catalog of single objects, which are read while they are listed."""

    def serve(self, tickets: Tickets, catalog: "Catalog") -> None:
        """Answers tickets until it is closed. What goes wrong with a sample fails its ticket."""


def serve_in_threads(tickets: Tickets, read: "Callable[[int], Buffer]", most: int) -> None:
    """Answers tickets until they are closed, in as many threads as the feeder keeps busy.

    read: of a sample, in any thread; FeedError with the reason. One that hangs when the feeder is
    closed is left to end by itself.
    """
    crew = _Crew(tickets, read, most)
    crew.start_another()
    crew.closed.wait()
    crew.leave(_PARTING_SECONDS)


class _Crew:
    """Threads that read one sample after the other; when all are at work there is another."""

    def __init__(self, tickets: Tickets, read: "Callable[[int], Buffer]", most: int) -> None:
        self.closed = threading.Event()
        self._tickets, self._read, self._most = tickets, read, most
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
                    if self._idle == 0 and len(self._threads) < self._most:
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


def one_line(why: BaseException) -> str:
    """Ours are one line already; of another's, its kind and its first line."""
    try:
        text = str(why)
    except Exception:  # who wrote its class was wrong in that, too
        text = ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if isinstance(why, FeedError):
        return first
    return f"{type(why).__name__}: {first}" if first else type(why).__name__


def digest(*words: str) -> str:
    """Of some words, in this order."""
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:32]
