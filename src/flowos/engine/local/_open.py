"""Opening a slice of this node for a flow."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from flowos.drivers import path_inside
from flowos.engine.environments._devices import gpu_devices
from flowos.engine.environments._ready import make_ready
from flowos.engine.local._commands import CommandLane, Folders
from flowos.engine.local._core_share import node_ledger
from flowos.engine.local._executor import Executor
from flowos.engine.local._inside import Surroundings
from flowos.engine.local._kernel import Halt
from flowos.engine.local._lanes import Lanes
from flowos.engine.local._ledger import ResourceLedger
from flowos.engine.local._node import gpu_count, memory_bytes, usable_cores, usable_cpus
from flowos.engine.local._runs import Emit, ExecutionSlot
from flowos.engine.local._slice import Slice
from flowos.engine.local._threads import ThreadLanes
from flowos.engine.local._written_files import with_present_files
from flowos.model import BARE, Environment, Flow, Python, SliceRefused
from flowos.plan import Fuse, Schedule, Stage, compile_flow

Workers = Literal["thread", "process", "inline"]


def open_slice(
    flow: Flow,
    *,
    workers: Workers | None = None,
    cores: int | None = None,
    folder: Path | None = None,
    env: Environment = BARE,
    emit: Emit | None = None,
    fuse: Fuse | None = None,
) -> Slice:
    """Compile the flow and hold the places that it runs on.

    workers: threads by default; in an image processes, as no thread can enter one. cores: how many
    to hold, by default all that the cpuset and cgroup leave us. folder: where the files that
    commands write are kept; without it they go when the slice is freed. env: made ready here, and
    undone when the slice is freed. SliceRefused, EnvironmentRefused.
    """
    held = _held(cores)
    fuse = fuse or ("all" if workers == "inline" else "chains")
    schedule = with_present_files(compile_flow(flow, fuse=fuse))
    room = _room_for(schedule, held)
    kind = _workers(schedule, workers, env)
    ready = make_ready(_with_folder(_with_gpus(schedule, env), folder))
    around, folders = _around(env, ready.env), Folders(folder)
    places = 1 if workers == "inline" else held

    def hire() -> Executor:
        halts = [Halt() for _ in range(places)]
        lanes = _LANES[kind](schedule, halts, around)
        pairs = zip(lanes.lanes, halts, strict=True)
        return Executor(
            schedule,
            lanes,
            [ExecutionSlot(lane, CommandLane(folders, around, halt), halt) for lane, halt in pairs],
            (ResourceLedger(range(held), *room[1:]), node_ledger()),
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


def _around(asked: Environment, ready: Environment) -> Surroundings:
    return Surroundings(env=ready, named=asked.image.source.name if asked.image else "")


def _held(cores: int | None) -> int:
    have = usable_cores()
    held = have if cores is None else cores
    if not 1 <= held <= have:
        raise SliceRefused(f"slice: {held} cores asked for, this node has {have} for us")
    return held


def _workers(schedule: Schedule, wished: Workers | None, env: Environment) -> Workers:
    python = [stage for stage in schedule.stages if isinstance(stage.steps[0].task.body, Python)]
    if env.image is None or not python:
        return wished or "thread"
    if wished not in (None, "process"):
        raise SliceRefused(
            f"slice: workers={wished!r} with image {env.image.source.name}: Python task "
            f"{python[0].steps[0].label!r} would run outside, as threads cannot enter an image; "
            "leave workers away, or give 'process'"
        )
    return "process"


def _with_folder(env: Environment, folder: Path | None) -> Environment:
    """In an image the folder of files is to be seen too, under its own name."""
    if env.image is None or folder is None or path_inside(folder, env.binds) is not None:
        return env
    folder.mkdir(parents=True, exist_ok=True)
    return replace(env, binds=(*env.binds, (str(folder), str(folder))))


def _with_gpus(schedule: Schedule, env: Environment) -> Environment:
    """In an image, a task that needs GPUs gets the node's with their driver."""
    asking = [stage.steps[0].label for stage in schedule.stages if stage.needs.gpus]
    if env.image is None or not asking or env.devices:
        return env
    devices = gpu_devices()
    if not devices:
        raise SliceRefused(
            f"slice: task {asking[0]!r} needs GPUs, and no CDI spec says what image "
            f"{env.image.source.name} needs for them; nvidia-ctk cdi generate "
            "--output=/etc/cdi/nvidia.yaml writes one"
        )
    return replace(env, devices=devices)


def _threads(schedule: Schedule, halts: list[Halt], _: Surroundings) -> Lanes:
    return ThreadLanes(schedule, halts)


def _processes(schedule: Schedule, halts: list[Halt], around: Surroundings) -> Lanes:
    from flowos.engine.local._process import ProcessLanes  # loads what threads never need

    return ProcessLanes(schedule, len(halts), halts=halts, around=around)


_LANES: dict[Workers, Callable[[Schedule, list[Halt], Surroundings], Lanes]] = {
    "thread": _threads,
    "inline": _threads,
    "process": _processes,
}


def _room_for(schedule: Schedule, held: int) -> tuple[int, int, int]:
    """Cores, memory and GPUs for its tasks. Raises SliceRefused if one could never start."""
    room = (held, memory_bytes(), gpu_count())
    for stage in schedule.stages:
        _refuse_unmet(stage, *room)
    node_ledger().widen(usable_cpus(), *room[1:])
    return room


def _refuse_unmet(stage: Stage, cores: int, memory: int, gpus: int) -> None:
    """A task that could never start is refused before any other has run."""
    needs = stage.needs
    where = f"slice: task {stage.steps[0].label!r} needs"
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
