"""The file of a device, which all users of the node see: its lock is the device's, its text what is
known of it. The kernel gives the lock back with its program; the text goes when the node is booted.
"""

import fcntl
import getpass
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flowos._dataclasses import replace
from flowos.model import DeviceError, DeviceOwner, DeviceRecord, NodeDevice, from_plain, to_plain

_FOLDERS = (Path("/run/lock"), Path("/tmp"))
_NAME = "flowos-devices"
_MAX_BYTES = 1 << 14
_PATIENCE_SECONDS, _LOOK_SECONDS = 1.0, 0.02
"""A look at a device, as by `flowos device list`, takes its lock for a moment."""
_PROGRAM_CHARS = 80
_GIVEN = "FLOWOS_DEVICES_FPGA"
"""Says to a task which ones it has."""


class DeviceFile:
    """Raises DeviceError if it cannot be used."""

    def __init__(self, device: NodeDevice) -> None:
        self.device = device
        place = re.sub(r"[^\w.:-]", "_", f"{device.driver}@{device.at}")
        self.path = devices_folder() / place
        self._fd = -1

    def record(self) -> DeviceRecord:
        """As it is now: without an owner if no program holds the lock, or one for this task."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return DeviceRecord()
        try:
            found = _read(fd)
            held = found.owner is not None and not _try_lock(fd, fcntl.LOCK_SH)
            return found if held and not self._is_lent(found) else replace(found, owner=None)
        finally:
            os.close(fd)

    def acquire(self) -> DeviceRecord:
        """Take it for this program; as a task of a program that holds it, share that one's.

        Raises DeviceError, which names the owner, if another program holds it.
        """
        owner = _this_program()  # ready: until it is written, others read that of the last one
        fd, until = self._opened(), time.monotonic() + _PATIENCE_SECONDS
        while not _try_lock(fd, fcntl.LOCK_EX):
            found = _read(fd)
            if self._is_lent(found):
                os.close(fd)
                return found
            if time.monotonic() > until:
                os.close(fd)
                raise DeviceError(f"{self.device.name}: in use by {owner_words(found.owner)}")
            time.sleep(_LOOK_SECONDS)
        self._fd = fd
        return self.write(replace(_read(fd), owner=owner))

    def write(self, record: DeviceRecord) -> DeviceRecord:
        """For the program that holds it, and its tasks."""
        text = json.dumps(to_plain(record)).encode()
        fd = self._fd if self._fd >= 0 else self._opened()
        os.pwrite(fd, text, 0)
        os.ftruncate(fd, len(text))
        if fd != self._fd:
            os.close(fd)
        return record

    def release(self) -> None:
        """Twice is once."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                self._fd = fd
                self.write(replace(_read(fd), owner=None))
            self._fd = -1
            fcntl.flock(fd, fcntl.LOCK_UN)  # a forked child may have the descriptor too
            os.close(fd)

    def _is_lent(self, record: DeviceRecord) -> bool:
        """Whether this is a task of the program that holds it, which has this one."""
        given = re.split("[, ]", os.environ.get(_GIVEN, ""))
        owner = record.owner
        return owner is not None and self.device.name in given and owner.pid in _ancestors()

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            try:
                fd = os.open(self.path, flags)
            except FileNotFoundError:
                fd = os.open(self.path, flags | os.O_CREAT, 0o666)
                with suppress(PermissionError):
                    os.fchmod(fd, 0o666)  # other users take their turns
        except OSError as error:
            raise DeviceError(
                f"{self.device.name}: its lock {self.path} cannot be opened: {error.strerror}; "
                "remove it, or name another folder in FLOWOS_DEVICES_DIR"
            ) from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise DeviceError(f"{self.device.name}: its lock {self.path} is no file: remove it")
        return fd


def devices_folder() -> Path:
    """Where the files are: all programs of a node have to mean the same folder.

    Raises DeviceError if there is none.
    """
    if named := os.environ.get("FLOWOS_DEVICES_DIR", ""):
        folder = Path(named)
    else:
        folder = next((f for f in _FOLDERS if os.access(f, os.W_OK)), _FOLDERS[-1]) / _NAME
    try:
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            folder.chmod(0o1777)  # for all users; each removes only what is its own
        if folder.is_symlink() or not folder.is_dir():
            raise NotADirectoryError(0, "it is no folder")
    except OSError as error:
        raise DeviceError(f"devices cannot be locked in {folder}: {error.strerror}") from error
    return folder


def owner_words(owner: DeviceOwner | None) -> str:
    if owner is None:
        return "a program that does not say its name"
    return f"process {owner.pid} of {owner.user} since {_clock(owner.since)} ({owner.program})"


def _try_lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(fd: int) -> DeviceRecord:
    """What other users wrote is believed as far as it is a record at all."""
    try:
        text = os.pread(fd, _MAX_BYTES, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        found = from_plain(DeviceRecord, json.loads(text or b"{}"))
        return _plain_text(found)
    except (OSError, ValueError, OverflowError, RecursionError):
        return DeviceRecord()


def _plain_text(record: DeviceRecord) -> DeviceRecord:
    """Fit for a line on a terminal. Raises as time.localtime for a time that is none."""
    owner = record.owner
    if owner is not None:
        _clock(owner.since)
        user, program = _printable(owner.user), _printable(owner.program)
        owner = replace(owner, user=user, program=program)
    loaded, out = _printable(record.loaded), _printable(record.out)
    return replace(record, owner=owner, loaded=loaded, out=out)


def _clock(since: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(since))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _this_program() -> DeviceOwner:
    program = _printable(" ".join(sys.argv))[:_PROGRAM_CHARS] or "python"
    return DeviceOwner(pid=os.getpid(), user=_user(), program=program, since=time.time())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _ancestors() -> Iterator[int]:
    pid = os.getpid()
    while pid > 1:
        try:
            said = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        pid = int(said.rpartition(")")[2].split()[1])
        yield pid
