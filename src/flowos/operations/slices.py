"""`flowos slice`: the slices of pools, of programs that run and of those that are over.

What programs wrote of theirs (see `_slice_record`) is moved into the store once all is over. Of a
program that was killed, the resource manager is asked what became of its jobs, and what it holds
still is freed.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from flowos import engine
from flowos._dataclasses import dataclass, replace
from flowos.model import (
    Process,
    SliceEvent,
    SliceLog,
    SliceRecord,
    SliceRefused,
    SliceState,
    StoreError,
    UnknownRecord,
    UsageError,
    did_you_mean,
    from_plain,
    to_json,
)
from flowos.operations._pool_kinds import kind_of_pool
from flowos.operations._process_record import folder, is_running
from flowos.operations._slice_record import slices_folder
from flowos.operations.processes import PATIENCE_SECONDS, process
from flowos.store import open_store

_PATIENCE_SECONDS = 15.0
"""For a program that frees a slice: Slurm takes seconds to end a job whose node is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSlices:
    """Newest first. note: why the store could not be used. total: how many there are in all."""

    found: tuple[SliceRecord, ...]
    note: str = ""
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FreedSlice:
    """What was done to a slice, or would be. process: its program, if that still runs."""

    slice: SliceRecord
    did: str
    process: str = ""


def slices(limit: int | None = None) -> ListedSlices:
    """Slices of programs that run, and those in the store."""
    written = {path: tuple(_settled(path)) for path in _files()}
    known = {each.id: each for each in _latest(each for all in written.values() for each in all)}
    note = ""
    try:
        with open_store() as store:
            kept = {each.id: each for each in store.slices()} if written else {}
            for path, found in written.items():
                if all(known[each.id].is_over for each in found) and not is_running(path.stem):
                    for each in found:
                        if each.id not in kept or len(kept[each.id].events) < len(each.events):
                            store.keep_slice(known[each.id])
                    path.unlink(missing_ok=True)
            stored = store.slices(limit)
            known = {each.id: each for each in _latest((*stored, *known.values()))}
    except StoreError as error:
        note = str(error)
    newest = sorted(known.values(), key=lambda each: (each.asked, each.id), reverse=True)
    return ListedSlices(found=tuple(newest[:limit]), note=note)


def slice_named(ref: str) -> SliceRecord:
    """A slice by its id or a prefix of it. Raises StoreError if none or several fit."""
    if not isinstance(ref, str):
        raise StoreError(f"slice {ref!r:.80}: expected its id, a text")
    refuse_empty(ref)
    known = slices().found
    fit = [each for each in known if each.id.startswith(ref)]
    found = [each for each in fit if each.id == ref] or fit
    if not found:
        none = "" if known else ": none is kept"
        hint = did_you_mean(ref, [each.id for each in known]) or f"{none}; see 'flowos slice ls'"
        raise UnknownRecord(f"no slice {ref!r}{hint}")
    if len(found) > 1:
        several = ", ".join(each.id for each in found[:5])
        raise UnknownRecord(f"slice {ref!r} fits {len(found)} ({several}): write more of it")
    return found[0]


def refuse_empty(ref: str) -> None:
    """Raises UnknownRecord for what an unset variable leaves: every id begins with it."""
    if not ref:
        raise UnknownRecord("slice '': its id is empty: is a variable unset?")


def slices_of(process: str) -> tuple[SliceRecord, ...]:
    """Those of a program, the oldest first."""
    return tuple(each for each in reversed(slices().found) if each.process == process)


def look() -> tuple[SliceRecord, ...]:
    """Slices that are not in the store yet, read only, and soon: no resource manager is asked."""
    return tuple(each for path in _files() for each in _written(path, _given_up))


def look_at_all(limit: int, skip: int = 0) -> ListedSlices:
    """Those that are not in the store yet, then those in it, read in the same way."""
    written = sorted(look(), key=lambda each: (not each.is_over, each.asked, each.id), reverse=True)
    found, note, total = written[skip : skip + limit], "", len(written)
    try:
        with open_store(wait_seconds=PATIENCE_SECONDS) as store:
            found += store.slices(limit - len(found), max(0, skip - len(written)))
            total += store.sizes()[2]
    except StoreError as error:
        note = str(error)
    return ListedSlices(found=tuple(found), note=note, total=total)


def look_at(process: str) -> tuple[SliceRecord, ...]:
    """The slices of a program, the oldest first, read in the same way.

    Raises StoreError if the store cannot be read.
    """
    path = slices_folder() / f"{process}.jsonl"
    found = tuple(_written(path, _given_up))
    if not found:
        with open_store(wait_seconds=PATIENCE_SECONDS) as store:
            found = store.slices(process=process)
    return tuple(sorted(found, key=lambda each: (each.asked, each.id)))


def stamp() -> tuple[object, ...]:
    """Another value after each change of what programs wrote."""
    found: list[object] = []
    for path in _files():
        with suppress(OSError):
            found.append((path.name, path.stat().st_size))
    return tuple(found)


def with_accounts(record: SliceRecord) -> tuple[SliceRecord, str]:
    """The same with what Slurm accounted for its jobs, and why that is not known, or ""."""
    ask = kind_of_pool(record.kind).accounts
    if ask is None or not record.jobs or record.accounts is not None:
        return record, ""
    try:
        accounts = ask(record)
    except SliceRefused as error:
        return record, str(error)
    found = replace(record, accounts=accounts)
    if record.is_over and accounts is not None:
        with open_store() as store:
            store.keep_slice(found)
    return found, "" if accounts is not None else "Slurm has no accounts of its jobs"


def renew(ref: str, seconds: float | None, *, dry_run: bool = False) -> tuple[SliceRecord, float]:
    """Renew the lease of a slice, from now on for so many seconds if they are given.

    The slice, and the seconds after which it ends, which is no later than was asked for. Raises
    StoreError if it is not there, SliceRefused if it has no lease, is not held, or cannot be held
    for so long.
    """
    record = slice_named(ref)
    lease = record.ask.lease_seconds
    if lease is None or record.is_over:
        why = f"is over: {record.why or record.state}" if record.is_over else "has no lease"
        raise SliceRefused(f"slice {record.id} {why}")
    try:
        replace(record.ask, lease_seconds=lease if seconds is None else seconds)
    except ValueError as error:
        raise SliceRefused(f"slice {record.id}: {error}") from None
    state = None if dry_run else engine.slurm_renewed(record.id, seconds)
    if isinstance(state, str):
        raise SliceRefused(f"slice {record.id}: {state}")
    if state is None:
        return record, seconds or lease
    left = state.left_seconds
    return record, state.lease_seconds if left is None else min(state.lease_seconds, left)


def free(ref: str, *, dry_run: bool = False) -> FreedSlice:
    """End a slice, of whatever program. Raises StoreError if it cannot be, or there is none."""
    record = slice_named(ref)
    if record.is_over:
        return FreedSlice(slice=record, did="over")
    program = record.process if is_running(record.process) else ""
    if dry_run:
        return FreedSlice(slice=record, did="would free", process=program)
    answer = _asked_to_free(record) if program else "gone"
    if answer != "freed":
        _cancel(record, answer)
    return FreedSlice(slice=_over(record.id), did="freed", process=program)


def _asked_to_free(record: SliceRecord) -> str:
    """What its program answers; "gone" if it has ended or does not hold the slice.

    "silent" if it does not answer, "away" if it listens on no FIFO here.
    """
    fifo = folder() / f"{record.process}.fifo"
    why = "by 'flowos slice free', in another terminal"
    try:
        said = engine.request(fifo, "free", record.id, why, seconds=_PATIENCE_SECONDS)
    except OSError:
        said = "away"
    if said == "freed":
        return said
    if said == "" or not is_running(record.process):
        return "gone"
    return said or "silent"


def _cancel(record: SliceRecord, answer: str) -> None:
    """End its jobs. Raises StoreError where it has none."""
    if cancel := kind_of_pool(record.kind).cancel:
        cancel(record)
        return
    if answer == "gone":
        return
    program = process(record.process)
    does = {
        "waits": "waits for nodes: interrupt it",
        "silent": "does not answer: end it",
        "away": "cannot be asked from here: free it there",
    }
    raise StoreError(
        f"slice {record.id}: its program (pid {program.pid} on {program.host}) {does[answer]}"
    )


def _over(id: str) -> SliceRecord:
    """As it is recorded once its end is; as it is if that takes too long."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = slice_named(id)
        if found.is_over or time.monotonic() > until:
            return found
        time.sleep(0.05)


def logged_tasks(record: SliceRecord) -> SliceLog | None:
    """The log of its tasks; None if it has none. Raises UsageError if it cannot be read."""
    if not record.log:
        return None
    from flowos.operations.task_log import read_log  # the page of a timeline, which no list needs

    try:
        return read_log(Path(record.log))
    except OSError as error:
        raise UsageError(f"the log of its tasks: {record.log}: {error.strerror}") from None


def plain_slice(record: SliceRecord) -> dict[str, Any]:
    """For JSON: the record, and what follows from it."""
    now = time.time()
    waits = [{"reason": reason, "seconds": seconds} for reason, seconds in record.waits(now)]
    return {
        **to_json(record),
        "waited_seconds": record.waited_seconds(now),
        "waits": waits,
        "booted_seconds": record.booted_seconds(now),
        "node_seconds": record.node_seconds(now),
        "core_seconds": record.core_seconds(now),
        "gpu_seconds": record.gpu_seconds(now),
        "cost": record.cost(now),
    }


def _files() -> list[Path]:
    try:
        return sorted(slices_folder().glob("p-*.jsonl"))
    except (OSError, RuntimeError):
        return []


_Left = Callable[[SliceRecord, float], SliceRecord]
"""What became of a slice whose program is gone, which was there at a time."""


def _settled(path: Path) -> Iterator[SliceRecord]:
    """The slices that a program wrote; those of one that is gone as they are now."""
    return _written(path, _left)


def _written(path: Path, left: _Left) -> Iterator[SliceRecord]:
    running = is_running(path.stem)
    try:
        at, lines = path.stat().st_mtime, path.read_bytes().splitlines()
    except OSError:
        return
    for record in _latest(map(_read, lines)):
        yield record if running or record.is_over else left(record, at)


def _given_up(record: SliceRecord, at: float) -> SliceRecord:
    """As far as that is known without asking a resource manager: a lease may last."""
    if record.ask.lease_seconds is not None:
        return record
    return record.over("lost", SliceEvent(at=at, what="ended", reason="its program is gone"))


def _latest(records: Iterable[SliceRecord | None]) -> Iterable[SliceRecord]:
    """The last one of each id: that with the most events."""
    found: dict[str, SliceRecord] = {}
    for each in records:
        if each is not None and len(each.events) >= len(getattr(found.get(each.id), "events", ())):
            found[each.id] = each
    return found.values()


def _read(line: bytes) -> SliceRecord | None:
    """None if it was cut off by a full disk, or is no slice's."""
    try:
        return from_plain(SliceRecord, json.loads(line))
    except (ValueError, RecursionError):
        return None


def _left(record: SliceRecord, at: float) -> SliceRecord:
    """Of a program that is gone, which was there at this time."""
    state = _end_of(record.process)
    if job_end := kind_of_pool(record.kind).job_end:
        try:
            seconds = job_end(record)
        except SliceRefused:
            return record
        if seconds == "held":
            return record
        began = next((e.at for e in record.events if e.what == "held"), record.asked)
        at = max(at, began + seconds) if isinstance(seconds, float) else at
    why = "its program ended" if state == "ended" else "its program was killed"
    lease = record.ask.lease_seconds
    if lease is not None:
        why += f", and its lease of {lease:g} s"
    end: SliceState = "lost" if lease is None else "over"
    return record.over(end, SliceEvent(at=at, what="ended", reason=why))


def free_left() -> None:
    """End the jobs that programs of this machine have left to a cluster, for no process of theirs.

    Keepers do so, but for those that are killed when srun is gone too. A program of another machine
    may seem to be gone.
    """
    for record in (each for path in _files() for each in _settled(path)):
        kind = kind_of_pool(record.kind)
        if not kind.frees_left or record.is_over or is_running(record.process):
            continue
        with suppress(StoreError, SliceRefused):
            here = process(record.process).host == os.uname().nodename
            if here and record.ask.lease_seconds is None and kind.cancel:
                kind.cancel(record)


def _end_of(id: str) -> str:
    try:
        found: Process = process(id)
    except StoreError:
        return "lost"
    return found.state
