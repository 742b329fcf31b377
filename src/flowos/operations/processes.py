"""`flowos ps` and `flowos show PROCESS`: the programs that used slices.

The record of each (see `_process_record`) is moved into the store once the process has ended.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from flowos import engine
from flowos.model import Process, StoreError, from_plain
from flowos.operations._process_record import folder, locked
from flowos.store import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProcesses:
    """Newest first. note: why records of ended processes could not be moved into the store."""

    found: tuple[Process, ...]
    note: str = ""


def processes(limit: int | None = None) -> ListedProcesses:
    """Running processes, and those in the store."""
    kept: tuple[Process, ...] = ()
    note = ""
    try:
        with open_store() as store:
            _take_in(store)
            kept = store.processes(limit)
    except StoreError as error:
        note = str(error)
    known = {process.id: process for process in (*kept, *_waiting())}
    newest = sorted(known.values(), key=lambda p: (p.started, p.id), reverse=True)
    return ListedProcesses(found=tuple(newest[:limit]), note=note)


def process(ref: str) -> Process:
    """A process by its id or a prefix of it. Raises StoreError if none or several fit."""
    fit = [each for each in processes().found if each.id.startswith(ref)]
    found = [each for each in fit if each.id == ref] or fit
    if not found:
        raise StoreError(f"no process {ref!r} is kept: see them with 'flowos ps'")
    if len(found) > 1:
        several = ", ".join(each.id for each in found[:5])
        raise StoreError(f"process {ref!r} fits {len(found)} ({several}): write more of it")
    return found[0]


def is_process(ref: str) -> bool:
    """Whether it is a prefix of ids of processes, and of no run."""
    return ref.startswith("p-")


def _records() -> list[Path]:
    try:
        return sorted(folder().glob("p-*.json"))
    except (OSError, RuntimeError):
        return []


def _take_in(store: Store) -> None:
    for path in _records():
        with _left_behind(path) as over:
            if over is not None:
                store.keep_process(over)
                path.unlink(missing_ok=True)


def _waiting() -> Iterator[Process]:
    """Running processes, and ended ones that are not in the store yet."""
    for path in _records():
        record = _read(path)
        if record is not None:
            with _left_behind(path) as over:
                yield over or record


@contextmanager
def _left_behind(path: Path) -> Iterator[Process | None]:
    """The record of an ended process, locked during the `with`; None for a running one.

    A process that did not record its end is lost. A record that cannot be read is removed.
    """
    fd = locked(path)
    try:
        yield _over(path) if fd >= 0 else None
    finally:
        if fd >= 0:
            os.close(fd)


def _over(path: Path) -> Process | None:
    found = _read(path)
    if found is None:
        path.unlink(missing_ok=True)
    elif found.state == "running":
        return replace(found, state="lost", ended=engine.utc_of(path.stat().st_mtime))
    return found


def _read(path: Path) -> Process | None:
    """None if it cannot be read: it is gone, or was truncated by a full disk."""
    try:
        return from_plain(Process, json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None
