"""What an executor works with: runs, places that stages run at, and the workers that hold them."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from flowos._dataclasses import dataclass
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.flow._lanes import Lane, PythonLane, RowTimes, Values
from flowos.model import FlowosError, RunResult
from flowos.plan import Schedule, Stage

_QUICK_SECONDS = 0.001
MAX_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a stage of tasks; `seconds` since it was started. attempt: from 1 on.

    rounds: of the loops around it, from the outer one to the inner one.
    """

    what: Literal["started", "ended", "failed"]
    label: str
    seconds: float = 0.0
    attempt: int = 1
    rounds: tuple[int, ...] = ()


OnStage = Callable[[Event], None]


class FlowRun:
    """One run of the schedule: its values, what its stages still wait for, how it ended.

    attempts: of the stages that were repeated, by number. on_done: called once it is done, by any
    thread, without a lock. requeue: False once a task may have begun that runs at most once.
    first: which attempt it is at its stages, from 2 on of what was lost with another node.
    """

    __slots__ = (
        "attempts",
        "done",
        "error",
        "first",
        "left",
        "on_done",
        "predecessors_left",
        "readers",
        "requeue",
        "schedule",
        "slots",
        "waiter",
    )
    count = 1
    rounds: tuple[int, ...] = ()

    def __init__(
        self,
        schedule: Schedule,
        values: Sequence[object],
        on_done: "OnDone | None" = None,
        first: int = 1,
    ) -> None:
        self.prepare(schedule, values)
        self.on_done = on_done
        self.first, self.requeue = first, True
        self.error: BaseException | None = None
        self.done = self.left == 0
        self.waiter: SlotThread | None = None

    def prepare(self, schedule: Schedule, values: Sequence[object]) -> None:
        """What a run has of its own, also within another."""
        self.schedule = schedule
        self.slots: list[object] = [*values, *([None] * (schedule.slots - len(values)))]
        for slot, value in schedule.presets:
            self.slots[slot] = value
        self.predecessors_left = dict(schedule.predecessors)
        self.readers = dict(schedule.readers)
        self.left = len(schedule.stages)
        self.attempts: dict[int, int] | None = None

    @property
    def root(self) -> "FlowRun":
        """The run that it is part of."""
        return self

    def failed(self, error: BaseException) -> BaseException:
        """What it ends with, where a stage failed with this error."""
        return error

    def attempt(self, stage: Stage) -> int:
        """Which attempt at the stage this is."""
        return self.attempts.get(stage.number, self.first) if self.attempts else self.first

    @property
    def repeats(self) -> int:
        """How often the stage was repeated that needed most."""
        return max(self.attempts.values()) - self.first if self.attempts else 0

    def repeat(self, stage: Stage) -> None:
        """Another attempt is made."""
        self.attempts = {**(self.attempts or {}), stage.number: self.attempt(stage) + 1}

    @property
    def seconds(self) -> float:
        """From the first stage's begin to the last one's end, where that is known."""
        return 0.0

    def result(self, item: int, outputs: list[object]) -> RunResult:  # noqa: ARG002 - the only one
        return self._result(outputs=outputs)

    def failure(self, error: FlowosError) -> RunResult:
        return self._result(error=error)

    def _result(self, **end: Any) -> RunResult:
        return RunResult(attempts=self.first + self.repeats, seconds=self.seconds, **end)


OnDone = Callable[[FlowRun], None]


class TimedRun(FlowRun):
    """A run that knows when its first stage began, and when its last one ended."""

    __slots__ = ("began", "ended")

    def __init__(self, schedule: Schedule, values: Sequence[object], first: int = 1) -> None:
        super().__init__(schedule, values, first=first)
        self.began = self.ended = 0.0

    def run(
        self, on_stage: OnStage | None, place: "ExecutionSlot", lane: Lane, stages: Sequence[Stage]
    ) -> Sequence[Values]:
        """Run the stages and take the time."""
        return self.timed(partial(run_stages, self, on_stage, place, lane, stages))

    def timed(self, work: Callable[[], Sequence[Values]]) -> Sequence[Values]:
        self.began = self.began or time.perf_counter()
        try:
            return work()
        finally:
            self.ended = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class MapBatch:
    """Items of a `map` over a flow that is one stage: one place runs them one after the other.

    items: values of the flow's inputs. results: what the stage gave, as far as it came. rest: the
    batches that go on after these, where the place stopped before the last item. error: of the only
    item. times: what the lane said of the results; None where an item failed. seconds: of the item
    that failed. first: which attempt it is at the items; first_attempt: at the first of them, which
    may have been repeated.
    goes_on: a failed item does not end the map.
    """

    __slots__ = (
        "done",
        "error",
        "first",
        "first_attempt",
        "goes_on",
        "items",
        "requeue",
        "rest",
        "results",
        "seconds",
        "times",
        "waiter",
    )
    on_done: ClassVar[None] = None
    rounds: ClassVar[tuple[int, ...]] = ()
    repeats: ClassVar[int] = 0

    @property
    def root(self) -> "MapBatch":
        return self

    def __init__(
        self, items: Sequence[Values], *, goes_on: bool, first: int = 1, attempt: int = 0
    ) -> None:
        self.items = items
        self.goes_on = goes_on
        self.first, self.first_attempt = first, attempt or first
        self.requeue = True
        self.results: list[Values | None] = []
        self.rest: tuple[MapBatch, ...] = ()
        self.times: RowTimes | None = None
        self.seconds = 0.0
        self.error: BaseException | None = None
        self.done = False
        self.waiter: SlotThread | None = None

    @property
    def count(self) -> int:
        return len(self.items)

    def run(self, lane: PythonLane, stage: Stage) -> None:
        """Run the items, as many as the lane does in one go."""
        began = time.perf_counter()
        try:
            self.times = lane.run_rows(stage, _rows(stage, self.items), self.results)
        except BaseException:
            self.seconds = time.perf_counter() - began
            raise

    def outputs(self, take: Callable[[Values], Values]) -> list[list[object]]:
        """Of the items that came to an end. take: out of an item's values and its results."""
        done: list[Any] = self.results[:]  # a place that is being stopped may still add to it
        while done and done[-1] is None:  # lost
            done.pop()
        known = ((*values, *given) for values, given in zip(self.items, done))  # noqa: B905 - fewer
        return [list(take(each)) for each in known]

    def result(self, item: int, outputs: list[object]) -> RunResult:
        """Of an item that came to its end."""
        count, times = len(self.results), self.times or RowTimes()
        last = item == count - 1
        return RunResult(
            outputs=outputs,
            attempts=self.first_attempt if item == 0 else self.first,
            seconds=times.last if last else (times.all - times.last) / (count - 1),
        )

    def failure(self, error: FlowosError) -> RunResult:
        """Of the only item, which failed."""
        return RunResult(error=error, attempts=self.first_attempt, seconds=self.seconds)

    def attempt(self, _: Stage) -> int:
        """Which attempt this is at the item after the results."""
        return self.first if self.results else self.first_attempt

    def split_failed(self, error: BaseException, *, again: bool) -> None:
        """Put the item that failed into a batch of its own: to be run again, or with its error.

        What was lost with a worker before that is run again in any case.
        """
        at, attempt = len(self.results), self.first if self.results else self.first_attempt
        good = self.results.index(None) if None in self.results else at
        lost = self._new(self.items[good:at], 0 if good else self.first_attempt)
        failed = self._new(self.items[at : at + 1], attempt + again)
        if not again:
            failed.error, failed.seconds, failed.done = error, self.seconds, True
        go_on = self.items[at + 1 :] if again or self.goes_on else ()
        self.rest = tuple(each for each in (lost, failed, self._new(go_on)) if each.items)
        del self.results[good:]

    def _new(self, items: Sequence[Values], attempt: int = 0) -> "MapBatch":
        return MapBatch(items, goes_on=self.goes_on, first=self.first, attempt=attempt)

    def split_rest(self) -> None:
        """Share the items that were not reached among batches as long as what was done in time."""
        items, size = self.items, max(1, len(self.results))
        starts = range(len(self.results), len(items), size)
        self.rest = tuple(self._new(items[start : start + size]) for start in starts)


def _rows(stage: Stage, items: Sequence[Values]) -> Sequence[Values]:
    """What the stage takes of each item."""
    if stage.inputs == tuple(range(len(items[0]))):
        return items
    return [[values[slot] for slot in stage.inputs] for values in items]


def raise_error_of(run: FlowRun | MapBatch) -> None:
    """Raise what a run that is done ended with, once."""
    if run.error is not None:
        error, run.error = run.error, None
        try:
            raise error
        finally:
            del error  # its traceback holds this frame: a cycle would keep all that is in it


class ExecutionSlot:
    """Where one stage at a time runs: a lane for Python tasks and one for commands.

    by: the thread that runs here now, or 0. held: what it holds of the node (see `_share`).
    stop_flag: seen by both lanes, set and cleared under the lock, so that no stop comes too early.
    pace: how many quick stages the lane is given at once.
    """

    __slots__ = ("by", "commands", "held", "pace", "python", "run", "stop_flag")

    def __init__(self, python: PythonLane, commands: Lane, stop_flag: StopFlag) -> None:
        self.python, self.commands, self.stop_flag = python, commands, stop_flag
        self.run: FlowRun | MapBatch | None = None
        self.by = 0
        self.held: Any = None
        self.pace = 1

    def stop(self) -> None:
        self.stop_flag.on = True
        self.python.stop()
        self.commands.stop()


class SlotThread:
    """A thread that may hold a place. `gate` is what it sleeps on while it holds none.

    outer: where its place is that of a task which waits for it, the run of that task. lent: what
    tasks held that wait for it. settled: it released something since it last woke others.
    only: the run whose stages it runs, where a task of this very slice made that run: those of
    others would pile up on the task's stack. next: stages of its batch that it has not begun.
    """

    __slots__ = ("gate", "lent", "next", "only", "outer", "place", "settled", "thread")

    def __init__(self) -> None:
        self.place: ExecutionSlot | None = None
        self.thread = 0
        self.outer: tuple[FlowRun | MapBatch | None] | None = None
        self.lent: list[Any] = []
        self.settled = False
        self.only: FlowRun | MapBatch | None = None
        self.next: deque[Stage] = deque()
        self.gate = threading.Lock()
        self.gate.acquire()


def run_stages(
    run: FlowRun,
    on_stage: OnStage | None,
    place: ExecutionSlot,
    lane: Lane,
    stages: Sequence[Stage],
) -> Sequence[Values]:
    """Run stages of the run."""
    slots = run.slots
    values = [[slots[s] for s in stage.inputs] for stage in stages]
    if on_stage is not None:
        return with_events(on_stage, lane, stages, values, run)
    return paced(place, lane, stages, values)


def with_events(
    on_stage: OnStage, lane: Lane, stages: Sequence[Stage], values: Sequence[Values], run: FlowRun
) -> Sequence[Values]:
    """Run, and say when it began and ended."""
    attempt, rounds = run.attempt(stages[0]), run.rounds
    for stage in stages:
        on_stage(Event("started", stage.label, attempt=attempt, rounds=rounds))
    began = time.monotonic()
    what: Literal["ended", "failed"] = "failed"
    try:
        results = lane.run(stages, values)
        what = "ended"
    finally:
        seconds = time.monotonic() - began
        for stage in stages:
            on_stage(Event(what, stage.label, seconds, attempt, rounds))
    return results


def paced(
    place: ExecutionSlot, lane: Lane, stages: Sequence[Stage], values: Sequence[Values]
) -> Sequence[Values]:
    """Run; quick stages are given in larger batches from then on, slow ones in smaller."""
    began = time.monotonic()
    results = lane.run(stages, values)
    set_pace(place, time.monotonic() - began)
    return results


def set_pace(place: ExecutionSlot, seconds: float) -> None:
    """After a batch that took so long."""
    quick = seconds < _QUICK_SECONDS
    place.pace = min(MAX_AT_ONCE, place.pace * 2) if quick else max(1, place.pace // 2)
