"""A `map` over several nodes: its items are dealt out, and its results come in their order."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import TypeVar

from flowos.engine.flow._pace import known_length
from flowos.model import RunResult, WorkerLost

T = TypeVar("T")


class MapPart:
    """The items of one node of a `map`. Iterated again, it gives those without a result first.

    length: how many, as far as that is known.
    """

    def __init__(self, items: Iterator[object], length: int | None) -> None:
        self._items, self._length = items, length
        self._pending: deque[object] = deque()

    def __iter__(self) -> Iterator[object]:
        yield from tuple(self._pending)
        for item in self._items:
            self._pending.append(item)
            yield item

    def __length_hint__(self) -> int:
        return NotImplemented if self._length is None else self._length

    def answered(self) -> None:
        """The first item without a result has one."""
        self._pending.popleft()


def dealt(values: Iterable[object], count: int) -> list[MapPart]:
    """The items dealt to so many in turn; an error on the way ends each of them, once its items
    before it are out."""
    whole = known_length(values)
    items = iter(values)
    hands: list[deque[object]] = [deque() for _ in range(count)]
    turns = cycle(hands)
    failed: list[Exception] = []

    def hand(mine: deque[object]) -> Iterator[object]:
        while True:
            while not mine:
                if failed:
                    raise failed[0]
                try:
                    item = next(items)
                except StopIteration:
                    return
                except Exception as error:
                    failed.append(error)
                    raise
                next(turns).append(item)
            yield mine.popleft()

    lengths = (None if whole is None else len(range(i, whole, count)) for i in range(count))
    return [MapPart(hand(each), length) for each, length in zip(hands, lengths, strict=True)]


def is_lost(result: object) -> bool:
    return isinstance(result, RunResult) and isinstance(result.error, WorkerLost)


def in_turns(maps: Sequence[Iterator[T]]) -> Iterator[T]:
    """One of each in turn, up to the first that has no more: it is the next in order.

    What each of them gives first is left out: all have begun before one is waited for.
    """
    for each in maps:
        next(each)
    for each in cycle(maps):
        try:
            result = next(each)
        except StopIteration:
            return
        yield result
