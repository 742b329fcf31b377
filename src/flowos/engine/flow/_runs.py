"""What a crew works with: runs, the places that stages run at, and the workers that hold them."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from flowos.engine.flow._kernel import Halt
from flowos.engine.flow._lanes import Lane, PythonLane, Values
from flowos.plan import Schedule, Stage

_QUICK_SECONDS = 0.001
_MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a stage of tasks; `seconds` since it was started."""

    what: Literal["started", "ended", "failed"]
    label: str
    seconds: float = 0.0


Emit = Callable[[Event], None]


class FlowRun:
    """One run of the schedule: its values, what its stages still wait for, how it ended."""

    __slots__ = ("done", "error", "left", "predecessors_left", "readers", "slots", "waiter")
    count = 1

    def __init__(self, schedule: Schedule, values: Sequence[object]) -> None:
        self.slots: list[object] = [*values, *([None] * (schedule.slots - len(values)))]
        for slot, value in schedule.presets:
            self.slots[slot] = value
        self.predecessors_left = [stage.n_predecessors for stage in schedule.stages]
        self.readers = dict(schedule.readers)
        self.left = len(schedule.stages)
        self.error: BaseException | None = None
        self.done = self.left == 0
        self.waiter: SlotThread | None = None


class MapBatch:
    """Items of a `map` over a flow that is one stage: one place runs them one after the other.

    items: values of the flow's inputs. results: what the stage gave, as far as it came. rest: the
    batches that go on after these, where the place stopped before the last item. error: of the item
    after the last result. seconds: how long the results took, and how long the processor worked.
    """

    __slots__ = ("done", "error", "items", "rest", "results", "seconds", "waiter")

    def __init__(self, items: Sequence[Values]) -> None:
        self.items = items
        self.results: list[Values] = []
        self.rest: tuple[MapBatch, ...] = ()
        self.seconds = (0.0, 0.0)
        self.error: BaseException | None = None
        self.done = False
        self.waiter: SlotThread | None = None

    @property
    def count(self) -> int:
        return len(self.items)

    def run(self, lane: PythonLane, stage: Stage) -> None:
        """Run the items, as many as the lane does in one go."""
        self.seconds = lane.run_rows(stage, _rows(stage, self.items), self.results)

    def outputs(self, places: Sequence[int]) -> list[list[object]]:
        """Of the items that came to an end. places: among an item's values and its results."""
        done = self.results[:]  # a place that is being stopped may still add to it
        known = [(*values, *given) for values, given in zip(self.items, done)]  # noqa: B905 - fewer
        return [[each[place] for place in places] for each in known]

    def split_rest(self) -> None:
        """Share the items that were not reached among batches as long as what was done in time."""
        items, size = self.items, max(1, len(self.results))
        starts = range(len(self.results), len(items), size)
        self.rest = tuple(MapBatch(items[start : start + size]) for start in starts)


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
    halt: seen by both lanes, set and cleared under the lock, so that no stop comes too early.
    pace: how many quick stages the lane is given at once.
    """

    __slots__ = ("by", "commands", "halt", "held", "pace", "python", "run")

    def __init__(self, python: PythonLane, commands: Lane, halt: Halt) -> None:
        self.python, self.commands, self.halt = python, commands, halt
        self.run: FlowRun | MapBatch | None = None
        self.by = 0
        self.held: Any = None
        self.pace = 1

    def stop(self) -> None:
        self.halt.on = True
        self.python.stop()
        self.commands.stop()


class SlotThread:
    """A thread that may hold a place. `gate` is what it sleeps on while it holds none.

    outer: where its place is that of a task which waits for it, the run of that task. lent: what
    tasks held that wait for it. settled: it released something since it last woke others.
    only: the run whose stages it runs, where a task of this very slice made that run: those of
    others would pile up on the task's stack.
    """

    __slots__ = ("gate", "lent", "only", "outer", "place", "settled", "thread")

    def __init__(self) -> None:
        self.place: ExecutionSlot | None = None
        self.thread = 0
        self.outer: tuple[FlowRun | MapBatch | None] | None = None
        self.lent: list[Any] = []
        self.settled = False
        self.only: FlowRun | MapBatch | None = None
        self.gate = threading.Lock()
        self.gate.acquire()


def with_events(
    emit: Emit, lane: Lane, stages: Sequence[Stage], values: Sequence[Values]
) -> Sequence[Values]:
    """Run, and say when it began and ended."""
    for stage in stages:
        emit(Event("started", stage.label))
    began = time.monotonic()
    what: Literal["ended", "failed"] = "failed"
    try:
        results = lane.run(stages, values)
        what = "ended"
    finally:
        seconds = time.monotonic() - began
        for stage in stages:
            emit(Event(what, stage.label, seconds))
    return results


def paced(
    place: ExecutionSlot, lane: Lane, stages: Sequence[Stage], values: Sequence[Values]
) -> Sequence[Values]:
    """Run; quick stages are given in larger batches from then on, slow ones in smaller."""
    began = time.monotonic()
    results = lane.run(stages, values)
    quick = time.monotonic() - began < _QUICK_SECONDS
    place.pace = min(_MOST_AT_ONCE, place.pace * 2) if quick else max(1, place.pace // 2)
    return results
