"""Files that are written into a flow: absolute paths of what exists, before anything runs."""

from dataclasses import replace
from typing import Any

from flowos.engine.local._files import present
from flowos.model import File, ValueRefused
from flowos.plan import Schedule, Stage


def with_present_files(schedule: Schedule) -> Schedule:
    """Files that are written into the flow, as absolute paths of what exists. ValueRefused."""
    return replace(schedule, units=tuple(map(_with_present_files, schedule.units)))


def _with_present_files(unit: Stage) -> Stage:
    rest: list[Any] = list(unit.rest)
    first = len(unit.takes)
    for step in unit.steps:
        for port, register in zip(step.task.inputs, step.takes, strict=True):
            if port.type == File and register >= first and rest[register - first] is not None:
                found = present(rest[register - first])
                if isinstance(found, str):
                    raise ValueRefused(f"task {step.label!r}, input {port.name!r}: {found}")
                rest[register - first] = found
    return replace(unit, rest=tuple(rest))
