"""`flowos ps` and `flowos show PROCESS`: the programs that used slices.

The record of each (see `_process_record`) is moved into the store once the process has ended.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from flowos import engine
from flowos._dataclasses import dataclass, replace
from flowos.model import Process, StoreError, UnknownRecord, from_plain
from flowos.operations._process_record import folder, is_running, locked
from flowos.store import Store, open_store

PATIENCE_SECONDS = 2.0
"""For a store that another program holds, where a person waits for a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProcesses:
    """Newest first. note: why the store could not be used. total: how many there are in all."""

    found: tuple[Process, ...]
    note: str = ""
    total: int = 0


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


def take_in() -> None:
    """Move the records of programs that are over into the store, unless it cannot be used now."""
    with suppress(StoreError), open_store(wait_seconds=PATIENCE_SECONDS) as store:
        _take_in(store)


def look(limit: int, skip: int = 0) -> ListedProcesses:
    """The same, read only, and soon: those that run, those that wait for the store, those in it."""
    waiting = sorted(_waiting(), key=_newest_last, reverse=True)
    found, note, total = waiting[skip : skip + limit], "", len(waiting)
    try:
        with open_store(wait_seconds=PATIENCE_SECONDS) as store:
            found += store.processes(limit - len(found), max(0, skip - len(waiting)))
            total += store.sizes()[1]
    except StoreError as error:
        note = str(error)
    return ListedProcesses(found=tuple(found), note=note, total=total)


def running() -> tuple[Process, ...]:
    """Those that run, newest first."""
    found = [each for each in _waiting() if each.state == "running"]
    return tuple(sorted(found, key=_newest_last, reverse=True))


def _newest_last(process: Process) -> tuple[bool, str, str]:
    """What runs is newer than all that ended."""
    return process.state == "running", process.started, process.id


def exactly(id_: str) -> Process | None:
    """The process with this id, read only. Raises StoreError if the store cannot be read."""
    found = next((each for each in _waiting() if each.id == id_), None)
    if found is not None:
        return found
    with open_store(wait_seconds=PATIENCE_SECONDS) as store:
        return store.process(id_)


def stamp() -> tuple[object, ...]:
    """Another value after each change of a record, and when a program is lost."""
    found = ((path.name, _read(path)) for path in _records())
    return tuple(
        (name, record, record.state == "running" and is_running(record.id))
        for name, record in found
        if record is not None
    )


def process(ref: str) -> Process:
    """A process by its id or a prefix of it. Raises StoreError if none or several fit."""
    fit = [each for each in processes().found if each.id.startswith(ref)]
    found = [each for each in fit if each.id == ref] or fit
    if not found:
        raise UnknownRecord(f"no process {ref!r} is kept: see them with 'flowos ps'")
    if len(found) > 1:
        several = ", ".join(each.id for each in found[:5])
        raise UnknownRecord(f"process {ref!r} fits {len(found)} ({several}): write more of it")
    return found[0]


def is_process(ref: str) -> bool:
    """Whether it is a prefix of ids of processes, and of no run."""
    return ref.startswith("p-")


def _records() -> list[Path]:
    """Without one that its process has only created, and locks next."""
    try:
        with os.scandir(folder()) as entries:
            found = sorted(each.path for each in entries if _is_record(each))
    except (OSError, RuntimeError):
        return []
    return list(map(Path, found))


def _is_record(entry: "os.DirEntry[str]") -> bool:
    if not (entry.name.startswith("p-") and entry.name.endswith(".json")):
        return False
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_size > 0
    return False


def _take_in(store: Store) -> None:
    for path in _records():
        with _left_behind(path) as over:
            if over is not None:
                store.keep_process(over)
                path.unlink(missing_ok=True)
                path.with_suffix(".fifo").unlink(missing_ok=True)


def _waiting() -> Iterator[Process]:
    """Running processes, and ended ones that are not in the store yet."""
    for path in _records():
        record = _read(path)
        if record is not None and record.state == "running":
            with _left_behind(path) as over:
                yield over or record
        elif record is not None:
            yield record


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
        known = path.stat()
        return _parsed(path, known.st_ino, known.st_size, known.st_mtime_ns)
    except (OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=1000)
def _parsed(path: Path, *_state: int) -> Process:
    """The same object as long as the file is in the same state."""
    return from_plain(Process, json.loads(path.read_bytes()))
