"""A flow compiled once into a schedule.

Flows used as tasks are inlined. A register is reused after the last read of its value, so that a
long chain over large arrays holds only the arrays that are still needed.

Lists stand inside `tuple()`: for one or two items a generator takes half as long again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from flowos._dataclasses import dataclass, field
from flowos.model import Cond, Constant, Flow, Loop, Needs, Port, Task, has_files
from flowos.plan._schedule import Schedule, Stage, Step

Fuse = Literal["chains", "all", "none"]


def compile_flow(flow: Flow, *, fuse: Fuse = "chains") -> Schedule:
    """Compile a flow.

    fuse: "chains" joins Python tasks that can only run one after the other; "all" joins all tasks
    of a pure Python flow, for executors that run one task at a time; "none" joins nothing. A task
    with retries, a time limit or a cache is never joined with others.
    """
    return _Part(flow, "", _Compiler(fuse)).schedule(keep=range(len(flow.inputs)))


@dataclass(slots=True)
class _Compiler:
    """What the parts of a flow share. labels: how often each was used. stages: numbers in use."""

    fuse: Fuse
    labels: dict[str, int] = field(default_factory=dict)
    stages: int = 0

    def label(self, name: str) -> str:
        count = self.labels[name] = self.labels.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


_Key = Port | tuple[int, int]


def _key(port: Port) -> _Key:
    return port if port.call is None else (port.call.number, port.index)


class _Part:
    """All tasks of a flow in an executable order, over numbered values."""

    def __init__(self, flow: Flow, prefix: str, compiler: _Compiler) -> None:
        self.flow = flow
        self.compiler = compiler
        self.inputs = self.count = len(flow.inputs)
        self.steps: list[Step] = []
        self.constants: dict[int, object] = {}
        self.flows: dict[str, tuple[Schedule, ...]] = {}
        slots = self._open(flow, range(self.inputs), prefix)
        self.outputs = tuple(slots[_key(p)] for p in flow.outputs)

    def schedule(self, keep: Iterable[int] = ()) -> Schedule:
        """keep: inputs that stay in their slots until the end."""
        groups = _groups(self.steps, self.compiler.fuse)
        first = self.compiler.stages
        self.compiler.stages += len(groups)
        return _assemble(self, groups, first, {*keep, *self.outputs})

    def as_stage(self) -> Stage:
        """Of the flow's inputs and outputs, to be run within a step."""
        return _stage(
            0,
            self.steps,
            self,
            read=(tuple(range(self.inputs)), _read(self.steps, self.constants, self.outputs)[1]),
            outputs=self.outputs,
            order=(0, ()),
            ends=((), ()),
        )

    def _open(self, flow: Flow, inputs: Iterable[int], prefix: str) -> dict[_Key, int]:
        """Add the flow's tasks; return the slots of its ports."""
        slots: dict[_Key, int] = dict(zip(flow.inputs, inputs, strict=True))
        for call in flow.calls:
            task = call.task
            taken = tuple([self._slot(a, slots) for a in call.arguments])
            label = self.compiler.label(prefix + task.name)
            if isinstance(task.body, Flow):
                opened = self._open(task.body, taken, f"{label}/")
                given = tuple(opened[_key(p)] for p in task.body.outputs)
            else:
                given = tuple([self._new() for _ in task.outputs])
                self.steps.append(Step(label, task, taken, given, self._inner(label, task)))
            for i, slot in enumerate(given):
                slots[call.number, i] = slot
        return slots

    def _inner(self, label: str, task: Task) -> tuple[Stage, ...]:
        """Stages of a cond or loop that is a step; else its schedules are put into `flows`."""
        if not isinstance(task.body, (Cond, Loop)):
            return ()
        words = ("[true]", "[false]") if isinstance(task.body, Cond) else ("",)
        parts = [
            _Part(flow, f"{label}{word}/", self.compiler)
            for flow, word in zip(task.body.flows, words, strict=True)
        ]
        if _are_one_step(parts, self.compiler.fuse):
            return tuple(part.as_stage() for part in parts)
        self.flows[label] = tuple(part.schedule() for part in parts)
        return ()

    def _slot(self, argument: Port | Constant, slots: Mapping[_Key, int]) -> int:
        if isinstance(argument, Port):
            return slots[_key(argument)]
        slot = self._new()
        self.constants[slot] = argument.value
        return slot

    def _new(self) -> int:
        self.count += 1
        return self.count - 1


def _are_one_step(parts: Sequence[_Part], fuse: Fuse) -> bool:
    """Whether what a cond or loop runs is Python, one task after the other, with equal needs."""
    steps = [step for part in parts for step in part.steps]
    if fuse == "none":  # each task is a stage by itself: only what has none may be a step
        return all(step.inner for step in steps)
    return (
        all(step.fusable for step in steps)
        and len({step.needs for step in steps}) <= 1
        and all(len(_groups(part.steps, fuse)) <= 1 for part in parts)
        and not any(_takes_file_of(part) for part in parts)
    )


def _takes_file_of(part: _Part) -> bool:
    """Whether a file is written into the flow: it has another name in an image."""
    return any(
        has_files(port.type) and slot in part.constants
        for step in part.steps
        for port, slot in zip(step.task.inputs, step.inputs, strict=True)
    )


def _groups(steps: Sequence[Step], fuse: Fuse) -> list[list[Step]]:
    """Steps of each stage; stages in an executable order."""
    if fuse == "all" and all(s.fusable for s in steps):
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
    needs, others = first.needs, then.needs
    same = needs is others or needs == others  # to compare them is slow
    return same and first.fusable and then.fusable


def _assemble(
    part: _Part, groups: Sequence[Sequence[Step]], first: int, kept: set[int]
) -> Schedule:
    read_by = [_read(group, part.constants) for group in groups]
    inputs = [values for values, _ in read_by]
    maker = {slot: i for i, g in enumerate(groups) for s in g for slot in s.outputs}
    readers: dict[int, list[int]] = {}
    for i, slots in enumerate(inputs):
        for slot in slots:
            readers.setdefault(slot, []).append(i)
    read = readers.keys() | set(part.outputs)
    successors: list[set[int]] = [set() for _ in groups]
    for slot, by in readers.items():
        if slot in maker:
            successors[maker[slot]].update(by)
    n_predecessors = [len({maker[slot] for slot in slots if slot in maker}) for slots in inputs]
    stages = tuple(
        _stage(
            first + i,
            group,
            part,
            read=read_by[i],
            outputs=tuple([slot for s in group for slot in s.outputs if slot in read]),
            order=(n_predecessors[i], tuple([first + number for number in sorted(successors[i])])),
            ends=_ends(inputs[i], readers, kept),
        )
        for i, group in enumerate(groups)
    )
    return Schedule(
        inputs=tuple(p.spec for p in part.flow.inputs),
        outputs=part.outputs,
        slots=part.count,
        stages=stages,
        ready=tuple(stage.number for stage in stages if not stage.n_predecessors),
        predecessors={stage.number: stage.n_predecessors for stage in stages},
        readers={s: len(r) for s, r in readers.items() if len(r) > 1 and s not in kept},
        presets=tuple((s, v) for s, v in part.constants.items() if s in kept),
    )


def _read(
    group: Sequence[Step], constants: Mapping[int, object], outputs: Sequence[int] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Slots that a stage reads and does not write, each once: values, and constants.

    outputs: slots that are read in the end.
    """
    made = {slot for s in group for slot in s.outputs}
    read = dict.fromkeys([*(slot for s in group for slot in s.inputs), *outputs])
    outside = [slot for slot in read if slot not in made]
    return (
        tuple([slot for slot in outside if slot not in constants]),
        tuple([slot for slot in outside if slot in constants]),
    )


def _ends(
    inputs: Iterable[int], readers: Mapping[int, Sequence[int]], kept: set[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    mine = [slot for slot in inputs if slot not in kept]
    return (
        tuple([slot for slot in mine if len(readers[slot]) == 1]),
        tuple([slot for slot in mine if len(readers[slot]) > 1]),
    )


def _stage(
    number: int,
    group: Sequence[Step],
    part: _Part,
    *,
    read: tuple[tuple[int, ...], tuple[int, ...]],
    outputs: tuple[int, ...],
    order: tuple[int, tuple[int, ...]],
    ends: tuple[tuple[int, ...], tuple[int, ...]],
) -> Stage:
    inputs, written = read
    steps, registers, size = _allocate(group, inputs + written, {*outputs, *written})
    empty = size - len(inputs) - len(written)
    return Stage(
        number=number,
        steps=steps,
        inputs=inputs,
        constants=tuple([part.constants[slot] for slot in written]) + (None,) * empty,
        outputs=outputs,
        returns=tuple([registers[slot] for slot in outputs]),
        needs=group[0].needs if group else Needs(),
        n_predecessors=order[0],
        successors=order[1],
        frees=ends[0],
        refcounted=ends[1],
        flows=part.flows.get(group[0].label, ()) if group else (),
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
        inputs = tuple([registers[slot] for slot in step.inputs])
        read = dict.fromkeys(step.inputs)
        free += [registers[slot] for slot in read if last[slot] == i and slot not in keep]
        for slot in step.outputs:
            if free:
                registers[slot] = free.pop()
            else:
                registers[slot] = size
                size += 1
        outputs = tuple([registers[slot] for slot in step.outputs])
        free += [registers[slot] for slot in step.outputs if last[slot] == i and slot not in keep]
        steps.append(Step(step.label, step.task, inputs, outputs, step.inner))
    return tuple(steps), registers, size
