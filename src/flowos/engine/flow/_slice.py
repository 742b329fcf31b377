"""What is held for a person: the compiled flow, its lanes, and the folder of its files.

run: values are checked before any task starts; a result is a list in the order of the outputs.
free: no task starts any more, commands and workers are ended, thread tasks get two seconds; runs in
progress raise SliceFreed, also where their last task ends after all. Ctrl-C, or whatever else the
handler of a signal raises, does the same for the runs in progress, and the slice can run again; a
second Ctrl-C leaves at once.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

from flowos._collected import when_collected
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._failures import input_refused
from flowos.engine.flow._files import present
from flowos.engine.flow._freed import Freed
from flowos.engine.flow._map import Flight, MapPart, MapRun
from flowos.engine.flow._pace import BatchPace, Items
from flowos.engine.flow._runs import FlowRun, MapBatch, TimedRun, raise_error_of
from flowos.engine.flow._usage import SliceUsage
from flowos.model import (
    Cancelled,
    EnginePlan,
    File,
    Flow,
    FlowosError,
    RunResult,
    SliceFreed,
    ValueRefused,
    brief_repr,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

_GRACE_SECONDS = 2.0
OnError = Literal["raise", "return"]
"""What a `map` does with an item that fails."""


class Slice(Freed):
    """A flow on a place to run. Made by `fo.slice`; free it, or use it in a `with`.

    new_executor: makes one, and another after a Ctrl-C; clear: removes what was made on disk;
    usage: counts what it is used for.
    notes: what a person should know of it now. planned: the engines for values of a run, where
    tasks have several.

    >>> @fo.task
    ... def inverse(x: float) -> float:
    ...     return 1 / x
    >>> s = fo.slice(inverse(fo.flow_input("x", float)), cores=1)
    >>> s
    <slice of <flow flow(x: float64), 1 tasks>, places: 1>
    >>> s.run(4.0), s.run(x=2.0), s.places, s.notes
    ([0.25], [0.5], 1, ())
    >>> s.free()
    """

    def __init__(
        self,
        flow: Flow,
        new_executor: Callable[[], Executor],
        clear: Callable[[], None],
        usage: SliceUsage,
        notes: Callable[[], tuple[str, ...]] = tuple,
        planned: Callable[[Sequence[object]], EnginePlan] | None = None,
    ) -> None:
        self.flow = flow
        self._notes, self._planned = notes, planned
        self._usage = usage
        self._begun = usage.begun
        self._good = tuple(p.spec.type.quick() for p in flow.inputs)
        self._files = any(p.spec.type == File for p in flow.inputs)
        self._new_executor = new_executor
        self._lock = threading.Lock()
        self._over: Callable[[], FlowosError] | None = None
        self._executor = [new_executor()]  # the one there is, for `_end` too
        self._end: Callable[..., None] = partial(_end, self._executor, clear, usage)
        self._ending = when_collected(self, self._end)
        _slices.add(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: of its environment (unpacked, and why), of kept results."""
        return self._notes()

    def run(self, /, *values: object, **named: object) -> list[object]:
        """Run the flow once: values in the order in which the inputs were made, or by name.

        ValueRefused, TaskFailed (WorkerLost), SliceFreed; Cancelled where another thread's Ctrl-C
        ended the run.
        """
        return self.run_attempt(1, values, named)

    def run_attempt(
        self, first: int, values: tuple[object, ...], named: dict[str, object]
    ) -> list[object]:
        """The same. first: attempt at its tasks."""
        given = self._checked(self.flow.bind(values, named))
        self._begun()
        while True:
            executor = self._executor[0]
            try:
                results = executor.run(given, first)
            except FlowosError as error:
                self._usage.run_failed(error)
                raise
            except BaseException:  # Ctrl-C, or what the handler of another signal raised
                executor.end(_cancelled, _GRACE_SECONDS)
                raise
            if results is not None:
                return results
            self._replace(executor)

    def submit(self, /, *values: object, **named: object) -> "Future[list[object]]":
        """Begin a run and do not wait: a `concurrent.futures.Future` of what `run` returns.

        `fo.as_completed`, `concurrent.futures.wait` and so on take it; `cancel()` ends it also
        while it runs. `free` ends what is not done. With workers="inline" it runs at once, before
        this returns. Raises ValueRefused if a value does not fit its port, SliceFreed once freed.

        >>> with fo.slice(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64)))) as s:
        ...     run = s.submit(np.array([3, 1, 2]))
        ...     run.result()
        [array([1, 2, 3])]
        """
        return self.submit_attempt(1, values, named)

    def submit_attempt(
        self, first: int, values: tuple[object, ...], named: dict[str, object]
    ) -> "Future[list[object]]":
        """The same. first: attempt at its tasks."""
        from flowos.engine.flow._submitted import SubmittedRun  # loads what others never need

        given = self._checked(self.flow.bind(values, named))
        self._begun()
        run = SubmittedRun(self, self._usage.run_failed)
        while not run.begin(executor := self._executor[0], given, first):
            self._replace(executor)
        return run

    async def arun(self, /, *values: object, **named: object) -> list[object]:
        """`run` for asyncio: no thread waits. Cancelling the task that awaits it ends the run.

        >>> import asyncio
        >>> with fo.slice(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64)))) as s:
        ...     asyncio.run(s.arun(np.array([3, 1, 2])))
        [array([1, 2, 3])]
        """
        from flowos.engine.flow._submitted import awaited

        return await awaited(self.submit(*values, **named))

    def plan(self, /, *values: object, **named: object) -> EnginePlan:
        """Which engine runs each task for values of these sizes, and what is copied.

        Of tasks with several bodies (`either`) with what they took. The copies are those of `run`;
        one run of 64, which is measured again, items of a `map` and kept results may differ.

        >>> with fo.slice(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64)))) as s:
        ...     print(s.plan(np.array([3, 1, 2])))
        task  engine  time
        sort  python  not measured
        no copies
        state: chosen
        """
        given = self._checked(self.flow.bind(values, named))
        self._refuse_over()
        from flowos.engine.flow._planned_run import planned_run  # loads what others never need

        return planned_run(self._executor[0], given, self._planned and self._planned(given))

    @overload
    def map(
        self, values: Iterable[object], *, ahead: int | None = ..., on_error: Literal["raise"] = ...
    ) -> Iterator[list[object]]: ...
    @overload
    def map(
        self, values: Iterable[object], *, ahead: int | None = ..., on_error: Literal["return"]
    ) -> Iterator[RunResult]: ...
    def map(
        self,
        values: Iterable[object],
        *,
        ahead: int | None = None,
        on_error: OnError = "raise",
    ) -> Iterator[list[object]] | Iterator[RunResult]:
        """Results of one run per item, in order, as they are asked for.

        values: a tuple is one run's values, anything else its only value. ahead: how many runs may
        be in flight beyond the one asked for; unless given, 2 batches per place. A batch is one
        run, or what runs in about a millisecond where a run is one stage of Python tasks.
        An error comes where its item is in order, after the results before it, and names it:
        "item 3: ...", counted from 0. on_error: "raise" has it end the map. "return" gives a
        `RunResult` for each item, good or bad, and goes on; raised is then only what is not of an
        item: the end of the slice, or an error of `values` itself. Items of one batch whose
        results are lost with a worker are run again.

        >>> @fo.task
        ... def inverse(x: float) -> float:
        ...     return 1 / x
        >>> with fo.slice(inverse(fo.flow_input("x", float))) as s:
        ...     list(s.map([1.0, 4.0]))
        ...     [result.ok for result in s.map([1.0, 0.0], on_error="return")]
        [[1.0], [0.25]]
        [True, False]
        """
        return self.map_run(values, ahead, on_error).results()

    def map_run(
        self,
        values: Iterable[object],
        ahead: int | None = None,
        on_error: OnError = "raise",
        part: MapPart | None = None,
    ) -> MapRun:
        """A `map` that has not begun. part: gives its items, where they are a part of another map's
        (then there are no `values`)."""
        check_map(values, ahead, on_error)
        executor = self._executor[0]
        pace = BatchPace(
            places=len(executor.places),
            ahead=None if ahead is None else max(0, ahead),
            threads=executor.runs_in_threads,
        )
        return MapRun(
            Items(iter(values), self._item, part.take if part else None),
            pace,
            self._start,
            self._finish,
            part,
            goes_on=on_error == "return",
        )

    @property
    def places(self) -> int:
        """Where tasks run side by side."""
        return len(self._executor[0].places)

    @property
    def ready(self) -> int:
        """At how many of them a worker process runs and has nothing to do."""
        return self._executor[0].ready

    def free(self) -> None:
        """Give all back. Twice is once."""
        self.end(_freed)

    def end(self, error: Callable[[], FlowosError]) -> None:
        """Give all back; runs in progress raise this error, and so do later ones."""
        with self._lock:
            self._over = self._over or error
        if self._ending.detach():
            self._end(error)

    def _leave_behind(self) -> None:
        """In a forked child: what runs and what was made is the parent's. Threads are made anew."""
        self._lock = threading.Lock()
        self._ending.detach()
        self._executor[0].leave_behind()
        if not self._executor[0].runs_in_threads:
            self._over = self._over or partial(_elsewhere, os.getppid())

    def __repr__(self) -> str:
        state = "freed" if self._over else f"places: {len(self._executor[0].places)}"
        return f"<slice of {self.flow!r}, {state}>"

    def _checked(self, values: tuple[object, ...]) -> Sequence[object]:
        for i, good in enumerate(self._good):
            if not good(values[i]):
                port = self.flow.inputs[i].spec
                raise input_refused(port.name, port.type.check(values[i]) or "refused")
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

    def _start(self, items: Sequence[Sequence[object]], goes_on: bool, first: int) -> Flight:
        while True:
            executor = self._executor[0]
            started: FlowRun | MapBatch | None
            if executor.maps_in_batches:
                started = executor.start_batch(items, goes_on=goes_on, first=first)
            else:
                made = TimedRun if goes_on else FlowRun
                started = executor.start(items[0], partial(made, first=first))
            if started is not None:
                self._usage.mapped(len(items))
                return executor, started
            self._replace(executor)

    def _replace(self, ended: Executor) -> None:
        """After a Ctrl-C another executor goes on; after `free` none does."""
        with self._lock:
            self._refuse_over()
            if self._executor[0] is ended:
                self._executor[0] = self._new_executor()

    def _refuse_over(self) -> None:
        if self._over is _freed:
            raise SliceFreed("the slice was freed: make another with fo.slice(...)")
        if self._over is not None:
            raise self._over()

    def _finish(
        self, executor: Executor, run: FlowRun | MapBatch
    ) -> tuple[list[list[object]], FlowosError | None]:
        """The outputs of the items that came to an end, and the error of the next one."""
        outputs, error = self._finished(executor, run)
        if error is not None:
            self._usage.run_failed(error)
        return outputs, error

    def _finished(
        self, executor: Executor, run: FlowRun | MapBatch
    ) -> tuple[list[list[object]], FlowosError | None]:
        try:
            if isinstance(run, FlowRun):
                return [executor.finish(run)], None
            outputs = executor.finish_batch(run)
        except FlowosError as error:
            return [], error
        except BaseException:
            executor.end(_cancelled, _GRACE_SECONDS)
            raise
        try:
            raise_error_of(run)
        except FlowosError as error:
            return outputs, error
        return outputs, None

    def _item(self, value: object) -> Sequence[object]:
        given = value if isinstance(value, tuple) else (value,)
        return self._checked(self.flow.bind(given, {}))


_slices: "weakref.WeakSet[Slice]" = weakref.WeakSet()  # for the fork hook, which gets no slice


def _leave_behind_in_child() -> None:
    for each in tuple(_slices):
        each._leave_behind()


os.register_at_fork(after_in_child=_leave_behind_in_child)


def check_map(values: object, ahead: object, on_error: object) -> None:
    """Raises ValueRefused for what a map cannot do."""
    if on_error not in ("raise", "return"):
        raise ValueRefused(f"map: on_error={brief_repr(on_error)}; one of raise, return")
    if ahead is not None and not isinstance(ahead, int):
        raise ValueRefused(f"map: ahead={brief_repr(ahead)}; expected a whole number, or None")
    if not (hasattr(values, "__iter__") or hasattr(values, "__getitem__")):
        raise ValueRefused(f"map: {brief_repr(values)} has no items; give a list or an iterator")


def _cancelled() -> Cancelled:
    return Cancelled("the run was interrupted")


def _freed() -> SliceFreed:
    return SliceFreed("the slice was freed while this ran")


def _elsewhere(process: int) -> SliceFreed:
    return SliceFreed(f"this slice belongs to process {process}: make another")


def _end(
    executor: list[Executor],
    clear: Callable[[], None],
    usage: SliceUsage,
    error: Callable[[], FlowosError] = _freed,
) -> None:
    usage.end()
    try:
        executor[0].end(error, _GRACE_SECONDS)
    finally:
        clear()
