"""A flow compiled once: value slots, stages of fused tasks, and the dependencies between stages.

Flows used as tasks are inlined. A lane runs a stage in one go. A stage is a straight program over
its own registers. A register is reused after the last read of its value, so that a long chain over
large arrays holds only the arrays that are still needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowos.model import Constant, Flow, Needs, Port, PortSpec, Task

Fuse = Literal["chains", "all", "none"]


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a stage. inputs, outputs: registers. label: the task's unique name."""

    label: str
    task: Task
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Steps that one lane runs one after the other.

    inputs: slots whose values fill the first registers, in order.
    constants: values of the other registers: constants, then empty.
    outputs: slots filled afterwards from the registers `returns`.
    n_predecessors: number of stages that must finish first.
    successors: stages that depend on this one.
    frees: slots that no later stage reads; refcounted: slots that other stages read too.
    """

    number: int
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    constants: tuple[object, ...]
    outputs: tuple[int, ...]
    returns: tuple[int, ...]
    needs: Needs
    n_predecessors: int
    successors: tuple[int, ...]
    frees: tuple[int, ...]
    refcounted: tuple[int, ...]

    @property
    def label(self) -> str:
        first, last = self.steps[0].label, self.steps[-1].label
        return first if len(self.steps) == 1 else f"{first} .. {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Slots 0, 1, ... hold the inputs. `ready` stages have no predecessors.

    readers: number of stages that read each refcounted slot. presets: outputs that no stage
    computes: constants that a flow used as a task passes through.
    """

    inputs: tuple[PortSpec, ...]
    outputs: tuple[int, ...]
    slots: int
    stages: tuple[Stage, ...]
    ready: tuple[int, ...]
    readers: Mapping[int, int]
    presets: tuple[tuple[int, object], ...] = ()


def compile_flow(flow: Flow, *, fuse: Fuse = "chains") -> Schedule:
    """Compile a flow.

    fuse: "chains" joins Python tasks that can only run one after the other; "all" joins all tasks
    of a pure Python flow, for executors that run one task at a time; "none" joins nothing. A task
    with retries, a time limit or a cache is never joined with others.
    """
    flat = _Flat(len(flow.inputs))
    slots = flat.open(flow, range(flat.inputs), "")
    outputs = tuple(slots[_key(p)] for p in flow.outputs)
    groups = _groups(flat.steps, fuse)
    return _assemble(flow, flat, groups, outputs)


_Key = Port | tuple[int, int]


def _key(port: Port) -> _Key:
    return port if port.call is None else (port.call.number, port.index)


class _Flat:
    """All tasks in an executable order, over numbered values."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.count = inputs
        self.steps: list[Step] = []
        self.constants: dict[int, object] = {}
        self.labels: dict[str, int] = {}

    def open(self, flow: Flow, inputs: Iterable[int], prefix: str) -> dict[_Key, int]:
        """Add the flow's tasks; return the slots of its ports."""
        slots: dict[_Key, int] = dict(zip(flow.inputs, inputs, strict=True))
        for call in flow.calls:
            task = call.task
            taken = tuple(self._slot(a, slots) for a in call.arguments)
            label = self._label(prefix + task.name)
            if isinstance(task.body, Flow):
                opened = self.open(task.body, taken, f"{label}/")
                given = tuple(opened[_key(p)] for p in task.body.outputs)
            else:
                given = tuple(self._new() for _ in task.outputs)
                self.steps.append(Step(label, task, taken, given))
            slots.update(((call.number, i), slot) for i, slot in enumerate(given))
        return slots

    def _slot(self, argument: Port | Constant, slots: Mapping[_Key, int]) -> int:
        if isinstance(argument, Port):
            return slots[_key(argument)]
        slot = self._new()
        self.constants[slot] = argument.value
        return slot

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def _label(self, name: str) -> str:
        count = self.labels[name] = self.labels.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def _groups(steps: Sequence[Step], fuse: Fuse) -> list[list[Step]]:
    """Steps of each stage; stages in an executable order."""
    if fuse == "all" and all(s.task.fusable for s in steps):
        return [list(steps)] if steps else []
    if fuse == "none":
        return [[s] for s in steps]
    before, after = _neighbours(steps)
    groups: list[list[Step]] = []
    at: dict[int, list[Step]] = {}
    for i, step in enumerate(steps):
        only = next(iter(before[i])) if len(before[i]) == 1 else None
        if only is not None and after[only] == {i} and _fusable(steps[only], step):
            group = at[only]
        else:
            group = []
            groups.append(group)
        group.append(step)
        at[i] = group
    return groups


def _neighbours(steps: Sequence[Step]) -> tuple[list[set[int]], list[set[int]]]:
    made = {slot: i for i, s in enumerate(steps) for slot in s.outputs}
    before = [{made[slot] for slot in s.inputs if slot in made} for s in steps]
    after: list[set[int]] = [set() for _ in steps]
    for i, sources in enumerate(before):
        for source in sources:
            after[source].add(i)
    return before, after


def _fusable(first: Step, then: Step) -> bool:
    return first.task.fusable and then.task.fusable and first.task.needs == then.task.needs


def _assemble(
    flow: Flow, flat: _Flat, groups: Sequence[Sequence[Step]], outputs: tuple[int, ...]
) -> Schedule:
    inputs = [_outside(group, flat.constants) for group in groups]
    maker = {slot: i for i, g in enumerate(groups) for s in g for slot in s.outputs}
    readers: dict[int, list[int]] = {}
    for i, slots in enumerate(inputs):
        for slot in slots:
            readers.setdefault(slot, []).append(i)
    read = readers.keys() | set(outputs)
    kept = set(range(flat.inputs)).union(outputs)
    successors: list[set[int]] = [set() for _ in groups]
    for slot, by in readers.items():
        if slot in maker:
            successors[maker[slot]].update(by)
    n_predecessors = [len({maker[slot] for slot in slots if slot in maker}) for slots in inputs]
    stages = tuple(
        _stage(
            i,
            group,
            flat.constants,
            inputs=inputs[i],
            outputs=tuple(slot for s in group for slot in s.outputs if slot in read),
            order=(n_predecessors[i], tuple(sorted(successors[i]))),
            ends=_ends(inputs[i], readers, kept),
        )
        for i, group in enumerate(groups)
    )
    return Schedule(
        inputs=tuple(p.spec for p in flow.inputs),
        outputs=outputs,
        slots=flat.count,
        stages=stages,
        ready=tuple(stage.number for stage in stages if not stage.n_predecessors),
        readers={s: len(r) for s, r in readers.items() if len(r) > 1 and s not in kept},
        presets=tuple((s, v) for s, v in flat.constants.items() if s in kept),
    )


def _outside(group: Sequence[Step], constants: Mapping[int, object]) -> tuple[int, ...]:
    """Slots that a stage reads and does not write, each once."""
    made = {slot for s in group for slot in s.outputs}
    read = dict.fromkeys(slot for s in group for slot in s.inputs)
    return tuple(slot for slot in read if slot not in made and slot not in constants)


def _ends(
    inputs: Iterable[int], readers: Mapping[int, Sequence[int]], kept: set[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    mine = [slot for slot in inputs if slot not in kept]
    return (
        tuple(slot for slot in mine if len(readers[slot]) == 1),
        tuple(slot for slot in mine if len(readers[slot]) > 1),
    )


def _stage(
    number: int,
    group: Sequence[Step],
    constants: Mapping[int, object],
    *,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    order: tuple[int, tuple[int, ...]],
    ends: tuple[tuple[int, ...], tuple[int, ...]],
) -> Stage:
    written = tuple(dict.fromkeys(slot for s in group for slot in s.inputs if slot in constants))
    steps, registers, size = _allocate(group, inputs + written, set(outputs) | set(written))
    empty = size - len(inputs) - len(written)
    return Stage(
        number=number,
        steps=steps,
        inputs=inputs,
        constants=tuple(constants[slot] for slot in written) + (None,) * empty,
        outputs=outputs,
        returns=tuple(registers[slot] for slot in outputs),
        needs=group[0].task.needs,
        n_predecessors=order[0],
        successors=order[1],
        frees=ends[0],
        refcounted=ends[1],
    )


def _allocate(
    group: Sequence[Step], first: Sequence[int], keep: set[int]
) -> tuple[tuple[Step, ...], dict[int, int], int]:
    """Maps slots to registers: `first` come first; a register is free after its last read."""
    last = {slot: i for i, s in enumerate(group) for slot in (*s.outputs, *s.inputs)}
    # A slot is written before it is read, so the later entry of `last` is its last read.
    registers = {slot: i for i, slot in enumerate(first)}
    size = len(registers)
    free: list[int] = []
    steps: list[Step] = []
    for i, step in enumerate(group):
        inputs = tuple(registers[slot] for slot in step.inputs)
        free.extend(
            registers[s] for s in dict.fromkeys(step.inputs) if last[s] == i and s not in keep
        )
        for slot in step.outputs:
            if free:
                registers[slot] = free.pop()
            else:
                registers[slot] = size
                size += 1
        outputs = tuple(registers[slot] for slot in step.outputs)
        free.extend(registers[s] for s in step.outputs if last[s] == i and s not in keep)
        steps.append(Step(step.label, step.task, inputs, outputs))
    return tuple(steps), registers, size
