"""Reads samples of a storage while it is still being listed.

Which sample is needed when is known only at the end of the listing; that a cache takes them all is
known at once, so the link need not idle until then. Folders are read by native code, objects by
`ListingPrefetcher`.
"""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from flowos.feeder._entries import number_of
from flowos.feeder._interfaces import Entry, Piece, PrefetchBudget, Storage

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Cache, Catalog

_LARGE_BYTES = 4 << 20
"""Beyond it the time that an object takes is that of its bytes: an early start gains nothing."""


class ListingPrefetcher:
    """The feeder's side of a storage, before there is a feeder: asks for what a listing has found.

    What cannot be read, or is large, is left to the feeder, which says what is wrong with it.
    """

    def __init__(self, storage: Storage, budget: PrefetchBudget) -> None:
        self.samples = self.bytes = 0
        self._changed = threading.Condition()  # guards all that follows, and what is above
        self._room = budget.max_bytes
        self._max_in_flight = self._free = budget.in_flight
        self._pieces: list[Piece] = []
        self._known: set[str] = set()  # a listing that fails in passing finds them again
        self._asked = 0
        self._held: dict[str, Buffer] = {}
        self._ended = self._leaving = False
        self._thread = threading.Thread(
            target=storage.serve, args=(self, self._piece_of), name="flowos-early", daemon=True
        )
        self._thread.start()

    def found(self, entries: Iterable[Entry]) -> None:
        """From any thread. Once one finds no room, nothing more is asked for."""
        with self._changed:
            for entry in entries:
                if entry.key in self._known or not 0 < entry.size_bytes <= _LARGE_BYTES:
                    continue
                if entry.size_bytes > self._room:
                    self._room = 0
                    break
                self._room -= entry.size_bytes
                self._known.add(entry.key)
                self._pieces.append(Piece(entry.key, listed_bytes=entry.size_bytes))
            self._changed.notify_all()

    def keep(self, catalog: "Catalog", cache: "Cache") -> None:
        self._offer(catalog, cache)  # the link is not idle budget
        with self._changed:
            del self._pieces[self._asked :]
            self._leaving = True
            self._changed.wait_for(lambda: self._free == self._max_in_flight)
        self._stop()
        self._offer(catalog, cache)

    def end(self) -> None:
        self._stop()
        self._held.clear()

    def _offer(self, catalog: "Catalog", cache: "Cache") -> None:
        with self._changed:
            held, self._held = self._held, {}
        for key, data in held.items():
            sample = number_of(catalog, key)
            if sample is not None and not cache.offer(sample, data):
                break

    def _stop(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def _piece_of(self, number: int) -> Piece:
        return self._pieces[number]

    # -- as flowos.feeder._interfaces.Tickets: a sample is the number of a piece

    def pull(self, max_tickets: int) -> list[tuple[int, int]]:
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or (self._free and self._asked < len(self._pieces))
            )
            first = self._asked
            count = 0 if self._ended else min(max_tickets, self._free, len(self._pieces) - first)
            self._asked += count
            self._free -= count
        return [(number, number) for number in range(first, first + count)]

    def push(self, id: int, data: "Buffer") -> None:
        with self._changed:
            self._held[self._pieces[id].key] = data  # places give new bytes for every read
            self.samples += 1
            self.bytes += memoryview(data).nbytes
            self._free += 1
            self._changed.notify_all()

    def fail(self, id: int, why: str) -> None:
        del id, why
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def closed(self) -> bool:
        return self._ended or self._leaving

    def offer(self, sample: int, data: "Buffer") -> bool:
        del sample, data
        return False
