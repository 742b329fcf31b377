"""Results in a folder: one append-only journal, and large values and files by digest.

    PATH/journal             records: mark, checksum, length, payload
    PATH/values/SHA256       a value's pickle that is too large for the journal, a file, a folder
    PATH/tasks/CODE          what a task's code was made of, see `_key_parts`

Processes share a folder: records are appended under an flock, and each reads what the others
appended. A process that is killed loses nothing that it appended; a record that it left in halves
is cut off by the next one. Damage in the middle is skipped up to the next whole record.
The journal is flushed to the disk at most once a second and when it is closed; a machine that loses
power may lose the last second. What was not flushed is never taken for whole: records have
checksums, and values are compared with their digests.
Values are pickles, so a folder or journal of another user, or that others may write, is refused.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from flowos._dataclasses import replace
from flowos.engine.results._file_digest import copy_file, file_digest
from flowos.engine.results._key_parts import keep_only_parts
from flowos.engine.results._record import (
    MARK,
    KeptResult,
    frame_of,
    outline_of,
    payload_of,
    result_of,
)
from flowos.model import SliceRefused

HEADER = b"flowos results 2\n"
INLINE_BYTES = 64 * 1024
_SEARCH_BYTES = 1 << 20
_FLUSH_SECONDS = 1.0
_ABANDONED_SECONDS = 86400.0


class Journal:
    """An open folder of results. Thread-safe; a forked child opens it again by itself.

    kind: what messages call it. size_bytes: of all that was kept, as far as it is known here.
    damaged: keys of results that were to be read, and whose value is gone or another.
    Raises SliceRefused for a folder that cannot be used.
    """

    def __init__(self, path: Path, kind: str = "journal") -> None:
        self.path = path
        self.name = f"{kind} {path}"
        self._kind = kind
        self.size_bytes = 0
        self.damaged: set[bytes] = set()
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._at: dict[bytes, int] = {}
        self._codes: Counter[tuple[bytes, bytes]] = Counter()
        self._fd = -1
        self._end = 0
        self._flushed = time.monotonic()
        self._dirty = False
        try:
            _make_own_folder(path, kind)
            self._open()
            with self._held():
                pass
        except OSError as error:
            raise SliceRefused(
                f"{self.name}: it cannot be opened: {error.strerror or error}"
            ) from error

    def get(self, key: bytes) -> KeptResult | None:
        """The last result of this key."""
        with self._lock:
            if os.fstat(self._fd).st_size > self._end:
                with self._held():
                    pass
            at = self._at.get(key)
            found = None if at is None else self._record(at)
        if found is None or not found.large:
            return found
        body = self._value(found.references[0])
        if body is None:
            self.forget(key)
            self.damaged.add(key)
            return None
        return replace(found, large=False, body=body, references=found.references[1:])

    def forget(self, key: bytes) -> None:
        """Its result cannot be used: the next one takes its place."""
        with self._lock:
            self._at.pop(key, None)

    def put(self, kept: KeptResult) -> None:
        """Append a result. Raises OSError if that fails: then nothing is changed."""
        if len(kept.body) > INLINE_BYTES:
            digest = self._keep_bytes(kept.body)
            references, size = (digest, *kept.references), kept.size_bytes + len(kept.body)
            kept = replace(kept, large=True, body=b"", references=references, size_bytes=size)
        frame = frame_of(kept)
        with self._lock, self._held():
            if kept.key in self._at:  # another process was as quick
                return
            try:
                _write_all(self._fd, frame)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._fd, self._end)
                raise
            self._at[kept.key] = self._end
            self._end += len(frame)
            self.size_bytes += len(frame) + kept.size_bytes
            self._codes[kept.label.encode(), kept.code] += 1
            self._dirty = True
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def keep_file(self, source: Path) -> tuple[bytes, int]:
        """Copy a file or folder to the values; its digest and size in bytes."""
        with self._new_value() as new:
            copy_file(source, new)
            digest = file_digest(new)
            self._publish(new, digest)
        return digest, _size(self.path / "values" / digest.hex())

    def restore_file(self, digest: bytes, target: Path) -> bool:
        """Copy a file or folder of the values; whether it is there and whole."""
        place = self.path / "values" / digest.hex()
        try:
            if not (place.is_file() or place.is_dir()):
                return False
            copy_file(place, target)
            return file_digest(target) == digest
        except OSError:
            return False

    def records(self) -> list[KeptResult]:
        """The last result of each key, the first written first; without large bodies."""
        with self._lock:
            with self._held():
                pass
            return self._all()

    def codes(self) -> dict[str, dict[bytes, int]]:
        """Of the tasks of each name how many results there are of each code."""
        found: dict[str, dict[bytes, int]] = {}
        with self._lock:
            for (name, code), count in self._codes.items():
                found.setdefault(name.decode(errors="replace"), {})[code] = count
        return found

    def keep_only(self, choose: Callable[[list[KeptResult]], list[KeptResult]]) -> int:
        """Remove all results but those chosen; how many. Other processes go on with what is left.

        choose: takes `records()`.
        """
        with self._lock, self._held():
            before = self._all()
            left = choose(before)
            new = self.path / f".journal-{os.getpid()}"
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write_all(fd, HEADER + b"".join(map(frame_of, left)))
                os.fsync(fd)
            finally:
                os.close(fd)
            new.rename(self.path / "journal")
            self._open()
        used = {digest.hex() for each in left for digest in each.references}
        for value in (self.path / "values").iterdir():
            if value.name not in used and not _is_being_written(value):
                _remove(value)
        keep_only_parts(self.path, {each.code for each in left})
        return len(before) - len(left)

    def close(self) -> None:
        """Flush, and give back the descriptor."""
        with self._lock:
            if self._fd >= 0:
                if self._dirty:
                    self._flush()
                os.close(self._fd)
                self._fd = -1

    def _open(self) -> None:
        """Open the journal as it is now, with nothing read yet."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path / "journal", flags, 0o600)
        _refuse_others(self.path / "journal", os.fstat(fd), self._kind)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._pid = fd, os.getpid()
        self._forget_all()

    def _forget_all(self) -> None:
        """Nothing was read yet."""
        self._end = self.size_bytes = 0
        self._at.clear()
        self._codes.clear()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """With the journal locked, and all in it read. Under the lock of threads."""
        if self._pid != os.getpid():  # a forked child would share its parent's lock
            self._open()
        while True:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.fstat(self._fd).st_nlink:
                break
            self._open()  # it was replaced by `keep_only`; the old lock goes with its descriptor
        try:
            self._read_new()
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _read_new(self) -> None:
        """Take in what others appended; cut off what a killed process left in halves."""
        size = os.fstat(self._fd).st_size
        if size == self._end > 0:
            return
        if size < self._end:  # cut by hand
            self._forget_all()
        if self._end == 0:
            self._end = self._read_header()
        at = self._end
        while at < size:
            found = self._frame_at(at)
            if found is not None:
                key, length, elsewhere, task = found
                self._at[key] = at
                self._codes[task] += 1
                at += length
                self.size_bytes += length + elsewhere
                continue
            after = self._next_whole(at + 1, size)
            if after is None:
                os.ftruncate(self._fd, at)
                self._note(f"{size - at} damaged bytes at its end were cut off")
                break
            self._note(f"{after - at} damaged bytes in it were left out")
            at = after
        self._end = at

    def _read_header(self) -> int:
        head = os.pread(self._fd, len(HEADER), 0)
        if head == HEADER:
            return len(HEADER)
        if head == HEADER[: len(head)]:
            os.ftruncate(self._fd, 0)
            _write_all(self._fd, HEADER)
            return len(HEADER)
        if self._next_whole(0, os.fstat(self._fd).st_size) is None:
            raise SliceRefused(
                f"{self.name}: its file 'journal' is none that this FlowOS writes; "
                "name another folder"
            )
        self._note(f"its first {len(HEADER)} bytes are damaged")
        return len(HEADER)

    def _frame_at(self, at: int) -> tuple[bytes, int, int, tuple[bytes, bytes]] | None:
        """The outline of the record there; None where none is whole."""
        payload = payload_of(partial(os.pread, self._fd), at)
        return None if payload is None else outline_of(payload)

    def _next_whole(self, at: int, size: int) -> int | None:
        while at < size:
            block = os.pread(self._fd, _SEARCH_BYTES, at)
            found = block.find(MARK)
            if found < 0:
                at += max(1, len(block) - len(MARK) + 1)
            elif self._frame_at(at + found) is not None:
                return at + found
            else:
                at += found + 1
        return None

    def _all(self) -> list[KeptResult]:
        found = [self._record(at) for at in sorted(self._at.values())]
        return [each for each in found if each is not None]

    def _record(self, at: int) -> KeptResult | None:
        payload = payload_of(partial(os.pread, self._fd), at)
        return None if payload is None else result_of(payload)

    def _value(self, digest: bytes) -> bytes | None:
        """What is kept under this digest; None where it is gone or damaged."""
        place = self.path / "values" / digest.hex()
        try:
            if not place.is_file():
                return None
            found = place.read_bytes()
        except OSError:
            return None
        return found if hashlib.sha256(found).digest() == digest else None

    def _keep_bytes(self, content: bytes) -> bytes:
        digest = hashlib.sha256(content).digest()
        with self._new_value() as new:
            new.write_bytes(content)
            self._publish(new, digest)
        return digest

    @contextmanager
    def _new_value(self) -> Iterator[Path]:
        """A name for a new value, which is gone afterwards unless it was published."""
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=self.path / "values"))
        try:
            yield folder / "value"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _publish(self, new: Path, digest: bytes) -> None:
        place = self.path / "values" / digest.hex()
        if place.is_dir():
            return  # a folder cannot be replaced by a rename, and has the same content
        new.rename(place)

    def _flush(self) -> None:
        self._flushed, self._dirty = time.monotonic(), False
        with suppress(OSError, ValueError):
            os.fdatasync(self._fd)

    def _note(self, what: str) -> None:
        self.notes.append(f"{self.name}: {what}; the rest is used")


def newest(results: list[KeptResult], max_bytes: int) -> list[KeptResult]:
    """Those that take up to `max_bytes` together, the newest first."""
    left: list[KeptResult] = []
    for each in sorted(results, key=lambda kept: kept.when, reverse=True):
        max_bytes -= each.total_bytes
        if max_bytes < 0:
            break
        left.append(each)
    return left


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _make_own_folder(path: Path, kind: str) -> None:
    """Raises SliceRefused if it cannot be created, or another user could put results into it."""
    if path.exists() and not path.is_dir():
        raise SliceRefused(f"{kind} {path}: it is no folder; name a folder, new or its own")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SliceRefused(f"{kind} {path}: it cannot be created: {error.strerror}") from error
    _refuse_others(path, path.stat(), kind)
    (path / "values").mkdir(mode=0o700, exist_ok=True)
    _refuse_others(path / "values", (path / "values").lstat(), kind)


def _refuse_others(path: Path, about: os.stat_result, kind: str) -> None:
    if about.st_uid != os.geteuid():
        raise SliceRefused(
            f"{kind}: {path} belongs to user {about.st_uid}, and results are read as pickles, "
            "which could run that user's code; name a folder of your own"
        )
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SliceRefused(
            f"{kind}: {path} may be written by others, and results are read as pickles, which "
            f"could run their code: chmod go-w {path}"
        )


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*"))


def _is_being_written(value: Path) -> bool:
    return value.name[0] == "." and time.time() - value.stat().st_mtime < _ABANDONED_SECONDS


def _remove(value: Path) -> None:
    if value.is_dir():
        shutil.rmtree(value, ignore_errors=True)
    else:
        value.unlink(missing_ok=True)
