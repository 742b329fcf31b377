"""Writes the record of this program's run: its slices, what ran on them, and resources used.

    $XDG_DATA_HOME/flowos/processes/ID.json     a `model.Process`

It is written when the first slice is opened, then at most once a second when another is, and at the
end, without a database; `processes.py` moves it into the store for `flowos ps`.
It is locked while its process lives, which distinguishes running processes from lost ones. Errors
of writing are ignored: no flow fails because of its record.

    $XDG_DATA_HOME/flowos/processes/ID.fifo     requests of other terminals, once it has a slice
                                                of a pool
"""

import atexit
import fcntl
import json
import os
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowos import engine
from flowos.engine import MAX_FAILURES, SliceUsage
from flowos.store import default_file

if TYPE_CHECKING:
    from flowos.engine import RequestHandler, RequestListener

_BETWEEN_SECONDS = 1.0
_MAX_RECORDS, _DROPPED = 1000, 100
"""Records that may wait to be moved into a store; beyond that the oldest are removed."""
_MAX_WORD, _MAX_WORDS, _CUT = 200, 50, "..."

_MAX_LOGS = 10

_Use = tuple[int, int, float, int, tuple[str, ...], int, tuple[str, ...]]
_Uses = dict[tuple[str, str, str, str], _Use]
"""Flow, pool, node and environment -> slices, runs, seconds held, results found, logs, how many
runs failed, what is said of the last ones."""
_NAMES = (
    *("flow", "pool", "node", "env"),
    *("slices", "runs", "held_seconds", "hits", "logs", "failed", "failures"),
)


def folder() -> Path:
    """The folder of records."""
    return default_file().parent / "processes"


class ProcessRecord:
    """The record of this process. `add` is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[str, SliceUsage]] = []
        self._over: _Uses = {}
        self._known: dict[str, Any] = {}
        self._fd = -1
        self._written = 0.0
        self._listener: RequestListener | None = None

    def id(self) -> str:
        """Of this process; its record begins with it."""
        with self._lock:
            with suppress(OSError, RuntimeError):
                self._begin()
            return str(self._known["id"])

    def listen(self, answer: "RequestHandler") -> None:
        """Answer requests from now on; the first one that answers does."""
        from flowos.engine import RequestListener

        with self._lock, suppress(OSError, RuntimeError):
            if self._listener is None:
                fifo = folder() / f"{self._known['id']}.fifo"
                self._listener = RequestListener(fifo, answer)

    def add(self, pool: str, usage: SliceUsage) -> None:
        """Add a slice that was opened."""
        with self._lock, suppress(OSError, RuntimeError):
            self._open.append((pool, usage))
            self._begin()
            first = len(self._open) == 1 and not self._over
            if first or time.monotonic() - self._written >= _BETWEEN_SECONDS:
                self._write(state="running")

    def end(self) -> None:
        """Write the end of the process, which exits normally."""
        if self._listener is not None:
            self._listener.close()  # without the lock: it waits for answers, which may take it
        with self._lock, suppress(OSError, RuntimeError):
            if self._fd >= 0:
                self._write(state="ended", ended=engine.utc())
                self.leave()

    def leave(self) -> None:
        """Close without writing: in a forked child the record is its parent's."""
        if self._listener is not None:
            self._listener.close(remove=False)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _begin(self) -> None:
        if not self._known:
            self._known = _this_process()
            self._fd = _begun(f"{self._known['id']}.json")
            self._write(state="running")

    def _write(self, **how: str) -> None:
        uses = self._uses()
        if self._fd < 0:
            return
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        now = {
            **self._known,
            **how,
            "uses": [_plain_use(key, use) for key, use in uses.items()],
            "cpu_seconds": round(sum(u.ru_utime + u.ru_stime for u in used), 3),
            "max_rss_bytes": max(u.ru_maxrss for u in used) << 10,
        }
        text = json.dumps(now).encode()
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))
        self._written = time.monotonic()

    def _uses(self) -> _Uses:
        """Sums by flow, pool, node and environment; ended slices are no longer referenced."""
        self._over = _added_up(self._over, [each for each in self._open if each[1].over])
        self._open = [each for each in self._open if not each[1].over]
        return _added_up(self._over, self._open)


def _added_up(before: _Uses, slices: list[tuple[str, SliceUsage]]) -> _Uses:
    found = dict(before)
    for pool, usage in slices:
        key = (usage.flow, pool, usage.node, usage.env)
        count, runs, seconds, hits, logs, failed, said = found.get(key, (0, 0, 0.0, 0, (), 0, ()))
        seconds += usage.held_seconds
        if usage.log and usage.log not in logs:
            logs = (*logs, usage.log)[-_MAX_LOGS:]
        hits, failed = hits + usage.hits, failed + usage.failed
        said = (*said, *usage.failures)[-MAX_FAILURES:]
        found[key] = (count + 1, runs + usage.runs, seconds, hits, logs, failed, said)
    return found


def _plain_use(key: tuple[str, str, str, str], use: _Use) -> dict[str, object]:
    """A `model.SliceUse`."""
    return dict(zip(_NAMES, (*key, *use[:2], round(use[2], 3), *use[3:]), strict=True))


def _this_process() -> dict[str, Any]:
    """The fields of a `model.Process` that do not change."""
    started = engine.utc()
    words = [*map(_cut, sys.orig_argv[:_MAX_WORDS]), *[_CUT] * (len(sys.orig_argv) > _MAX_WORDS)]
    return {
        "id": f"p-{started[:10]}-{os.urandom(4).hex()}",
        "argv": [word.encode(errors="replace").decode() for word in words],
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "started": started,
    }


def _cut(word: str) -> str:
    return word if len(word) <= _MAX_WORD else word[: _MAX_WORD - len(_CUT)] + _CUT


def _begun(name: str) -> int:
    """Create a record and lock it. Raises OSError if that fails."""
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    _drop_oldest(place)
    fd = os.open(place / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def _drop_oldest(place: Path) -> None:
    names = os.listdir(place)  # noqa: PTH208 - quick, at the first slice of each program
    if len(names) < _MAX_RECORDS:
        return
    oldest = sorted((place / name for name in names), key=lambda path: path.stat().st_mtime)
    for path in oldest[:_DROPPED]:
        fd = locked(path)
        if fd >= 0:
            path.unlink(missing_ok=True)
            os.close(fd)


def locked(path: Path) -> int:
    """A descriptor that holds the record's lock; -1 if its process holds it, or it is gone."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return -1
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return -1
    return fd


def is_running(id: str) -> bool:
    """Whether the process of this record lives."""
    path = folder() / f"{id}.json"
    if not path.exists():
        return False
    fd = locked(path)
    if fd >= 0:
        os.close(fd)
    return fd < 0


_record = ProcessRecord()


def note(pool: str, usage: SliceUsage) -> None:
    """Record a slice that this process opened."""
    _record.add(pool, usage)


def process_id() -> str:
    """The id of this process, under which it is recorded."""
    return _record.id()


def listen(answer: "RequestHandler") -> None:
    """Answer requests of other terminals."""
    _record.listen(answer)


def _end() -> None:
    _record.end()


def _forget_in_child() -> None:
    global _record
    _record.leave()
    _record = ProcessRecord()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget_in_child)
