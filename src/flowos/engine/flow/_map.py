"""A `map` at work: items in flight, results in their order, and what becomes of those that fail."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

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


class MapRun:
    """Items of one `map`.

    start: begins the runs of some items. finish: works until they are done. numbers: of the first
    item, and from one to the next. goes_on: a `RunResult` stands for each item, and one that fails
    does not end the map.
    """

    def __init__(
        self,
        items: Items,
        pace: BatchPace,
        start: Callable[[Sequence[Sequence[object]], bool], Flight],
        finish: Callable[[Executor, FlowRun | MapBatch], Finished],
        numbers: tuple[int, int],
        *,
        goes_on: bool,
    ) -> None:
        self._items, self._pace = items, pace
        self._start, self._finish = start, finish
        self._item, self._step = numbers
        self._goes_on = goes_on
        self._flight: deque[Flight] = deque()
        self.around: Callable[[Iterator[Any]], Iterator[Any]] | None = None
        """What the results go through, where one watches them."""

    def begin(self) -> None:
        """Start runs now, in other threads, not when the first result is asked for."""
        if self._fill():
            self._flight[-1][0].help()

    def results(self) -> Iterator[Any]:
        """One for each item, in order. Raises what ends the map."""
        return self.around(self._results()) if self.around else self._results()

    def _results(self) -> Iterator[list[object] | RunResult]:
        try:
            while True:
                while self._fill():
                    crew, run = self._flight.popleft()
                    outputs, error = self._finish(crew, run)
                    yield from self._good(run, outputs) if self._goes_on else outputs
                    self._item += self._step * len(outputs)
                    if error is not None:
                        one = isinstance(error, _OF_ONE_ITEM) and not crew.ended
                        yield self._bad(error, run.failure, one=one)
                    if isinstance(run, MapBatch):
                        self._go_on(crew, run)
                failed = self._items.error
                if failed is None:
                    return
                if not self._items.refused:
                    raise failed
                yield self._bad(failed, partial(RunResult, attempts=0), one=True)
                self._items.go_on()
        finally:
            if self._flight:
                apart(partial(_leave, self._flight))

    def _fill(self) -> bool:
        """Start runs once half of those in flight are done, so that helpers wake for several.

        Returns whether any are in flight.
        """
        flight, pace = self._flight, self._pace
        count = sum(run.count for _, run in flight)
        if count > pace.limit // 2:
            return True
        while count < pace.limit:
            taken = self._items.take(min(pace.size, pace.limit - count))
            if not taken:
                break
            flight.append(self._start(taken, self._goes_on))
            count += len(taken)
        if len(flight) > 1:
            flight[-1][0].help()
        return bool(flight)

    def _go_on(self, crew: Executor, batch: MapBatch) -> None:
        self._flight.extendleft((crew, rest) for rest in reversed(batch.rest))
        if batch.times is not None:
            self._pace.learn(len(batch.results), batch.times.all, batch.times.worked)

    def _good(self, run: FlowRun | MapBatch, outputs: list[list[object]]) -> Iterator[RunResult]:
        for i, each in enumerate(outputs):
            yield run.result(i, each)

    def _bad(self, error: Exception, result: Callable[..., RunResult], *, one: bool) -> RunResult:
        """Of the item after those that were good; raises the error if it ends the map."""
        if not (self._goes_on and one):
            raise of_item(error, self._item) from error.__cause__
        item, self._item = self._item, self._item + self._step
        return result(error=of_item(error, item))


def _leave(flight: Iterable[Flight]) -> None:
    for crew, run in flight:
        crew.cancel(run, Cancelled("the map was left before this run ended"))
