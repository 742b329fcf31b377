"""Values that stay where they were made: those that no program needs to see."""

import math
from collections.abc import Iterator

from flowos.model import Array
from flowos.plan import Schedule, Stage

_NOTED_BYTES = 50_000_000


def kept_slots(schedule: Schedule) -> dict[int, frozenset[int]]:
    """By number of each Python stage, the slots of its outputs that only such stages read."""
    return dict(_kept(schedule))


def _kept(schedule: Schedule) -> Iterator[tuple[int, frozenset[int]]]:
    opened = set(schedule.outputs)
    for stage in schedule.stages:
        if not stage.in_python:
            opened.update(stage.inputs)
    for stage in schedule.stages:
        if stage.in_python:
            yield stage.number, frozenset(stage.outputs) - opened
        for flow in stage.flows:
            yield from _kept(flow)


def traffic_notes(schedule: Schedule) -> tuple[str, ...]:
    """That Ray may pay, where ports declare arrays so large that it does."""
    passed = sum(_passed_bytes(schedule))
    if passed < _NOTED_BYTES:
        return ()
    return (
        f"tasks pass {passed / 1e6:.0f} MB of arrays on in a run, by way of this program; "
        "workers='ray' leaves them on the nodes, and starts slowly: it may pay over many runs",
    )


def _passed_bytes(schedule: Schedule) -> Iterator[int]:
    """Of each array whose size its port declares, for each stage that reads it."""
    kept = kept_slots(schedule)
    for stage in schedule.stages:
        for slot in kept.get(stage.number, ()):
            readers = sum(slot in other.inputs for other in schedule.stages)
            yield readers * _declared_bytes(stage, slot)


def _declared_bytes(stage: Stage, slot: int) -> int:
    register = stage.returns[stage.outputs.index(slot)]
    step = next(step for step in reversed(stage.steps) if register in step.outputs)
    port = step.task.outputs[step.outputs.index(register)].type
    if not isinstance(port, Array) or port.dtype is None or port.shape is None:
        return 0
    bits = "".join(filter(str.isdigit, port.dtype)) or "8"
    extents = (extent if isinstance(extent, int) else 0 for extent in port.shape)
    return int(bits) // 8 * math.prod(extents)
