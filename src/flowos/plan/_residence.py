"""Which arrays stay in the memory of an engine, from one of its tasks to the next.

An output that only tasks of its engine read stays there. One that others read too is copied by a
step of its own, which those read. `across` stages an output stays or is copied as a whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from flowos._dataclasses import dataclass, field, replace
from flowos.model import NativeCode, PortSpec, Python, Task, any_, on_host, shape_of
from flowos.plan._schedule import Schedule, Stage, Step

_Readers = set[str]
"""Engines of the tasks that read a value; "" for what reads it on the host."""


def with_resident_arrays(schedule: Schedule, *, across: bool) -> Schedule:
    """The same, where arrays stay in the memory of engines.

    across: also from one stage to another, which have to run in one process.
    """
    if not any(_may_have_engine(stage.steps) for stage in schedule.all_stages):
        return schedule
    staying = _staying_slots(schedule) if across else {}
    stages = tuple(
        replace(
            _resident(stage, staying),
            flows=tuple(with_resident_arrays(flow, across=across) for flow in stage.flows),
        )
        for stage in schedule.stages
    )
    return replace(schedule, stages=stages)


def _may_have_engine(steps: Sequence[Step]) -> bool:
    """A quick answer, as most flows have none."""
    return any(step.inner or type(step.task.body) is NativeCode for step in steps)


def _has_engine(steps: Sequence[Step]) -> bool:
    return any(_engine(s) or any(_has_engine(i.steps) for i in s.inner) for s in steps)


def _engine(step: Step) -> str:
    """Of a task whose arrays can stay where they were made; else ""."""
    body = step.task.body
    return body.engine if isinstance(body, NativeCode) and hasattr(body.fun, "leaving") else ""


def _staying_slots(schedule: Schedule) -> dict[int, str]:
    """The slots whose values only tasks of the engine read that made them, with that engine."""
    readers: dict[int, _Readers] = {slot: {""} for slot in schedule.outputs}
    for stage in schedule.stages:
        for slot, engines in _readers_of_inputs(stage).items():
            readers.setdefault(slot, set()).update(engines)
    made = {
        slot: _engine(next(s for s in reversed(stage.steps) if register in s.outputs))
        for stage in schedule.stages
        for slot, register in zip(stage.outputs, stage.returns, strict=True)
    }
    return {slot: engine for slot, engine in made.items() if engine and readers[slot] == {engine}}


def _readers_of_inputs(stage: Stage) -> dict[int, _Readers]:
    if not stage.in_python:
        return {slot: {""} for slot in stage.inputs}
    left = _readers(stage, {register: {""} for register in stage.returns})[1]
    return {slot: left.get(register, set()) for register, slot in enumerate(stage.inputs)}


def _readers(
    stage: Stage, returned: Mapping[int, _Readers]
) -> tuple[list[list[_Readers]], dict[int, _Readers]]:
    """Of each output of each step; of what is in the registers before the first one."""
    registers = {register: set(engines) for register, engines in returned.items()}
    found: list[list[_Readers]] = []
    for step in reversed(stage.steps):
        found.append([registers.pop(register, set()) for register in step.outputs])
        for register in step.inputs:
            registers.setdefault(register, set()).add(_engine(step))
    return found[::-1], registers


def _resident(stage: Stage, staying: Mapping[int, str]) -> Stage:
    """staying: slots whose values stay, with the engine."""
    if not _has_engine(stage.steps):
        return stage
    returned: dict[int, _Readers] = {}
    for slot, register in zip(stage.outputs, stage.returns, strict=True):
        returned.setdefault(register, set()).add(staying.get(slot, ""))
    made = _Made(len(stage.inputs) + len(stage.constants))
    for step, readers in zip(stage.steps, _readers(stage, returned)[0], strict=True):
        made.add(step, readers)
    ends = zip(stage.outputs, stage.returns, strict=True)
    return replace(
        stage,
        steps=tuple(made.steps),
        constants=(*stage.constants, *(None,) * made.copies),
        returns=tuple(r if slot in staying else made.on_host.get(r, r) for slot, r in ends),
    )


@dataclass(slots=True)
class _Made:
    """The steps of a stage. size: of its registers. on_host: where the copy of a register is.

    makers: engines of what stays in a register.
    """

    size: int
    copies: int = 0
    steps: list[Step] = field(default_factory=list)
    on_host: dict[int, int] = field(default_factory=dict)
    makers: dict[int, str] = field(default_factory=dict)

    def add(self, step: Step, readers: Sequence[_Readers]) -> None:
        engine = _engine(step)
        inputs = tuple(
            r if engine and self.makers.get(r) == engine else self.on_host.get(r, r)
            for r in step.inputs
        )
        inner = tuple(_resident(stage, {}) for stage in step.inner)
        if (inputs, inner) != (step.inputs, step.inner):
            step = replace(step, inputs=inputs, inner=inner)
        stays = frozenset(_staying(step.task, engine, readers))
        for number, register in enumerate(step.outputs):
            self.on_host.pop(register, None)
            self.makers[register] = engine if number in stays else ""
        self.steps.append(_leaving(step, stays) if stays else step)
        for number in sorted(stays):
            if readers[number] != {engine}:
                self._copy(step, number)

    def _copy(self, step: Step, number: int) -> None:
        register, at = step.outputs[number], self.size + self.copies
        self.copies += 1
        self.on_host[register] = at
        port = step.task.outputs[number]
        task = Task(
            name="copy",
            inputs=(PortSpec(port.name, any_),),
            outputs=(port,),
            body=Python(on_host),
            needs=step.task.needs,
        )
        self.steps.append(Step(f"{step.label} to the host", task, (register,), (at,)))


def _staying(task: Task, engine: str, readers: Sequence[Collection[str]]) -> Iterator[int]:
    """Numbers of the outputs that another task of the engine reads."""
    for number, (port, by) in enumerate(zip(task.outputs, readers, strict=True)):
        if engine and engine in by and shape_of(port.type):
            yield number


def _leaving(step: Step, stays: frozenset[int]) -> Step:
    """The step, whose outputs with these numbers stay; the engine has them as they should be."""
    task, body = step.task, step.task.body
    assert isinstance(body, NativeCode)
    outputs = tuple(
        PortSpec(port.name, any_) if number in stays else port
        for number, port in enumerate(task.outputs)
    )
    body = replace(body, fun=body.fun.leaving(stays))  # type: ignore[attr-defined]
    return replace(step, task=replace(task, outputs=outputs, body=body))
