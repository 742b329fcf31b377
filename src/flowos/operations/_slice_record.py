"""Records of the slices of pools that this program holds, and what other terminals ask of them.

    $XDG_DATA_HOME/flowos/slices/PROCESS.jsonl     a `model.SliceRecord` a line

A line is added when a slice waits, is held, changes or is over, without a database: the last one of
an id counts. `slices.py` moves them into the store once the process has ended. Errors of writing
are ignored: no flow fails because of its record.
"""

import atexit
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flowos._dataclasses import replace
from flowos.engine import (
    NEVER,
    CancelToken,
    Held,
    HoldEvent,
    Node,
    OnHoldEvent,
    Provider,
    ignore,
    new_slice_id,
)
from flowos.model import (
    Ask,
    Cancelled,
    FlowosError,
    HeldNode,
    Lost,
    NodeInfo,
    Pool,
    SliceEvent,
    SliceFreed,
    SliceRecord,
    SliceRefused,
    to_plain,
)
from flowos.operations._answers import ANSWERS, answer
from flowos.operations._process_record import listen, process_id
from flowos.store import default_file

if TYPE_CHECKING:
    from flowos.engine import HeldSlice  # a tenth of a second, which `flowos slice` does not need

_MAX_FILES, _DROPPED = 1000, 100
"""Files that may wait to be moved into a store; beyond that the oldest are removed."""
_MAX_SLICES = 10_000
"""Of one process; those after them are in the sums of its own record alone."""
_OVER_SECONDS = 1.0


def slices_folder() -> Path:
    """The folder of records."""
    return default_file().parent / "slices"


class RecordedProvider:
    """A provider that also records what one slice holds. log: of its tasks."""

    def __init__(self, provider: Provider, log: str = "") -> None:
        self._provider, self._log = provider, log
        self._slice: Callable[[], HeldSlice | None] = lambda: None

    def belongs_to(self, held: "HeldSlice") -> None:
        """From now on requests of other terminals reach this slice."""
        self._slice = weakref.ref(held)

    @property
    def pool(self) -> Pool:
        return self._provider.pool

    def nodes(self) -> tuple[NodeInfo, ...]:
        return self._provider.nodes()

    def check(self, ask: Ask) -> None:
        self._provider.check(ask)

    def hold(self, ask: Ask, on_event: OnHoldEvent = ignore, cancel: CancelToken = NEVER) -> Held:
        """Raises SliceFreed if it is freed from another terminal while it waits."""
        ask = replace(ask, id=ask.id or new_slice_id(self.pool))
        recording = _begun(self.pool, ask, self._log)
        recording.slice = lambda: self._slice()

        def heard(event: HoldEvent) -> None:
            recording.happened(event)
            on_event(event)

        try:
            held = self._provider.hold(ask, heard, cancel)
        except Cancelled:
            recording.end("freed", recording.freed or "it was not needed any more")
            raise
        except FlowosError as error:
            if recording.freed:
                recording.end("freed", recording.freed)
                raise SliceFreed(f"slice {ask.id} was freed {recording.freed}") from None
            recording.end("refused", str(error))
            raise
        except BaseException:
            recording.end("freed", "interrupted while it waited")
            raise
        recording.holds(held)
        return held

    def resize(
        self, held: Held, nodes: int, cancel: CancelToken = NEVER, on_event: OnHoldEvent = ignore
    ) -> Held:
        return self._recorded(self._provider.resize(held, nodes, cancel, on_event))

    def give_back(self, held: Held, names: Collection[str]) -> Held:
        return self._recorded(self._provider.give_back(held, names))

    def _recorded(self, held: Held) -> Held:
        if held.id in _recordings:
            _recordings[held.id].holds(held)
        return held

    def free(self, held: Held) -> None:
        self._provider.free(held)
        if held.id in _recordings:
            _recordings[held.id].end("freed", _recordings[held.id].freed)

    def leave(self, held: Held) -> None:
        self._provider.leave(held)
        recording = _recordings.pop(held.id, None)
        if recording is not None:
            recording.leave()

    def attach(self, id: str, on_event: OnHoldEvent = ignore) -> Held | Lost:
        return self._provider.attach(id, on_event)


class AttachedProvider(RecordedProvider):
    """What another program held is its next slice. record: of that slice."""

    def __init__(self, provider: Provider, record: SliceRecord, log: str = "") -> None:
        super().__init__(provider, log)
        self._record = record

    def hold(
        self,
        ask: Ask,  # noqa: ARG002
        on_event: OnHoldEvent = ignore,
        cancel: CancelToken = NEVER,  # noqa: ARG002
    ) -> Held:
        """Raises SliceRefused if it is not held any more."""
        record = replace(self._record, process=process_id(), log=self._log or self._record.log)
        recording = _recordings[record.id] = _Recording(record)
        recording.slice = lambda: self._slice()
        recording.happened(HoldEvent(what="held", reason=f"attached by {record.process}"))

        def heard(event: HoldEvent) -> None:
            if event.what != "held":
                recording.happened(event)
            on_event(event)

        held = self._provider.attach(record.id, heard)
        if isinstance(held, Lost):
            _recordings.pop(record.id)
            raise SliceRefused(f"slice {record.id} is not held: {held.reason}")
        listen(answer)
        recording.holds(held)
        return held


class _Recording:
    """The record of one slice as it goes on. freed: why it is freed from outside."""

    def __init__(self, record: SliceRecord) -> None:
        self.record = record
        self.freed = ""
        self.slice: Callable[[], HeldSlice | None] = lambda: None
        self._until: float | None = None
        self._nodes: dict[int, Node] = {}
        self._before = (record.cpu_seconds or 0.0, record.max_rss_bytes or 0)
        self._began = time.time() - time.monotonic()
        self._lock = threading.Lock()

    def happened(self, event: HoldEvent) -> None:
        found = SliceEvent(at=self._now(), what=event.what, reason=event.reason, node=event.node)
        with self._lock:
            if self.record.is_over:
                return
            if event.what == "ended":
                in_time = self._until is not None and found.at > self._until - _OVER_SECONDS
                over = self.record.over("over" if in_time else "lost", found)
                self.record = self._with_used(over)
            else:
                self.record = self.record.happened(found)
            if event.what not in ("held", "resized"):  # its nodes are not known yet
                self._write()

    def holds(self, held: Held) -> None:
        """These nodes, since it was said last that some are."""
        has = [(node, node.ledger.whole) for node in held.nodes]
        with self._lock:
            self._nodes.update((id(node), node) for node in held.nodes)
            record, self._until = self.record, held.until
            known = {node.name for node in record.nodes if node.until is None}
            at = next(e.at for e in reversed(record.events) if e.what in ("held", "resized"))
            new = [
                HeldNode(
                    name=node.name,
                    cores=len(own.cpus),
                    gpus=own.gpus,
                    since=at,
                    devices=tuple((n, len(them)) for n, them in own.devices if n != "gpu"),
                    switch=node.switch,
                )
                for node, own in has
                if node.name not in known
            ]
            jobs = (*record.jobs, *(node.job for node, _ in has if node.job))
            names = {node.name for node, _ in has}
            record = record.given_back(known - names, at)
            record = replace(record, nodes=(*record.nodes, *new), jobs=tuple(dict.fromkeys(jobs)))
            for event in record.events:
                if event.what == "lost" and event.at >= at:  # meanwhile
                    record = record.given_back({event.node}, event.at)
            if record.is_over:  # meanwhile
                record = record.given_back(names, record.ended or at)
            self.record = record
            self._write()

    def _with_used(self, record: SliceRecord) -> SliceRecord:
        """What ran on its nodes for this program, and for those before it."""
        found = [used for node in self._nodes.values() if (used := node.used()) is not None]
        if not found:
            return record
        cpu, peak = self._before
        return replace(
            record,
            cpu_seconds=round(cpu + sum(u.user_seconds + u.system_seconds for u in found), 3),
            max_rss_bytes=max(peak, *(u.max_rss_bytes for u in found)),
        )

    def leave(self) -> None:
        """Its nodes stay held, without this program."""
        with self._lock:
            self.record = self._with_used(self.record)
            self._write()

    def end(self, state: Literal["freed", "refused"], why: str) -> None:
        _recordings.pop(self.record.id, None)
        with self._lock:
            if not self.record.is_over:
                event = SliceEvent(at=self._now(), what=state, reason=why)
                self.record = self._with_used(self.record.over(state, event))
                self._write()

    def _now(self) -> float:
        """By a clock that does not go back."""
        return round(self._began + time.monotonic(), 6)

    def _write(self) -> None:
        _file.write(self.record)


class _RecordFile:
    """The file of this process."""

    def __init__(self) -> None:
        self._fd = -1
        self._slices = 0

    def write(self, record: SliceRecord) -> None:
        with suppress(OSError, RuntimeError):
            if self._fd < 0:
                self._fd = _begun_file(record.process)
            line = json.dumps(to_plain(record), separators=(",", ":")) + "\n"
            self._slices += record.is_over
            if self._slices < _MAX_SLICES:
                os.write(self._fd, line.encode())

    def leave(self) -> None:
        """In a forked child it is its parent's."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


_file = _RecordFile()
_recordings: dict[str, _Recording] = {}


def _begun_file(process: str) -> int:
    place = slices_folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    _drop_oldest(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(place / f"{process}.jsonl", flags, 0o600)


def _begun(pool: Pool, ask: Ask, log: str) -> _Recording:
    record = SliceRecord(
        id=ask.id,
        pool=pool.name,
        kind=pool.kind,
        process=process_id(),
        asked=round(time.time(), 6),
        ask=ask,
        price=pool.price,
        log=log,
    )
    listen(answer)
    recording = _recordings[ask.id] = _Recording(record)
    return recording


def _free_here(id: str, why: str) -> str:
    """Free a slice for another terminal: freed, waits, or "" if it is not held here."""
    recording = _recordings.get(id)
    if recording is None:
        return ""
    recording.freed = why
    held = recording.slice()
    if held is None:
        return "waits"
    held.free_for(why)
    return "freed"


def _drop_oldest(place: Path) -> None:
    names = os.listdir(place)  # noqa: PTH208 - quick, at the first slice of each program
    if len(names) >= _MAX_FILES:
        oldest = sorted((place / name for name in names), key=lambda path: path.stat().st_mtime)
        for path in oldest[:_DROPPED]:
            path.unlink(missing_ok=True)


def _end() -> None:
    for recording in tuple(_recordings.values()):
        if recording.record.ask.lease_seconds is None:
            recording.end("freed", "its program ended")


def _forget_in_child() -> None:
    _file.leave()
    _recordings.clear()


ANSWERS["free"] = _free_here
atexit.register(_end)
os.register_at_fork(after_in_child=_forget_in_child)
