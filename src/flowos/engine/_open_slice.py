"""Opening a slice of a node for a flow."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowos._dataclasses import dataclass, replace
from flowos.drivers import path_inside
from flowos.engine._ledger import ResourceLedger, Resources
from flowos.engine._met_needs import max_devices, met_needs
from flowos.engine._node import Node
from flowos.engine._options import SliceOptions, Workers
from flowos.engine._waiting_tasks import watchable
from flowos.engine.bodies._held_programs import hold_programs
from flowos.engine.flow._commands import CommandLane
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._folders import Folders
from flowos.engine.flow._inside import Surroundings
from flowos.engine.flow._kept import traffic_notes
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.flow._lanes import Lanes, SteppingLane
from flowos.engine.flow._runs import ExecutionSlot
from flowos.engine.flow._sites import SiteFunction
from flowos.engine.flow._slice import Slice
from flowos.engine.flow._spread_ranks import refuse_ranks, with_spread_ranks
from flowos.engine.flow._threads import ThreadLanes
from flowos.engine.flow._usage import SliceUsage
from flowos.engine.flow._written_files import with_present_files
from flowos.model import (
    EngineFlow,
    EnginePlan,
    Environment,
    Flow,
    Needs,
    Python,
    SliceRefused,
    counted,
    with_engines,
)
from flowos.plan import Fuse, Schedule, Step, compile_flow, with_resident_arrays

if TYPE_CHECKING:
    from flowos.engine.flow._progress import ProgressWatch
    from flowos.engine.flow._task_log import TaskLog
    from flowos.engine.ray._ray_cluster import RayCluster
    from flowos.engine.results._slice_results import SliceResults

_IN_THREADS = ("thread", "inline")


def open_slice(flow: Flow, node: Node, options: SliceOptions) -> Slice:
    """Compile the flow and hold the places of this node that it runs on.

    Raises SliceRefused for what is not to be had there, EnvironmentRefused.
    """
    workers, env, folder = options.workers, options.env, options.folder
    made = with_engines(flow, options.engines, SiteFunction)
    undo = ExitStack()
    try:
        compiled, boards = _compiled(made.flow, node, options, undo)
        schedule, own = _held_for(compiled, node, options, undo)
        kind = _in_own_process(schedule, _workers(schedule, workers, env, node))
        across = kind in _IN_THREADS and not _keeps(schedule, options)
        schedule = with_resident_arrays(schedule, across=across)
        places = 1 if workers == "inline" else len(own.cpus)
        usage = SliceUsage(flow.name, node.name, env.label, str(options.log or ""))
        ready = node.ready(_with_folder(_with_gpus(schedule, env, node), folder, node))
        undo.callback(ready.close)
        around, folders = _around(schedule, node, env, ready.env), Folders(node, folder)
        undo.callback(folders.clear)
        extras = _opened_around(schedule, around, folders, usage, options, undo, kind)
        executor, missing, planned = _executor(flow, made, node, options, undo)

        def new_executor() -> Executor:
            flags = [StopFlag() for _ in range(places)]
            lanes = extras.marking(_lanes(kind, schedule, flags, around, options.ray))
            pairs = enumerate(zip(lanes.lanes, flags, strict=True))
            return executor(
                schedule,
                lanes,
                [
                    extras.slot(lane, CommandLane(folders, around, flag), flag, f"{node.name}:{i}")
                    for i, (lane, flag) in pairs
                ],
                (ResourceLedger(own), node.ledger),
                helpers=0 if workers == "inline" else places,
                on_stage=options.on_stage,
                hold_end=options.hold_end,
            )

        given = flow if made.sites else made.flow  # an engine that is forced is the task's own
        notes = lambda: (*ready.notes, *boards, *extras.notes(), *missing)  # noqa: E731
        opened = extras.slice(schedule, given, new_executor, undo.close, usage, notes, planned)
    except BaseException:
        undo.close()
        raise
    if options.on_usage is not None:
        options.on_usage(usage)
    return watchable(opened)


def _executor(
    flow: Flow, made: EngineFlow, node: Node, options: SliceOptions, undo: ExitStack
) -> tuple[Callable[..., Executor], Iterable[str], Callable[..., EnginePlan] | None]:
    """Where tasks have several bodies, one that chooses, notes of what is missing, and the plan.

    What it learns is kept in the end.
    """
    if not made.sites:
        return Executor, (), None
    from flowos.engine._chosen_executor import chosen_executor
    from flowos.engine._engine_history import EngineHistory

    history = EngineHistory(made.sites, node.name)
    undo.callback(history.keep)
    executor = chosen_executor(flow, options.engines, _fuse(options), history)
    return executor, history.missing, history.plan


def _compiled(
    flow: Flow, node: Node, options: SliceOptions, undo: ExitStack
) -> tuple[Schedule, tuple[str, ...]]:
    """Tasks in Verilog know the line of their board; what was loaded."""
    compiled = with_present_files(compile_flow(flow, fuse=_fuse(options)))
    steps = [step for stage in compiled.all_stages for step in stage.steps]
    if not any(map(_may_have_board, {id(step.task): step for step in steps}.values())):
        return compiled, ()
    from flowos.engine._board_tasks import with_boards

    return with_boards(compiled, node, undo)


def _may_have_board(step: Step) -> bool:
    return getattr(step.task.body, "engine", "") in ("hdl", "either") or any(
        _may_have_board(each) for stage in step.inner for each in stage.steps
    )


def _held_for(
    compiled: Schedule, node: Node, options: SliceOptions, undo: ExitStack
) -> tuple[Schedule, Resources]:
    """With what the slice may use of the node. Raises SliceRefused for what is not to be had."""
    undo.callback(hold_programs())
    devices = node.hold_devices(max_devices(compiled))
    undo.callback(devices.close)
    has = node.resources()
    held = _held(options.cores, len(has.cpus))
    own = replace(has, cpus=tuple(range(held)))
    schedule = met_needs(
        with_spread_ranks(compiled, node, held),
        own,
        node,
        (options.ray, options.hold_end),
        devices.why,
    )
    node.ledger.widen(has)
    return schedule, own


def _fuse(options: SliceOptions) -> Fuse:
    """Results are kept, and times are taken, by task."""
    if options.journal is not None or options.log is not None:
        return "none"
    return options.fuse or ("all" if options.workers == "inline" else "chains")


@dataclass(frozen=True, slots=True)
class _Around:
    """What stands between the executor and its lanes: nothing, unless it is asked for."""

    log: "TaskLog | None"
    results: "SliceResults | None"
    watch: "ProgressWatch | None"
    traffic: tuple[str, ...]
    node: Node

    def slot(
        self, python: SteppingLane, commands: CommandLane, stop_flag: StopFlag, worker: str
    ) -> ExecutionSlot:
        slot = commands.slot = ExecutionSlot(python, commands, stop_flag)
        on_hit = None
        if self.log is not None:
            from flowos.engine.flow._task_log import LoggedLane, LoggedPythonLane

            slot.python = LoggedPythonLane(python, self.log, worker, slot)
            slot.commands = LoggedLane(commands, self.log, worker, slot)
            on_hit = partial(self.log.found, worker)
        if self.results is not None:
            from flowos.engine.results._cached_lanes import CachedLane, CachedPythonLane

            slot.python = CachedPythonLane(slot.python, self.results, on_hit)
            slot.commands = CachedLane(slot.commands, self.results, on_hit)
        if self.watch is not None:
            from flowos.engine.flow._progress import WatchedLane, WatchedPythonLane, at_first

            at = python.at if slot.python is python else at_first
            slot.python = WatchedPythonLane(slot.python, self.watch.lane(at))
            slot.commands = WatchedLane(slot.commands, self.watch.lane(at_first))
        return slot

    def marking(self, lanes: Lanes) -> Lanes:
        """The same; threads mark their steps only if they are watched."""
        if self.watch is not None and isinstance(lanes, ThreadLanes):
            lanes.mark_steps()
        return lanes

    def slice(self, schedule: Schedule, *parts: Any) -> Slice:
        if self.watch is None:
            return Slice(*parts)
        from flowos.engine.flow._watched_slice import WatchedSlice

        flows = any(stage.flows for stage in schedule.stages)
        tasks = 0 if flows else sum(len(stage.steps) for stage in schedule.stages)
        return WatchedSlice(*parts, watch=self.watch, tasks=tasks)

    def notes(self) -> tuple[str, ...]:
        log = () if self.log is None else self.log.notes
        watch = () if self.watch is None else self.watch.notes
        results = () if self.results is None else self.results.notes()
        return (*self.traffic, *log, *watch, *results, *self.node.stage_notes())


def _opened_around(
    schedule: Schedule,
    around: Surroundings,
    folders: Folders,
    usage: SliceUsage,
    options: SliceOptions,
    undo: ExitStack,
    kind: Workers,
) -> _Around:
    """Loads what slices without these options never need."""
    log = results = None
    if options.log is not None:
        from flowos.engine.flow._task_log import TaskLog

        log = TaskLog(options.log)
        undo.callback(log.close)
    if _keeps(schedule, options):
        from flowos.engine.results._slice_results import SliceResults

        results = SliceResults(schedule, around, folders.fresh, usage, options.journal)
        undo.callback(results.close)
    by_us = kind == "process" and not around.node.is_here
    traffic = traffic_notes(schedule) if by_us else ()
    return _Around(log, results, options.progress, traffic, around.node)


def _around(schedule: Schedule, node: Node, asked: Environment, ready: Environment) -> Surroundings:
    refuse_ranks(schedule, node, ready)
    return Surroundings(node=node, env=ready, named=asked.image.source.name if asked.image else "")


def _held(cores: int | None, have: int) -> int:
    held = have if cores is None else cores
    if not 1 <= held <= have:
        raise SliceRefused(f"slice: {counted(held, 'core')} asked for, this node has {have} for us")
    return held


def _keeps(schedule: Schedule, options: SliceOptions) -> bool:
    """Whether results are kept, which are digested then."""
    return options.journal is not None or any(s.steps[0].task.cache for s in schedule.all_stages)


def _workers(
    schedule: Schedule, requested: Workers | None, env: Environment, node: Node
) -> Workers:
    python = [stage for stage in schedule.all_stages if stage.in_python]
    if not python or (env.image is None and (node.is_here or requested == "ray")):
        if requested:
            return requested
        has_devices = any(_needs_devices(stage.needs, "process") for stage in python)
        return "process" if has_devices else "thread"
    if requested not in (None, "process"):
        where = (
            f"on node {node.name}" if env.image is None else f"with image {env.image.source.name}"
        )
        outside = "on this machine" if env.image is None else "outside"
        raise SliceRefused(
            f"slice: workers={requested!r} {where}: Python task {python[0].steps[0].label!r} would "
            f"run {outside}, as threads cannot go there; leave workers away, or give 'process'"
        )
    return "process"


def _in_own_process(schedule: Schedule, kind: Workers) -> Workers:
    """The same. Raises SliceRefused if it cannot end a task that has a time limit, or cannot say
    to one which devices it has."""
    for stage in schedule.all_stages:
        body = stage.steps[0].task.body
        if kind != "process" and stage.in_python and _needs_devices(stage.needs, kind):
            what = "devices" if any(each.devices for each in stage.needs.choices) else "GPUs"
            others = (
                "workers of Ray do not learn"
                if kind == "ray"
                else "threads share the variables that say"
            )
            raise SliceRefused(
                f"slice: task {stage.steps[0].label!r} needs {what}, and "
                f"{others} which: give the slice workers='process'"
            )
        limit = body.limit_seconds if isinstance(body, Python) else None
        if limit is not None and kind not in ("process", "ray"):
            raise SliceRefused(
                f"slice: task {stage.steps[0].label!r} has limit_seconds={limit:g}, "
                "and a thread cannot be ended: give the slice workers='process'"
            )
    return kind


def _needs_devices(needs: Needs, kind: Workers) -> bool:
    """Whether variables say which devices a task has; Ray itself says which GPUs."""
    choices = needs.choices
    return any(each.devices if kind == "ray" else each.generic_resources for each in choices)


def _with_folder(env: Environment, folder: Path | None, node: Node) -> Environment:
    """In an image here the folder of files is to be seen too, under its own name."""
    if env.image is None or folder is None or not node.is_here:
        return env
    if path_inside(folder, env.binds) is not None:
        return env
    folder.mkdir(parents=True, exist_ok=True)
    return replace(env, binds=(*env.binds, (str(folder), str(folder))))


def _with_gpus(schedule: Schedule, env: Environment, node: Node) -> Environment:
    """In an image, a task that needs GPUs gets the node's with their driver."""
    if env.image is None or env.devices:
        return env
    stages = schedule.all_stages
    asking = [s.steps[0].label for s in stages if any(each.gpus for each in s.needs.choices)]
    if not asking:
        return env
    devices = node.gpu_devices()
    if not devices:
        raise SliceRefused(
            f"slice: task {asking[0]!r} needs GPUs, and no CDI spec says what image "
            f"{env.image.source.name} needs for them; nvidia-ctk cdi generate "
            "--output=/etc/cdi/nvidia.yaml writes one"
        )
    return replace(env, devices=devices)


def _lanes(
    kind: Workers,
    schedule: Schedule,
    stop_flags: list[StopFlag],
    around: Surroundings,
    ray: "RayCluster | None",
) -> Lanes:
    """Loads what threads never need."""
    if kind == "process":
        from flowos.engine.workers._process_lanes import ProcessLanes

        return ProcessLanes(schedule, len(stop_flags), stop_flags=stop_flags, around=around)
    if kind == "ray":
        from flowos.engine.ray._ray_lanes import RayLanes

        assert ray is not None
        return RayLanes(schedule, stop_flags, ray)
    return ThreadLanes(schedule, stop_flags)
