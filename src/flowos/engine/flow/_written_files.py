"""Files that are written into a flow: absolute paths of what exists, before anything runs."""

from typing import Any

from flowos._dataclasses import replace
from flowos.engine.flow._files import present
from flowos.model import File, ValueRefused
from flowos.plan import Schedule, Stage


def with_present_files(schedule: Schedule) -> Schedule:
    """Files that are written into the flow, as absolute paths of what exists. ValueRefused."""
    return replace(schedule, stages=tuple(map(_with_present_files, schedule.stages)))


def _with_present_files(stage: Stage) -> Stage:
    constants: list[Any] = list(stage.constants)
    first, same = len(stage.inputs), not stage.flows
    for step in stage.steps:
        for port, register in zip(step.task.inputs, step.inputs, strict=True):
            if port.type == File and register >= first and constants[register - first] is not None:
                found = present(constants[register - first])
                if isinstance(found, str):
                    raise ValueRefused(f"task {step.label!r}, input {port.name!r}: {found}")
                constants[register - first], same = found, False
    if same:
        return stage
    flows = tuple(map(with_present_files, stage.flows))
    return replace(stage, constants=tuple(constants), flows=flows)
