"""How the items of a `map` come into batches: how many a batch, and how many in flight."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import length_hint
from time import perf_counter

from flowos._dataclasses import dataclass
from flowos.engine.flow._lanes import BATCH_SECONDS

_MAX_ITEMS = 1024
_GROWTH = 4
_QUICK_SECONDS = BATCH_SECONDS / 64
_WAITING_SHARE = 0.5
_WAITING_SHARE_OF_BATCHES = 0.1
"""Less, as a batch is more often interrupted by other work of the machine than a quick item is."""
_ITEMS_AFTER_WAITING = 64


@dataclass(slots=True, kw_only=True)
class BatchPace:
    """Batches of about BATCH_SECONDS: one item at first, then by how long the last ones took.

    Items that wait for something, perhaps for each other, are not put into one batch: batches begin
    once two items per place did not wait, and again after _ITEMS_AFTER_WAITING that did not.

    places: where batches run side by side. ahead: how many items may be in flight beyond the one
    asked for; two batches per place unless given. threads: Python tasks run in this process: items
    that take less than _QUICK_SECONDS gain nothing by another thread, which waits for the
    interpreter lock; a single batch in flight is run by the caller itself.
    """

    places: int
    ahead: int | None = None
    threads: bool = False
    size: int = 1
    _item_seconds: float = math.inf
    _worked: int = 0
    _needed: int = 0

    def __post_init__(self) -> None:
        self._needed = 2 * self.places

    @property
    def limit(self) -> int:
        """Items in flight."""
        if self.ahead is not None:
            return self.ahead + 1
        alone = self.threads and self._item_seconds < _QUICK_SECONDS
        return self.size if alone else (2 * self.places + 1) * self.size

    def learn(self, items: int, seconds: float, worked: float) -> None:
        """Take in how long so many items took, and how long the processor worked of it."""
        share = _WAITING_SHARE if items == 1 else _WAITING_SHARE_OF_BATCHES
        if worked < share * seconds:
            self.size, self._worked, self._item_seconds = 1, 0, math.inf
            self._needed = max(_ITEMS_AFTER_WAITING, 2 * self.places)
            return
        self._worked += items
        if items and self._worked >= self._needed:
            self._item_seconds = max(seconds, 1e-9) / items
            in_time = int(BATCH_SECONDS / self._item_seconds)
            self.size = max(1, min(self._max_size(), in_time, _GROWTH * items))

    def _max_size(self) -> int:
        return _MAX_ITEMS if self.ahead is None else (self.ahead + 1) // (2 * self.places + 1)


class Items:
    """What is mapped over, item by item. An error on the way ends it; what came before runs.

    more: gives the next ones, up to so many, once `values` are over. refused: the error is of an
    item, and not of what gives them: then `go_on` takes the next ones.
    """

    def __init__(
        self,
        values: Iterator[object],
        checked: Callable[[object], Sequence[object]],
        more: Callable[[int], Sequence[object]] | None = None,
    ) -> None:
        self._items, self._checked, self._more = values, checked, more
        self._over = False
        self.error: Exception | None = None
        self.refused = False

    def take(self, max_items: int) -> list[Sequence[object]]:
        """Up to so many, fewer where it takes long to come by them; none at the end."""
        taken: list[Sequence[object]] = []
        if self._over:
            return taken
        until, checked, refused = perf_counter() + BATCH_SECONDS, self._checked, False
        try:
            if self._more is not None and not length_hint(self._items):
                self._items = iter(self._more(max_items))
            for item in islice(self._items, max_items):
                refused = True
                taken.append(checked(item))
                refused = False
                if perf_counter() > until:
                    break
        except Exception as error:
            self.error, self._over, self.refused = error, True, refused
        return taken

    def go_on(self) -> None:
        """After an item that was refused."""
        self.error, self._over, self.refused = None, False, False


def known_length(values: object) -> int | None:
    """How many items these are; None if that is not known before they are all taken."""
    try:
        length = length_hint(values, -1)
    except Exception:  # of a class of the caller's
        return None
    return None if length < 0 else length
