"""Which tasks of this process run and which wait, and for what: looked at only when it is asked.

Nothing is noted while flows run. What a thread runs is read from its stack.
"""

import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import FrameType
from typing import Any, Protocol

from flowos.engine.flow._executor import Executor
from flowos.engine.flow._runs import FlowRun
from flowos.engine.flow._slice import Slice
from flowos.model import Flow, Needs, WaitingTask
from flowos.plan import Stage, compile_flow

Queue = tuple[Sequence[tuple[Flow, int]], str]
"""How many runs of which flow wait for a node, and why none has room."""


class Queues(Protocol):
    """A slice of nodes of a pool."""

    def queued(self) -> Queue: ...


_open: "weakref.WeakSet[Slice]" = weakref.WeakSet()
_queues: "weakref.WeakSet[Queues]" = weakref.WeakSet()
_MAX_READY, _MAX_RUNS, _MAX_NAMES = 1000, 100, 5
_RUNS = {f.__code__ for f in (Executor._execute, Executor._run_batch, Executor._run_only)}


def watchable(slice: Slice) -> Slice:
    """The same, whose tasks are looked at from now on, until it is collected."""
    _open.add(slice)
    return slice


def watchable_queue(slice: Queues) -> None:
    """What waits for its nodes is looked at from now on, until it is collected."""
    _queues.add(slice)


def waiting_tasks(name: str = "") -> tuple[WaitingTask, ...]:
    """The tasks of all open slices that run or wait; of this name, unless it is empty."""
    running = _running()
    found: Counter[WaitingTask] = Counter()
    for each in tuple(_open):
        for executor in each._executor[:1]:
            for task, state, why in _states(executor, running):
                found[WaitingTask(each.flow.name, each._usage.node, task, state, why)] += 1
    for queues in tuple(_queues):
        runs, why = queues.queued()
        for flow, count in runs:
            for stage in compile_flow(flow, fuse="none").stages:
                reason = f"for a node: {why}"
                found[WaitingTask(flow.name, "", stage.label, "waits", reason)] += count
    return tuple(
        task._replace(number=number)
        for task, number in found.items()
        if name in ("", *task.task.split(" .. "))
    )


def _running() -> dict[int, tuple[Executor, list[Stage]]]:
    """Thread -> what it runs now."""
    found = {}
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None and frame.f_code not in _RUNS:
            frame = frame.f_back
        if frame is not None:
            words = frame.f_locals
            found[thread] = (words["self"], _stages_of(words))
    return found


def _stages_of(words: Mapping[str, Any]) -> list[Stage]:
    """What runs in a frame, by its arguments: its other names may not have a value yet."""
    if "batch" in words:
        return list(words["batch"][1])
    return [words["only"].stage] if "only" in words else words["stages"][-1:]


def _states(
    executor: Executor, running: dict[int, tuple[Executor, list[Stage]]]
) -> Iterator[tuple[str, str, str]]:
    """Task, state, and why it waits."""
    with executor._lock:
        ready = [stage for _, stages in executor._begun for stage in list(stages)]
        ready += [stage for _, stage in islice(executor._ready, _MAX_READY)]
        runs = [run for run in islice(executor._runs, _MAX_RUNS) if isinstance(run, FlowRun)]
        before = [dict(run.predecessors_left) for run in runs]
        free = len(executor._free)
    now = [stage for of, stages in running.values() if of is executor for stage in stages]
    for stage in now:
        yield stage.label, "runs", ""
    for stage in ready:
        whys = [_short_of(each, free, executor, running) for each in stage.needs.choices]
        why = "; or ".join(dict.fromkeys(whys)) if all(whys) else ""
        yield stage.label, "waits" if why else "begins", why
    active = {stage.number: stage for stage in (*now, *ready)}
    for left in before:
        waiting = {number for number, count in left.items() if count > 0}
        for number in waiting:
            known = {**active, **{other: executor._stages[other] for other in waiting}}
            inputs = [stage.label for stage in known.values() if number in stage.successors]
            yield executor._stages[number].label, "waits", f"for the result of {_names(inputs)}"


def _short_of(
    needs: Needs, free: int, executor: Executor, running: dict[int, tuple[Executor, list[Stage]]]
) -> str:
    """What a task that has its inputs waits for; "" if it begins now."""
    share = executor._share
    held = _names([stage.label for _, stages in running.values() for stage in stages])
    for ledger, whose in ((share.node, ""), (share.own, " of the slice's")):
        short = ledger.short_of(needs)
        if short is not None:
            want, have, whole = short
            return f"for {want}, {have} of{whose} {whole} are free; tasks that run: {held}"
    if free == 0:
        places = len(executor.places)
        if places == 1:
            return f"for the slice's one place; tasks that run: {held}"
        return f"for one of the slice's {places} places; tasks that run: {held}"
    return ""


def _names(labels: Iterable[str]) -> str:
    counts = Counter(labels)
    shown = [f"{name} (x{count})" if count > 1 else name for name, count in counts.items()]
    more = [f"{len(shown) - _MAX_NAMES} more"] * (len(shown) > _MAX_NAMES)
    return ", ".join((*shown[:_MAX_NAMES], *more)) or "none"
