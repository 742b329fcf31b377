"""What the tasks of a slice need, against what is to be had."""

from typing import TYPE_CHECKING

from flowos.engine._hold_end import HoldEnd
from flowos.engine._ledger import Resources, lacking_devices
from flowos.engine._node import Node
from flowos.model import Needs, SliceRefused, counted, with_choices
from flowos.plan import Schedule, Stage, lacking_time, with_needs

if TYPE_CHECKING:
    from flowos.engine.ray._ray_cluster import RayCluster


def max_devices(schedule: Schedule) -> dict[str, int]:
    """Of each name what its largest task needs; a choice that has none may do without."""
    most: dict[str, int] = {}
    asking = [s.needs for s in schedule.all_stages if s.needs.devices or s.needs.otherwise]
    for needs in (each for asked in asking for each in asked.choices):
        for name, count in needs.device_counts:
            most[name] = max(count, most.get(name, 0))
    return most


def met_needs(
    schedule: Schedule,
    own: Resources,
    node: Node,
    on: "tuple[RayCluster | None, HoldEnd]",
    why_no_device: str,
) -> Schedule:
    """The same, which needs of all that would do only what is to be had, in Ray the best of it.

    A task that could never start is refused before any other has run.
    """
    ray, left_seconds = on[0], on[1].left_seconds()
    known: dict[tuple[int, bool], Needs] = {}  # most tasks need one and the same

    def met(stage: Stage) -> Needs:
        key = id(stage.needs), stage.in_python
        if key not in known:
            known[key] = met_anew(stage)
        return known[key]

    def met_anew(stage: Stage) -> Needs:
        choices = stage.needs.choices
        if ray is not None and stage.in_python:
            choices = tuple(filter(ray.has, choices)) or choices
        whys = [_unmet(each, own, node) or lacking_time(each, left_seconds) for each in choices]
        able = [each for each, why in zip(choices, whys, strict=True) if not why]
        if not able:
            complaint = ", or ".join(whys) + f": {why_no_device}" * bool(why_no_device)
            raise SliceRefused(f"slice: task {stage.steps[0].label!r} needs {complaint}")
        rest = able[1:] if ray is None else ()
        return stage.needs if len(choices) == 1 else with_choices(able[0], rest)

    chosen = with_needs(schedule, met)
    if ray is not None:
        ray.refuse_unmet(chosen)
    return chosen


def _unmet(needs: Needs, own: Resources, node: Node) -> str:
    """What is not to be had of the slice or its node; "" if all is."""
    cores = len(own.cpus)
    if (needs.nodes or 1) == 1 and needs.cores * needs.ranks > cores:
        ranks = f" for each of {needs.ranks} ranks" if needs.ranks > 1 else ""
        return f"{counted(needs.cores, 'core')}{ranks}, the slice has {cores}"
    if needs.memory_bytes > own.memory_bytes:
        return f"{counted(needs.memory_bytes, 'byte')}, the node has {own.memory_bytes}"
    missing = lacking_devices(needs.generic_resources, own.devices)
    if not missing:
        return ""
    if missing == "gpu":
        return f"{counted(needs.gpus, 'GPU')}, the node has {own.gpus}"
    from flowos.drivers._allocators import nearest  # loads what most slices never need

    has = {name: len(numbers) for name, numbers in own.devices}
    near = "" if missing in has else nearest(missing, tuple(has))
    asked, there = dict(needs.generic_resources)[missing], has.get(missing, 0)
    return f"{asked} {missing}, node {node.name} has {there}" + f"; {near}" * bool(near)
