"""What a worker is taught of a schedule: functions, port types, and stages as numbers."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowos.engine.flow._failures import in_round
from flowos.engine.flow._kept import kept_slots
from flowos.engine.workers._functions import WAYS, FunctionSource, SendingWay, dumps
from flowos.engine.workers._worker_failures import lacking, task_error
from flowos.model import Cond, FlowosError, Loop, Python, SliceRefused, TaskFailed
from flowos.plan import Schedule, Stage, Step

Function = Callable[..., Any]
PlacedStep = tuple[Step, tuple[int, ...]]
"""A step, and the numbers of the loops around it, from the outer one to the inner one."""


class WorkerProgram:
    """A schedule as it is sent.

    functions, with the label of the first task that uses each; types: port types of results.
    stages: number -> (empty registers, steps, returns, stays), where a step is (function, inputs,
    outputs, types, calling). Instead of a function, a cond has (takes, flows) and a loop (state,
    max_rounds, until, flows), where a flow is (number of its first step, constants, steps,
    returns). stays: workers may get its results again. steps: those of each stage by their numbers,
    first its own, then those within.
    constants: what fills the registers after the stage's inputs. kept: see `kept_slots`; their
    values can stay as they came.
    limits: seconds of the stages that have a time limit; such a task is a stage of its own.
    image, node: by their names, where it is sent to; "" for none, and for this machine.
    """

    def __init__(self, schedule: Schedule, image: str = "", node: str = "") -> None:
        self._image, self._node = image, node
        self.functions: list[Function] = []
        self.labels: list[str] = []
        self.types: list[object] = []
        self.stages: dict[int, tuple[int, list[Any], tuple[int, ...], bool]] = {}
        self.steps: dict[int, list[PlacedStep]] = {}
        self.constants: dict[int, tuple[object, ...]] = {}
        self.limits: dict[int, float] = {}
        self.kept = kept_slots(schedule)
        self._numbers: dict[int, int] = {}
        self._ways: dict[int, Iterator[SendingWay]] = {}
        self._sources: dict[int, FunctionSource] = {}
        self._complaints: dict[int, list[str]] = {}
        self._lock = threading.Lock()
        self._add_schedule(schedule)

    def sources(
        self, problems: dict[int, str], tried: dict[int, FunctionSource]
    ) -> dict[int, FunctionSource]:
        """How the functions are sent: all of them, or the next way for those with a problem.

        What worked for one worker is what the next one gets. Raises TaskFailed if no way is left.
        """
        with self._lock:
            for number, problem in problems.items():
                if self._sources[number] is tried[number]:  # else another worker was as unlucky
                    self._complaints[number].append(problem)
                    del self._sources[number]
            numbers = problems or range(len(self.functions))
            return {number: self._source(number) for number in numbers}

    def step(self, stage: Stage, number: int) -> Step:
        """By the number that the worker has for it."""
        return self.steps[stage.number][number][0]

    def error(
        self, stage: Stage, number: int, rounds: dict[int, int], *details: Any
    ) -> FlowosError:
        """Of a step that failed: as the worker sent it."""
        place = f"image {self._image}" if self._image else self._node and f"node {self._node}"
        error = lacking(task_error(self.step(stage, number), *details), place)
        return self.in_rounds(error, stage, number, lambda loop: rounds[loop])

    def in_rounds(
        self, error: FlowosError, stage: Stage, number: int, round_of: Callable[[int], int]
    ) -> FlowosError:
        """The error of a step, which says in which rounds of the loops around it that was.

        round_of: 0 if it is not known.
        """
        for loop in reversed(self.steps[stage.number][number][1]):
            if number_of_round := round_of(loop):
                error = in_round(error, number_of_round, self.step(stage, loop).label)
        return error

    def _source(self, number: int) -> FunctionSource:
        fun = self.functions[number]
        ways = self._ways.setdefault(number, iter(WAYS))
        complaints = self._complaints.setdefault(number, [])
        while number not in self._sources:
            way = next(ways, None)
            if way is None:
                raise TaskFailed(_unsendable(self.labels[number], fun, complaints, self._image))
            try:
                source = way(fun)
            except Exception as error:
                complaints.append(f"{type(error).__name__}: {error}")
            else:
                if source is not None:
                    self._sources[number] = source
        return self._sources[number]

    def _add_schedule(self, schedule: Schedule) -> None:
        for stage in schedule.stages:
            if stage.in_python:
                self._add(stage)
            for flow in stage.flows:
                self._add_schedule(flow)

    def _add(self, stage: Stage) -> None:
        count = len(stage.constants)
        while count and stage.constants[count - 1] is None:
            count -= 1
        self.constants[stage.number] = stage.constants[:count]
        body = stage.steps[0].task.body
        if isinstance(body, Python) and body.limit_seconds is not None:
            self.limits[stage.number] = body.limit_seconds
        placed = self.steps[stage.number] = []
        _, steps = self._program(stage.steps, placed, ())
        empty, stays = len(stage.constants) - count, bool(self.kept[stage.number])
        self.stages[stage.number] = (empty, steps, stage.returns, stays)

    def _program(
        self, steps: Sequence[Step], placed: list[PlacedStep], around: tuple[int, ...]
    ) -> tuple[int, list[Any]]:
        """The number of the first step, and all of them."""
        first = len(placed)
        placed += [(step, around) for step in steps]
        return first, [self._step(step, placed, around, first + i) for i, step in enumerate(steps)]

    def _step(
        self, step: Step, placed: list[PlacedStep], around: tuple[int, ...], number: int
    ) -> tuple[Any, ...]:
        body = step.task.body
        types = tuple(self._number(p.type, self.types) for p in step.task.outputs)
        if isinstance(body, Python):
            function: Any = self._number(body.fun, self.functions)
            if function == len(self.labels):
                self.labels.append(step.label)
            calling = body.keywords, step.task.checked_extents
            return function, step.inputs, step.outputs, types, calling
        around = (*around, number) if isinstance(body, Loop) else around
        flows = [self._flow(step, stage, placed, around) for stage in step.inner]
        if isinstance(body, Cond):
            function = body.takes, flows
        elif isinstance(body, Loop):
            function = body.state, body.max_rounds, body.until, flows
        return function, step.inputs, step.outputs, types, ()

    def _flow(
        self, step: Step, stage: Stage, placed: list[PlacedStep], around: tuple[int, ...]
    ) -> tuple[Any, ...]:
        first, steps = self._program(stage.steps, placed, around)
        try:
            constants = dumps(stage.constants)
        except Exception as error:
            raise SliceRefused(
                f"slice: a constant in task {step.label!r} cannot be sent to a worker process "
                f"({error}); make it an input, or give the slice workers='thread'"
            ) from error
        return first, constants, steps, stage.returns

    def _number(self, thing: Any, things: list[Any]) -> int:
        """Its place in the list, by identity: what is in the list lives, so its id is its own."""
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = len(things)
            things.append(thing)
        return number


def _unsendable(label: str, fun: Function, complaints: list[str], image: str) -> str:
    name = getattr(fun, "__qualname__", None) or type(fun).__qualname__
    if image:
        return (
            f"task {label!r}: its function {name} cannot be loaded in image {image} "
            f"({complaints[-1]})"
        )
    why = "; ".join(dict.fromkeys(complaints))
    return (
        f"task {label!r}: its function {name} cannot be sent to a worker process ({why}); "
        "move it into a module of its own, or run the slice with workers='thread'"
    )
