"""What a compiled flow is: value slots, stages of fused tasks, and the dependencies between stages.

A lane runs a stage in one go. A stage is a straight program over its own registers. A cond or a
loop whose tasks would be one stage is a step, which runs them within itself. Any other is a stage
that no lane runs: it has a schedule for each of its flows.
"""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from flowos._dataclasses import dataclass
from flowos.model import Needs, PortSpec, Python, Task


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a stage. inputs, outputs: registers. label: the task's unique name.

    inner: of a cond or loop that is run here, a stage for each of its flows, with its inputs and
    outputs. engine: of a task that could have another.
    """

    label: str
    task: Task
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    inner: tuple["Stage", ...] = ()
    engine: str = ""

    @property
    def fusable(self) -> bool:
        """Whether it may run as one with its neighbours."""
        return bool(self.inner) or self.task.fusable

    @property
    def needs(self) -> Needs:
        """Of a cond or loop, what its tasks need, which is the same for all."""
        found = [step.needs for stage in self.inner for step in stage.steps] if self.inner else ()
        return found[0] if found else self.task.needs

    @property
    def count_within(self) -> int:
        """How many steps are within this one."""
        return sum(1 + step.count_within for stage in self.inner for step in stage.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Steps that one lane runs one after the other.

    inputs: slots whose values fill the first registers, in order.
    constants: values of the other registers: constants, then empty.
    outputs: slots filled afterwards from the registers `returns`.
    n_predecessors: number of stages that must finish first.
    successors: stages that depend on this one.
    frees: slots that no later stage reads; refcounted: slots that other stages read too.
    flows: of a cond or loop whose tasks are stages; its own step is not run then.
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
    flows: tuple["Schedule", ...] = ()

    @property
    def in_python(self) -> bool:
        """Whether its steps run in Python, rather than as a command or as other stages."""
        first = self.steps[0]
        return isinstance(first.task.body, Python) or bool(first.inner)

    @property
    def label(self) -> str:
        first, last = self.steps[0].label, self.steps[-1].label
        return first if len(self.steps) == 1 else f"{first} .. {last}"

    def outer_step(self, number: int) -> int:
        """Which step a worker is at: its steps have the first numbers, then come those within them,
        step by step."""
        if number < len(self.steps):
            return number
        counts = (step.count_within for step in self.steps)
        return bisect_right([*accumulate(counts, initial=len(self.steps))], number) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Slots 0, 1, ... hold the inputs. `ready` stages have no predecessors.

    predecessors: number of those of each stage. readers: number of stages that read each refcounted
    slot. presets: outputs that no stage computes: constants that a flow used as a task passes
    through.
    """

    inputs: tuple[PortSpec, ...]
    outputs: tuple[int, ...]
    slots: int
    stages: tuple[Stage, ...]
    ready: tuple[int, ...]
    predecessors: Mapping[int, int]
    readers: Mapping[int, int]
    presets: tuple[tuple[int, object], ...] = ()

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """Those of its conds and loops too, by number: 0, 1, ..."""
        found = [stage for stage in self.stages if stage.flows]
        if not found:  # most flows have none
            return self.stages
        for stage in found:
            found += [inner for flow in stage.flows for inner in flow.stages]
        flat = [stage for stage in self.stages if not stage.flows]
        return tuple(sorted((*found, *flat), key=lambda stage: stage.number))
