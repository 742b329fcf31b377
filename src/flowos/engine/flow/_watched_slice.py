"""A slice that says how far its runs are."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from flowos._collected import apart
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

    def run_attempt(
        self, first: int, values: tuple[object, ...], named: dict[str, object]
    ) -> list[object]:
        self._watch.begin(self.flow.name, self._tasks)
        try:
            return super().run_attempt(first, values, named)
        finally:
            self._watch.end()

    def submit_attempt(
        self, first: int, values: tuple[object, ...], named: dict[str, object]
    ) -> "Future[list[object]]":
        self._watch.begin(self.flow.name, self._tasks)
        try:
            run = super().submit_attempt(first, values, named)
        except BaseException:
            self._watch.end()
            raise
        run.add_done_callback(lambda _: self._watch.end())
        return run

    def map(
        self,
        values: Iterable[object],
        *,
        ahead: int | None = None,
        on_error: OnError = "raise",
    ) -> Any:
        results = super().map(values, ahead=ahead, on_error=on_error)
        return counted(self._watch, self.flow.name, known_length(values), results)


def counted(
    watch: ProgressWatch, flow: str, total: int | None, results: Iterator[Any]
) -> Iterator[Any]:
    """The same results; the watch counts them as items of a `map`."""
    items = watch.begin_map(flow, total)
    try:
        for each in results:
            items.done += 1
            yield each
    except GeneratorExit:  # perhaps by the collector, which may hold any lock
        apart(partial(watch.end_map, items))
        raise
    except BaseException:
        watch.end_map(items)
        raise
    watch.end_map(items)
