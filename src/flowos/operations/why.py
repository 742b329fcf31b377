"""`flowos why`: why a slice, a program or a task does not run."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from flowos import engine
from flowos._dataclasses import dataclass
from flowos.model import (
    SliceRecord,
    SliceRefused,
    UnknownRecord,
    WaitingTask,
    did_you_mean,
)
from flowos.operations._pool_kinds import kind_of_pool
from flowos.operations._process_record import folder
from flowos.operations.processes import is_process, process
from flowos.operations.slices import refuse_empty, slices

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyAnswer:
    """of: the id of a slice, of a program, or a task's name. lines: the answer, in words."""

    of: str
    lines: tuple[str, ...]
    tasks: tuple[WaitingTask, ...] = ()


def why(name: str) -> tuple[WhyAnswer, ...]:
    """Raises StoreError if there is no such slice, program or task."""
    refuse_empty(name)
    known = slices().found
    fits = [each for each in known if each.id.startswith(name)]
    found = [each for each in fits if not each.is_over or each.id == name]
    if not fits and is_process(name):
        return (_of_process(process(name).id, known),)
    every = {} if name in [each.id for each in found] else _tasks()
    answers = (*map(_of_slice, found), *_of_task(name, every)) or tuple(map(_of_slice, fits))
    if not answers:
        _refuse(name, every, [each.id for each in known])
    return answers


def _of_slice(record: SliceRecord) -> WhyAnswer:
    now = time.time()
    if record.is_over:
        lines = [f"it is over: {record.state}" + f", {record.why}" * bool(record.why)]
    elif record.state == "held":
        names = ", ".join(node.name for node in record.nodes if node.until is None)
        lines = [f"it does not wait: {record.process} holds {names}"]
    elif record.events and record.events[-1].what == "booting":
        lines = [f"booting since {record.booted_seconds(now):.1f} s: {record.why}"]
    else:
        lines = [f"it waits since {record.waited_seconds(now):.1f} s", *_waits(record)]
    return WhyAnswer(of=record.id, lines=tuple(lines))


def _waits(record: SliceRecord) -> list[str]:
    said = f"its pool {record.pool} said: {record.why or 'nothing yet'}"
    waits = kind_of_pool(record.kind).waits
    if waits is None:
        return [said]
    try:
        return [*waits(record)] or [said]
    except SliceRefused as error:
        return [said, f"now: {error}"]


def _of_process(id: str, known: Iterable[SliceRecord]) -> WhyAnswer:
    mine = [each for each in known if each.process == id and each.state == "waiting"]
    lines = [f"slice {each.id}: {line}" for each in mine for line in _of_slice(each).lines]
    tasks = _asked(folder() / f"{id}.fifo", "")
    if tasks is None and not mine:
        lines = ["it is over, or answers nothing: see flowos show " + id]
    return WhyAnswer(of=id, lines=tuple(lines), tasks=tasks or ())


_Tasks = dict[str, tuple[WaitingTask, ...]]


def _tasks() -> _Tasks:
    """By their programs."""
    return {path.stem: _asked(path, "") or () for path in _fifos()}


def _of_task(name: str, every: _Tasks) -> tuple[WhyAnswer, ...]:
    return tuple(
        WhyAnswer(of=id, lines=(), tasks=mine)
        for id, tasks in every.items()
        if (mine := tuple(task for task in tasks if name in task.task.split(" .. ")))
    )


def _refuse(name: str, every: _Tasks, ids: list[str]) -> NoReturn:
    there = {part for tasks in every.values() for task in tasks for part in task.task.split(" .. ")}
    tasks = f"; tasks: {', '.join(sorted(there)) or 'none'}"
    hint = did_you_mean(name, (*there, *ids)) or tasks
    raise UnknownRecord(f"no slice, program or task {name!r} runs or waits{hint}")


def _fifos() -> list[Path]:
    try:
        return sorted(folder().glob("p-*.fifo"))
    except (OSError, RuntimeError):
        return []


def _asked(fifo: Path, name: str) -> tuple[WaitingTask, ...] | None:
    """None of a program that does not answer."""
    try:
        said = engine.request(fifo, "tasks", name, seconds=_PATIENCE_SECONDS)
        return None if said is None else tuple(WaitingTask(*row) for row in json.loads(said))
    except (OSError, ValueError):
        return None
