"""A file of a device that one program has at a time: those of ours take turns, a call each."""

import fcntl
import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from flowos.model import DeviceError

__flowos_frames__ = True
_OTHERS_SECONDS = 10.0
_WORDS = 80
_NEXT, _OURS = 0, 1
"""Bytes of the file that programs of ours lock, which the kernel takes back: the first that
waits, which thus is before the one that had it last, and the one that has it."""
_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def turn_at(port: str) -> threading.Lock:
    """Tasks of a program take turns at a port, however long each is."""
    return _turns[os.path.realpath(port)]


def have_alone(fd: int, port: str) -> None:
    """Programs of ours take turns, as long as those take; others are not waited for.

    Raises DeviceError if another program has it.
    """
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, _NEXT)
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, _OURS)
    fcntl.lockf(fd, fcntl.LOCK_UN, 1, _NEXT)
    until = time.monotonic() + _OTHERS_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                by = f"{_owner(fd) or 'another program'} has it open"
                raise DeviceError(f"{port}: {by}") from None
            time.sleep(0.005)


def _owner(fd: int) -> str:
    """The process that has its lock; "" if that is not seen."""
    facts = os.fstat(fd)
    device = facts.st_dev
    file = f"{os.major(device):02x}:{os.minor(device):02x}:{facts.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if "FLOCK" in words and file in words:
                pid = words[words.index(file) - 1]
                program = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                return f"process {pid} ({program.decode(errors='replace').strip()[:_WORDS]})"
    return ""
