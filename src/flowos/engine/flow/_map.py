"""A `map` at work: items in flight, results in their order, and what becomes of those that fail."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from flowos._collected import apart
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._failures import of_item
from flowos.engine.flow._pace import BatchPace, Items
from flowos.engine.flow._runs import FlowRun, MapBatch
from flowos.model import Cancelled, FlowosError, RunResult, TaskFailed, ValueRefused

Flight = tuple[Executor, FlowRun | MapBatch]
Finished = tuple[list[list[object]], FlowosError | None]
"""The outputs of the items that came to an end, and the error of the next one."""

_OF_ONE_ITEM = (TaskFailed, ValueRefused)
"""Other errors, and those of an executor that has ended, are of all items."""


class MapPart(Protocol):
    """A part of a `map`, whose items come in blocks.

    attempt: at the items that were taken last.
    """

    @property
    def attempt(self) -> int: ...
    def take(self, max_items: int) -> Sequence[object]:
        """The next ones, all of one attempt; none where there are none now."""

    def number(self, _: int) -> int:
        """Of the item that is the nth of its run."""


class MapRun:
    """Items of one `map`.

    start: begins the runs of some items. finish: works until they are done. goes_on: a `RunResult`
    stands for each item, and one that fails does not end the map. part: where it is one; what ends
    it then names no item, as it may be put in the place of others.
    """

    def __init__(
        self,
        items: Items,
        pace: BatchPace,
        start: Callable[[Sequence[Sequence[object]], bool, int], Flight],
        finish: Callable[[Executor, FlowRun | MapBatch], Finished],
        part: MapPart | None,
        *,
        goes_on: bool,
    ) -> None:
        self._items, self._pace = items, pace
        self._start, self._finish = start, finish
        self._part = part
        self._item = 0
        self.goes_on = goes_on
        self._flight: deque[Flight] = deque()
        self._left = False

    @property
    def limit(self) -> int:
        """How many items may be in flight."""
        return self._pace.limit

    @property
    def in_batches(self) -> bool:
        """Whether items are so quick that several run as one."""
        return self._pace.size > 1

    @property
    def in_flight(self) -> list[tuple[bool, int]]:
        """In order: whether each may begin anew elsewhere, and how often it was repeated."""
        return [(run.requeue, run.repeats) for _, run in self._flight]

    def leave(self) -> None:
        """Cancel what is in flight, from any thread; `results` then raises Cancelled."""
        self._left = True
        _leave(tuple(self._flight))

    def results(self) -> Iterator[Any]:
        """One for each item, in order. Raises as `batches` does."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[Sequence[Any]]:
        """The results in order, as they come. Raises the error of an item, if one ends the map.

        Called again after its end, it gives those of items that have come since.
        """
        try:
            while True:
                while self._fill():
                    executor, run = self._flight[0]
                    outputs, error = self._finish(executor, run)
                    if outputs:
                        yield self._good(run, outputs) if self.goes_on else outputs
                        self._item += len(outputs)
                    if error is not None:
                        one = isinstance(error, _OF_ONE_ITEM) and not executor.ended
                        yield [self._bad(error, run.failure, one=one)]
                    self._flight.popleft()
                    if isinstance(run, MapBatch):
                        self._go_on(executor, run)
                failed = self._items.error
                if failed is None:
                    return
                if not self._items.refused:
                    raise failed
                yield [self._bad(failed, partial(RunResult, attempts=0), one=True)]
                self._items.go_on()
        finally:
            if self._flight:
                apart(partial(_leave, self._flight))

    def _fill(self) -> bool:
        """Start runs once half of those in flight are done, so that helpers wake for several.

        Returns whether any are in flight.
        """
        flight, pace, part = self._flight, self._pace, self._part
        count = sum(run.count for _, run in flight)
        if count > pace.limit // 2:
            return True
        while count < pace.limit:
            taken = self._items.take(min(pace.size, pace.limit - count))
            if not taken:
                break
            flight.append(self._start(taken, self.goes_on, part.attempt if part else 1))
            count += len(taken)
            if self._left:
                _leave(tuple(flight))
        if len(flight) > 1:
            flight[-1][0].help()
        return bool(flight)

    def _go_on(self, executor: Executor, batch: MapBatch) -> None:
        self._flight.extendleft((executor, rest) for rest in reversed(batch.rest))
        if batch.times is not None:
            self._pace.learn(len(batch.results), batch.times.all, batch.times.worked)

    def _good(self, run: FlowRun | MapBatch, outputs: list[list[object]]) -> list[RunResult]:
        return [run.result(i, each) for i, each in enumerate(outputs)]

    def _bad(self, error: Exception, result: Callable[..., RunResult], *, one: bool) -> RunResult:
        """Of the item after those that were good; raises the error if it ends the map."""
        ends = not (self.goes_on and one)
        if ends and self._part:
            raise error
        number = self._part.number(self._item) if self._part else self._item
        named = of_item(error, number)
        if ends:
            raise named from error.__cause__
        self._item += 1
        return result(error=named)


def _leave(flight: Iterable[Flight]) -> None:
    for executor, run in flight:
        executor.cancel(run, Cancelled("the map was left before this run ended"))
