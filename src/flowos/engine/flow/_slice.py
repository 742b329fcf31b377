"""What is held for a person: the compiled flow, its lanes, and the folder of its files.

run: values are checked before any task starts; a result is a list in the order of the outputs.
free: no task starts any more, commands and workers are ended, thread tasks get two seconds; runs in
progress raise SliceFreed, also where their last task ends after all. Ctrl-C, or whatever else the
handler of a signal raises, does the same for the runs in progress, and the slice can run again; a
second Ctrl-C leaves at once.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from flowos._collected import apart, when_collected
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._failures import input_refused, of_item
from flowos.engine.flow._files import present
from flowos.engine.flow._freed import Freed
from flowos.engine.flow._pace import BatchPace, Items
from flowos.engine.flow._runs import FlowRun, MapBatch, raise_error_of
from flowos.engine.flow._usage import SliceUsage
from flowos.model import Cancelled, File, Flow, FlowosError, SliceFreed

_GRACE_SECONDS = 2.0


class Slice(Freed):
    """A flow on a place to run. Made by `fo.slice`; free it, or use it in a `with`.

    hire: makes the crew, and another after a Ctrl-C; clear: removes what was made on disk; usage:
    counts what it is used for.
    notes: what a person should know of it now.
    """

    def __init__(
        self,
        flow: Flow,
        hire: Callable[[], Executor],
        clear: Callable[[], None],
        usage: SliceUsage,
        *,
        notes: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.flow = flow
        self._notes = notes
        self._usage = usage
        self._begun = usage.begun
        self._good = tuple(p.spec.type.quick() for p in flow.inputs)
        self._files = any(p.spec.type == File for p in flow.inputs)
        self._hire = hire
        self._lock = threading.Lock()
        self._over: Callable[[], FlowosError] | None = None
        self._crew: list[Executor] = [hire()]
        self._end: Callable[..., None] = partial(_end, self._crew, clear, usage)
        self._ending = when_collected(self, self._end)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: of its environment (unpacked, and why), of kept results."""
        return self._notes()

    def run(self, /, *values: object, **named: object) -> list[object]:
        """Run the flow once: values in the order in which the inputs were made, or by name.

        ValueRefused, TaskFailed (WorkerLost), SliceFreed; Cancelled where another thread's Ctrl-C
        ended the run.
        """
        given = self._checked(self.flow.bind(values, named))
        self._begun()
        while True:
            crew = self._crew[0]
            try:
                results = crew.run(given)
            except FlowosError:
                raise
            except BaseException:  # Ctrl-C, or what the handler of another signal raised
                crew.end(_cancelled, _GRACE_SECONDS)
                raise
            if results is not None:
                return results
            self._replace(crew)

    def map(self, values: Iterable[object], *, ahead: int | None = None) -> Iterator[list[object]]:
        """Results of one run per item, in order, as they are asked for.

        values: a tuple is one run's values, anything else its only value. ahead: how many runs may
        be in flight beyond the one asked for; unless given, 2 batches per place. A batch is one
        run, or what runs in about a millisecond where a run is one stage of Python tasks.
        An error comes where its item is in order, after the results before it, and names it:
        "item 3: ...", counted from 0. It ends the map.
        """
        return self.map_part(values, ahead, 0, 1)

    def map_part(
        self, values: Iterable[object], ahead: int | None, first: int, step: int
    ) -> Iterator[list[object]]:
        """`map` of every `step`-th item of all, from the `first` on; errors name it so."""
        crew = self._crew[0]
        pace = BatchPace(
            places=len(crew.places),
            ahead=None if ahead is None else max(0, ahead),
            threads=crew.runs_in_threads,
        )
        return self._mapped(iter(values), pace, first, step)

    def free(self) -> None:
        """Give all back. Twice is once."""
        self.end(_freed)

    def end(self, error: Callable[[], FlowosError]) -> None:
        """Give all back; runs in progress raise this error, and so do later ones."""
        with self._lock:
            self._over = self._over or error
        if self._ending.detach():
            self._end(error)

    def __repr__(self) -> str:
        state = "freed" if self._over else f"places: {len(self._crew[0].places)}"
        return f"<slice of {self.flow!r}, {state}>"

    def _checked(self, values: tuple[object, ...]) -> Sequence[object]:
        for good, port, value in zip(self._good, self.flow.inputs, values, strict=True):
            if not good(value):
                complaint = port.spec.type.check(value)
                raise input_refused(port.spec.name, complaint or "refused")
        return self._found(values) if self._files else values

    def _found(self, values: Sequence[object]) -> list[object]:
        """File inputs as absolute paths of what is there."""
        found = list(values)
        for i, port in enumerate(self.flow.inputs):
            if port.spec.type == File:
                found[i] = present(values[i])  # type: ignore[arg-type]
                if isinstance(found[i], str):
                    raise input_refused(port.spec.name, str(found[i]))
        return found

    def _start(self, items: Sequence[Sequence[object]]) -> tuple[Executor, FlowRun | MapBatch]:
        while True:
            crew = self._crew[0]
            started = crew.start_batch(items) if crew.maps_in_batches else crew.start(items[0])
            if started is not None:
                return crew, started
            self._replace(crew)

    def _replace(self, ended: Executor) -> None:
        """After a Ctrl-C another executor goes on; after `free` none does."""
        with self._lock:
            if self._over is _freed:
                raise SliceFreed("the slice was freed: make another with fo.slice(...)")
            if self._over is not None:
                raise self._over()
            if self._crew[0] is ended:
                self._crew[0] = self._hire()

    def _finish(self, crew: Executor, run: FlowRun | MapBatch) -> list[list[object]]:
        try:
            return crew.finish_batch(run) if isinstance(run, MapBatch) else [crew.finish(run)]
        except FlowosError:
            raise
        except BaseException:
            crew.end(_cancelled, _GRACE_SECONDS)
            raise

    def _finish_item(
        self, crew: Executor, run: FlowRun | MapBatch, item: int
    ) -> list[list[object]]:
        try:
            return self._finish(crew, run)
        except FlowosError as error:
            raise of_item(error, item) from error.__cause__

    def _mapped(
        self, values: Iterator[object], pace: BatchPace, item: int, step: int
    ) -> Iterator[list[object]]:
        items = Items(values, self._item)
        flight: deque[tuple[Executor, FlowRun | MapBatch]] = deque()
        try:
            while True:
                self._fill(flight, items, pace)
                if not flight:
                    break
                crew, run = flight.popleft()
                results = self._finish_item(crew, run, item)
                yield from results
                item += step * len(results)
                if isinstance(run, MapBatch):
                    _raise_error_of_item(run, item)
                    flight.extendleft((crew, rest) for rest in reversed(run.rest))
                    pace.learn(len(run.results), *run.seconds)
        finally:
            if flight:
                apart(partial(_leave, flight))
        if items.error is not None:
            raise of_item(items.error, item) if items.refused else items.error

    def _item(self, value: object) -> Sequence[object]:
        given = value if isinstance(value, tuple) else (value,)
        return self._checked(self.flow.bind(given, {}))

    def _fill(
        self, flight: deque[tuple[Executor, FlowRun | MapBatch]], items: Items, pace: BatchPace
    ) -> None:
        """Start runs once half of those in flight are done, so that helpers wake for several."""
        count = sum(run.count for _, run in flight)
        if count > pace.limit // 2:
            return
        while count < pace.limit and (taken := items.take(min(pace.size, pace.limit - count))):
            flight.append(self._start(taken))
            self._usage.mapped(len(taken))
            count += len(taken)
        if len(flight) > 1:
            flight[-1][0].help()


def _raise_error_of_item(batch: MapBatch, item: int) -> None:
    try:
        raise_error_of(batch)
    except FlowosError as error:
        raise of_item(error, item) from error.__cause__


def _cancelled() -> Cancelled:
    return Cancelled("the run was interrupted")


def _freed() -> SliceFreed:
    return SliceFreed("the slice was freed while this ran")


def _leave(flight: Iterable[tuple[Executor, FlowRun | MapBatch]]) -> None:
    for crew, run in flight:
        crew.cancel(run, Cancelled("the map was left before this run ended"))


def _end(
    crews: list[Executor],
    clear: Callable[[], None],
    usage: SliceUsage,
    error: Callable[[], FlowosError] = _freed,
) -> None:
    usage.end()
    try:
        crews[0].end(error, _GRACE_SECONDS)
    finally:
        clear()
