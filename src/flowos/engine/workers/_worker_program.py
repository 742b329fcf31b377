"""What a worker is taught of a schedule: functions, port types, and stages as numbers."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from flowos.engine.workers._functions import WAYS, Source, Way
from flowos.model import Python, TaskFailed
from flowos.plan import Schedule, Stage, Step

Function = Callable[..., Any]


class WorkerProgram:
    """A schedule as it is sent.

    functions, with the label of the first task that uses each; types: port types of results.
    stages: number -> (empty registers, steps, returns), where a step is (function, inputs, outputs,
    types, keywords). constants: what fills the registers after the stage's inputs. kept: slots that
    only workers read, whose values can stay as they came. limits: seconds of the stages that have a
    time limit; such a task is a stage of its own.
    """

    def __init__(self, schedule: Schedule, image: str = "") -> None:
        self._image = image
        self.functions: list[Function] = []
        self.labels: list[str] = []
        self.types: list[object] = []
        self.stages: dict[int, tuple[int, list[Any], tuple[int, ...]]] = {}
        self.constants: dict[int, tuple[object, ...]] = {}
        self.limits: dict[int, float] = {}
        self._numbers: dict[int, int] = {}
        self._ways: dict[int, Iterator[Way]] = {}
        self._sources: dict[int, Source] = {}
        self._complaints: dict[int, list[str]] = {}
        self._lock = threading.Lock()
        opened = set(schedule.outputs)
        for stage in schedule.stages:
            body = stage.steps[0].task.body
            if isinstance(body, Python):
                self._add(stage)
                if body.limit_seconds is not None:
                    self.limits[stage.number] = body.limit_seconds
            else:
                opened.update(stage.inputs)
        self.kept = frozenset(s for stage in schedule.stages for s in stage.outputs) - opened

    def sources(self, problems: dict[int, str], tried: dict[int, Source]) -> dict[int, Source]:
        """How the functions are sent: all of them, or the next way for those with a problem.

        What worked for one worker is what the next one gets. TaskFailed where no way is left.
        """
        with self._lock:
            for number, problem in problems.items():
                if self._sources[number] is tried[number]:  # else another worker was as unlucky
                    self._complaints[number].append(problem)
                    del self._sources[number]
            numbers = problems or range(len(self.functions))
            return {number: self._source(number) for number in numbers}

    def _source(self, number: int) -> Source:
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

    def _add(self, stage: Stage) -> None:
        count = len(stage.constants)
        while count and stage.constants[count - 1] is None:
            count -= 1
        self.constants[stage.number] = stage.constants[:count]
        steps = [self._step(step) for step in stage.steps]
        self.stages[stage.number] = (len(stage.constants) - count, steps, stage.returns)

    def _step(self, step: Step) -> tuple[Any, ...]:
        body = step.task.body
        assert isinstance(body, Python)
        function = self._number(body.fun, self.functions)
        if function == len(self.labels):
            self.labels.append(step.label)
        types = tuple(self._number(p.type, self.types) for p in step.task.outputs)
        return function, step.inputs, step.outputs, types, body.keywords

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
