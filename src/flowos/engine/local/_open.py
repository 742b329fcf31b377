"""Opening a slice of this node for a flow."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from flowos.engine._environment import make_ready
from flowos.engine.local._commands import CommandLane, Folders
from flowos.engine.local._crew import Crew
from flowos.engine.local._files import with_present_files
from flowos.engine.local._kernel import Halt
from flowos.engine.local._lanes import Lanes
from flowos.engine.local._node import gpu_count, memory_bytes, usable_cores
from flowos.engine.local._room import Room
from flowos.engine.local._runs import Emit, Place
from flowos.engine.local._slice import Slice
from flowos.engine.local._threads import ThreadLanes
from flowos.model import BARE, Environment, Flow, SliceRefused
from flowos.plan import Fuse, Schedule, Unit, compile_flow

Workers = Literal["thread", "process", "inline"]


def open_slice(
    flow: Flow,
    *,
    workers: Workers = "thread",
    cores: int | None = None,
    folder: Path | None = None,
    env: Environment = BARE,
    emit: Emit | None = None,
    fuse: Fuse | None = None,
) -> Slice:
    """Compile the flow and hold the places that it runs on.

    cores: how many to hold, by default all that the cpuset and cgroup leave us. folder: where the
    files that commands write are kept; without it they go when the slice is freed. env: made ready
    here, and undone when the slice is freed. SliceRefused, EnvironmentRefused.
    """
    have = usable_cores()
    held = have if cores is None else cores
    if not 1 <= held <= have:
        raise SliceRefused(f"slice: {held} cores asked for, this node has {have} for us")
    fuse = fuse or ("all" if workers == "inline" else "chains")
    schedule = with_present_files(compile_flow(flow, fuse=fuse))
    room = (held, memory_bytes(), gpu_count())
    for unit in schedule.units:
        _refuse_unmet(unit, *room)
    ready = make_ready(env)
    folders = Folders(folder)
    places = 1 if workers == "inline" else held

    def hire() -> Crew:
        halts = [Halt() for _ in range(places)]
        lanes = _LANES[workers](schedule, halts)
        pairs = zip(lanes.lanes, halts, strict=True)
        return Crew(
            schedule,
            lanes,
            [Place(lane, CommandLane(folders, ready.env, halt), halt) for lane, halt in pairs],
            Room(*room),
            helpers=0 if workers == "inline" else places,
            emit=emit,
        )

    def clear() -> None:
        folders.clear()
        ready.close()

    try:
        return Slice(flow, hire, clear, notes=ready.notes)
    except BaseException:
        clear()
        raise


def _threads(schedule: Schedule, halts: list[Halt]) -> Lanes:
    return ThreadLanes(schedule, halts)


def _processes(schedule: Schedule, halts: list[Halt]) -> Lanes:
    from flowos.engine.local._process import ProcessLanes  # loads what threads never need

    return ProcessLanes(schedule, len(halts), halts=halts)


_LANES: dict[Workers, Callable[[Schedule, list[Halt]], Lanes]] = {
    "thread": _threads,
    "inline": _threads,
    "process": _processes,
}


def _refuse_unmet(unit: Unit, cores: int, memory: int, gpus: int) -> None:
    """A task that could never start is refused before any other has run."""
    needs = unit.needs
    where = f"slice: task {unit.steps[0].label!r} needs"
    if needs.cores * needs.ranks > cores:
        ranks = f" for each of {needs.ranks} ranks" if needs.ranks > 1 else ""
        raise SliceRefused(f"{where} {needs.cores} cores{ranks}, the slice has {cores}")
    if needs.memory_bytes > memory:
        raise SliceRefused(f"{where} {needs.memory_bytes} bytes, the node has {memory}")
    if needs.gpus > gpus:
        raise SliceRefused(f"{where} {needs.gpus} GPUs, the node has {gpus}")
    for device in needs.devices:
        if not Path(device).exists():
            raise SliceRefused(f"{where} {device}, which the node lacks")
