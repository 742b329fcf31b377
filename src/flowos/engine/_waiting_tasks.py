"""Which tasks of this process run and which wait, and for what: looked at only when it is asked.

Nothing is noted while flows run. What a thread runs is read from its stack.
"""

import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from types import FrameType

from flowos.engine._ledger import ResourceLedger
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._runs import FlowRun
from flowos.engine.flow._slice import Slice
from flowos.model import Needs, WaitingTask
from flowos.plan import Stage

_open: "weakref.WeakSet[Slice]" = weakref.WeakSet()
_MAX_READY, _MAX_RUNS, _MAX_NAMES = 1000, 100, 5
_RUNS = {Executor._execute.__code__, Executor._run_only.__code__}


def watchable(slice: Slice) -> Slice:
    """The same, whose tasks are looked at from now on, until it is collected."""
    _open.add(slice)
    return slice


def waiting_tasks(name: str = "") -> tuple[WaitingTask, ...]:
    """The tasks of all open slices that run or wait; of this name, unless it is empty."""
    running = _running()
    found: Counter[WaitingTask] = Counter()
    for each in tuple(_open):
        for executor in each._crew[:1]:
            for task, state, why in _states(executor, running):
                if name in ("", *task.split(" .. ")):
                    found[WaitingTask(each.flow.name, each._usage.node, task, state, why)] += 1
    return tuple(task._replace(number=number) for task, number in found.items())


def _running() -> dict[int, tuple[Executor, list[Stage]]]:
    """Thread -> what it runs now."""
    found = {}
    for thread, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None and frame.f_code not in _RUNS:
            frame = frame.f_back
        if frame is not None:
            words = frame.f_locals
            stages = words["batch"][1] if "batch" in words else [words["stage"]]
            found[thread] = (words["self"], list(stages))
    return found


def _states(
    executor: Executor, running: dict[int, tuple[Executor, list[Stage]]]
) -> Iterator[tuple[str, str, str]]:
    """Task, state, and why it waits."""
    with executor._lock:
        ready = [stage for _, stage in islice(executor._ready, _MAX_READY)]
        runs = [run for run in islice(executor._runs, _MAX_RUNS) if isinstance(run, FlowRun)]
        before = [dict(run.predecessors_left) for run in runs]
        free = len(executor._free)
    now = [stage for of, stages in running.values() if of is executor for stage in stages]
    for stage in now:
        yield stage.label, "runs", ""
    for stage in ready:
        why = _short_of(stage.needs, free, executor, running)
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
    node: ResourceLedger = executor._node
    has = (len(node.idle), node._memory, node._gpus)
    whole = (len(node.whole.cpus), node.whole.memory_bytes, node.whole.gpus)
    cores = whole[0] if needs.alone else needs.cores * needs.ranks
    asked = (cores, needs.memory_bytes, needs.gpus)
    held = _names([stage.label for _, stages in running.values() for stage in stages])
    for want, have, all_, what in zip(
        asked, has, whole, ("cores", "bytes of memory", "GPUs"), strict=True
    ):
        if want > have:
            return f"for {want} {what}, {have} of {all_} are free; tasks that run: {held}"
    if free == 0:
        places = len(executor.places)
        return f"for one of the slice's {places} places; tasks that run: {held}"
    return ""


def _names(labels: Iterable[str]) -> str:
    counts = Counter(labels)
    shown = [f"{name} (x{count})" if count > 1 else name for name, count in counts.items()]
    more = [f"{len(shown) - _MAX_NAMES} more"] * (len(shown) > _MAX_NAMES)
    return ", ".join((*shown[:_MAX_NAMES], *more)) or "none"
