"""Of tasks that could do with one thing or another: which of them they may get."""

from collections.abc import Callable

from flowos._dataclasses import replace
from flowos.model import Flow, Needs
from flowos.plan._placement import tasks_within
from flowos.plan._schedule import Schedule, Stage


def with_needs(schedule: Schedule, needs_of: Callable[[Stage], Needs]) -> Schedule:
    """The same, whose stages need what this says; stages of its conds and loops too."""

    def changed(stage: Stage) -> Stage:
        needs = needs_of(stage)
        if needs is stage.needs and not stage.flows:
            return stage
        flows = tuple(with_needs(flow, needs_of) for flow in stage.flows)
        same = needs is stage.needs and all(map(_is, flows, stage.flows))
        return stage if same else replace(stage, needs=needs, flows=flows)

    stages = tuple(map(changed, schedule.stages))
    same = all(map(_is, stages, schedule.stages))
    return schedule if same else replace(schedule, stages=stages)


def _is(one: object, other: object) -> bool:
    return one is other


def max_choices(flow: Flow) -> int:
    """Of the task that has most; 1 where each knows what it needs."""
    return max((len(task.needs.choices) for task in tasks_within(flow)), default=1)
