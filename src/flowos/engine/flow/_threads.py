"""Lanes that run stages in the threads that call them."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter, thread_time

from flowos.engine.flow._kernel import CompiledStage, Halt, MarkedOperations
from flowos.engine.flow._lanes import BATCH_SECONDS, RowTimes
from flowos.model import DeviceNumbers
from flowos.plan import Schedule, Stage


class ThreadLane:
    """A thread cannot be ended from outside: a stop is heard, by `halt`, between two tasks."""

    __slots__ = ("_halt", "_marks", "_programs")

    def __init__(
        self, halt: Halt, programs: Sequence[CompiledStage], marks: dict[int, int]
    ) -> None:
        self._halt = halt
        self._programs = programs
        self._marks = marks

    def run(
        self, stages: Sequence[Stage], values: Sequence[Sequence[object]]
    ) -> Sequence[Sequence[object]]:
        """One stage, as `ThreadLanes.most` says."""
        return (self._programs[stages[0].number].run(values[0], self._halt),)

    def run_rows(
        self,
        stage: Stage,
        rows: Sequence[Sequence[object]],
        results: list[Sequence[object] | None],
    ) -> RowTimes:
        run, halt = self._programs[stage.number].run, self._halt
        worked, began = thread_time(), perf_counter()
        until, now = began + BATCH_SECONDS, began
        for row in rows:
            before = now
            results.append(run(row, halt))
            if (now := perf_counter()) > until:
                break
        return RowTimes(now - began, now - before, thread_time() - worked)

    def bind(self, cores: Sequence[int], devices: DeviceNumbers) -> None:
        """Threads stay where they are: the pools of their libraries are of the whole process.

        They share its variables too: no task that needs devices runs in one.
        """

    def stop(self) -> None:
        """Nothing beyond `halt`."""

    def at(self, thread: int) -> tuple[int, int]:
        return 0, self._marks.get(thread, 0)


class ThreadLanes:
    """One place for Python tasks of this process per `Halt`."""

    most = 1
    ready = 0

    def __init__(self, schedule: Schedule, halts: Sequence[Halt]) -> None:
        self._programs = [CompiledStage(stage) for stage in schedule.all_stages]
        self._marks: dict[int, int] = {}
        self.lanes = tuple(ThreadLane(halt, self._programs, self._marks) for halt in halts)

    def added(self, stage: Stage) -> Stage:
        """The same, which lanes can be given from now on too."""
        stage = replace(stage, number=len(self._programs))
        self._programs.append(CompiledStage(stage))
        return stage

    def mark_steps(self) -> None:
        """From now on lanes know at which step of a stage they are."""
        for program in self._programs:
            program.operations = MarkedOperations(program.operations, self._marks)

    def close(self) -> None:
        """Nothing to leave behind: the threads belong to the executor."""
