"""Every task of a run with its engine, and every copy between memories, before it runs.

The stages are walked as they will run: an array is where the task that made it left it, see
`_residence`. Shapes are those of the run's values, and what named extents say of others.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from numbers import Integral
from typing import Any

from flowos._dataclasses import dataclass, field, replace
from flowos.model import (
    HOST,
    NATIVE_DTYPES,
    Array,
    EnginePlan,
    NativeCode,
    PlannedCopy,
    PlannedTask,
    PortSpec,
    Python,
    dtype_of,
    engine_of,
    on_host,
)
from flowos.plan._schedule import Stage, Step

_BITS = 8


@dataclass(slots=True)
class _Value:
    """What is known of one. name: of what gives it. number: of an integer. places: where it is."""

    name: str = ""
    shape: tuple[int, ...] | None = None
    number: int | None = None
    places: set[str] = field(default_factory=lambda: {HOST})


_Registers = dict[int, _Value]


def whole_plan(
    sites: EnginePlan,
    stages: Sequence[Stage],
    values: Sequence[object],
    numbers: Mapping[str, int],
    homes: Mapping[str, str],
    missing: Mapping[str, str],
) -> EnginePlan:
    """All tasks of these stages, in the order in which they may run, and all copies.

    sites: of the tasks with several engines; what it says of bytes stands in where shapes do not.
    numbers: of those tasks in it, by label. homes: where engines have their arrays, host by
    default; missing: why that is not known of others.
    """
    walk = _Walk(sites, numbers, homes, missing)
    slots = dict(enumerate(map(walk.seen, values)))
    for stage in stages:
        walk.stage(stage, slots)
    return replace(
        sites, tasks=tuple(walk.tasks), copies=tuple(walk.copies), unknown=tuple(walk.unknown)
    )


class _Walk:
    def __init__(
        self,
        sites: EnginePlan,
        numbers: Mapping[str, int],
        homes: Mapping[str, str],
        missing: Mapping[str, str],
    ) -> None:
        self._sites = {label: sites.tasks[number] for label, number in numbers.items()}
        labels = {sites.tasks[number].task: label for label, number in numbers.items()}
        self._bytes = dict(_bytes_by_label(sites.copies, labels))
        self._homes, self._missing = homes, missing
        self._seen: dict[int, _Value] = {}
        self.tasks: list[PlannedTask] = []
        self.copies: list[PlannedCopy] = []
        self.unknown: list[str] = []

    def seen(self, value: object) -> _Value:
        """Equal for one object: a call copies it once."""
        if id(value) not in self._seen:
            number = int(value) if isinstance(value, Integral) else None
            self._seen[id(value)] = _Value(shape=_shape(value), number=number)
        return self._seen[id(value)]

    def stage(self, stage: Stage, slots: _Registers) -> None:
        """slots: its inputs, and then its outputs too."""
        given = [slots.get(slot, _Value()) for slot in stage.inputs]
        registers = dict(enumerate((*given, *map(self.seen, stage.constants))))
        for step in stage.steps:
            self._step(step, registers)
            self._within(step, [*step.inner, *(s for flow in stage.flows for s in flow.stages)])
        for slot, register in zip(stage.outputs, stage.returns, strict=True):
            slots[slot] = registers[register]

    def _within(self, step: Step, stages: Sequence[Stage]) -> None:
        """Tasks of a cond or loop."""
        away = False
        for each in _steps(stages):
            self.tasks.append(self._planned(each))
            engine = self.tasks[-1].engine
            away = away or engine in self._missing or self._homes.get(engine, HOST) != HOST
        if away:
            self.unknown.append(f"{step.label}, as the run says how often its tasks run")

    def _planned(self, step: Step) -> PlannedTask:
        site = self._sites.get(step.label)
        if site is not None:
            return replace(site, task=step.label)
        engine = engine_of(step.task.body)
        return PlannedTask(task=step.label, engine=engine, seconds=None, fixed=True)

    def _step(self, step: Step, registers: _Registers) -> None:
        taken = [registers.get(register, _Value()) for register in step.inputs]
        if getattr(step.task.body, "fun", None) is on_host:
            self._to_host(step.task.outputs[0], taken[0])
            registers[step.outputs[0]] = replace(taken[0], places={HOST})
            return
        planned = self._planned(step)
        self.tasks.append(planned)
        home = self._homes.get(planned.engine, HOST)
        if planned.engine in self._missing:
            self.unknown.append(f"{step.label}, as {self._missing[planned.engine]}")
        inputs, outputs, extents = _ports(step)
        sizes = dict(_sizes(extents, taken))
        copied: list[_Value] = []
        for port, value in zip(inputs, taken, strict=False):  # a site is given its engines, too
            if isinstance(port.type, Array) and not any(value is each for each in copied):
                copied.append(value)
                self._take(step.label, home, port, value, sizes)
        for register in step.outputs:
            registers[register] = _Value()
        for number, (port, register) in enumerate(zip(outputs, step.outputs, strict=False)):
            shape = _resolved(port, sizes)
            made = _Value(f"{step.label}.{port.name}", shape, places={home})
            registers[register] = made
            if number not in _stays(step):
                self._to_host(port, made)
                made.places = {HOST}

    def _take(
        self, label: str, home: str, port: PortSpec, value: _Value, sizes: Mapping[str, int]
    ) -> None:
        if home in value.places:
            return
        if HOST not in value.places:
            self._to_host(port, value)
        if home != HOST:
            shape = _resolved(port, sizes) if value.shape is None else value.shape
            self._copy(f"{label}.{port.name}", _bytes(port, shape), HOST, home)

    def _to_host(self, port: PortSpec, value: _Value) -> None:
        """Copied the first time that it is read there."""
        if HOST not in value.places:
            (home,) = value.places
            self._copy(value.name, _bytes(port, value.shape), home, HOST)
            value.places.add(HOST)

    def _copy(self, name: str, size: int | None, source: str, target: str) -> None:
        size = self._bytes.get(name) if size is None else size
        if size != 0:
            self.copies.append(PlannedCopy(value=name, bytes=size, source=source, target=target))


def _bytes_by_label(
    copies: Sequence[PlannedCopy], labels: Mapping[str, str]
) -> Iterator[tuple[str, int | None]]:
    """By the labels that the steps have, not those of sites alone."""
    for copy in copies:
        task, port = copy.value.rsplit(".", 1)
        yield f"{labels.get(task, task)}.{port}", copy.bytes


def _steps(stages: Sequence[Stage]) -> Iterator[Step]:
    """In any depth; copies are none of a person's."""
    for stage in stages:
        for step in stage.steps:
            if getattr(step.task.body, "fun", None) is not on_host:
                yield step
            yield from _steps(step.inner)
        for flow in stage.flows:
            yield from _steps(flow.stages)


def _stays(step: Step) -> Collection[int]:
    """Numbers of the outputs that are left where they are made."""
    body = step.task.body
    return getattr(body.fun, "stays", ()) if isinstance(body, NativeCode) else ()


def _ports(step: Step) -> tuple[Sequence[PortSpec], Sequence[PortSpec], Any]:
    """As they were before arrays stayed, and before a value said the engines."""
    task = step.task
    fun = task.body.fun if isinstance(task.body, NativeCode) else None
    known: Any = getattr(fun, "task", getattr(fun, "ports", task))
    return known.inputs, known.outputs, known.extents if isinstance(task.body, Python) else ()


def _shape(value: Any) -> tuple[int, ...] | None:
    """None of what has none, whatever it says of itself."""
    try:
        return tuple(map(int, value.shape))
    except Exception:  # of a property
        return None


def _sizes(extents: Any, taken: Sequence[_Value]) -> Iterator[tuple[str, int]]:
    """Of the named extents that inputs say."""
    for name, inputs, _ in extents:
        for _, number, axis, _ in inputs:
            value = taken[number]
            if axis is None:
                size = value.number
            else:
                size = value.shape[axis] if value.shape and axis < len(value.shape) else None
            if size is not None:
                yield name, size


def _resolved(port: PortSpec, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape of a value of this port, if its extents are known; () of a scalar."""
    if not isinstance(port.type, Array):
        return () if dtype_of(port.type) in NATIVE_DTYPES else None
    if port.type.shape is None:
        return None
    found = [sizes.get(e) if isinstance(e, str) else e for e in port.type.shape]
    known = tuple(size for size in found if size is not None)
    return known if len(known) == len(found) else None


def _bytes(port: PortSpec, shape: tuple[int, ...] | None) -> int | None:
    """Of a port that an engine has, whose dtype is one with its bits in the name, or bool."""
    bits = "".join(filter(str.isdigit, dtype_of(port.type)))
    return None if shape is None else int(bits or _BITS) // _BITS * prod(shape)
