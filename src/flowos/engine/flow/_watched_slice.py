"""A slice that says how far its runs are."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from flowos._collected import apart
from flowos.engine.flow._map import MapRun
from flowos.engine.flow._pace import known_length
from flowos.engine.flow._progress import ProgressWatch
from flowos.engine.flow._slice import OnError, Slice

if TYPE_CHECKING:
    from concurrent.futures import Future


class WatchedSlice(Slice):
    """As `Slice`. tasks: of one run."""

    def __init__(self, *parts: Any, watch: ProgressWatch, tasks: int, **more: Any) -> None:
        self._watch, self._tasks = watch, tasks
        super().__init__(*parts, **more)

    def run(self, /, *values: object, **named: object) -> list[object]:
        self._watch.begin(self.flow.name, self._tasks)
        try:
            return super().run(*values, **named)
        finally:
            self._watch.end()

    def submit(self, /, *values: object, **named: object) -> "Future[list[object]]":
        self._watch.begin(self.flow.name, self._tasks)
        try:
            run = super().submit(*values, **named)
        except BaseException:
            self._watch.end()
            raise
        run.add_done_callback(lambda _: self._watch.end())
        return run

    def map_part(
        self,
        values: Iterable[object],
        ahead: int | None,
        first: int,
        step: int,
        on_error: OnError = "raise",
    ) -> MapRun:
        run = super().map_part(values, ahead, first, step, on_error)
        run.around = partial(self._counted, known_length(values))
        return run

    def _counted(self, total: int | None, results: Iterator[Any]) -> Iterator[Any]:
        items = self._watch.begin_map(self.flow.name, total)
        try:
            for each in results:
                items.done += 1
                yield each
        except GeneratorExit:  # perhaps by the collector, which may hold any lock
            apart(partial(self._watch.end_map, items))
            raise
        except BaseException:
            self._watch.end_map(items)
            raise
        self._watch.end_map(items)
