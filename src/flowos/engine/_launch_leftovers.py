"""The last resort: ends what is left of a launch whose flowos-init was killed."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Set
from pathlib import Path

_PASSES = 20
_PASS_SECONDS = 0.005


def kill_leftovers(sessions: Set[int], folder: Path) -> None:
    """SIGKILL all processes of these sessions, and each flowos-init of this run folder.

    A session has the number of the process that began it: the outermost one, or flowos-init. While
    a member lives the kernel gives that number to no other process; so if a process has it that is
    not ours, the session is over and the number another's.
    """
    word = os.fsencode(folder)
    for _ in range(_PASSES):
        ours = {number for number in sessions if not _is_anothers(number, word)}
        found = [pid for pid in _pids() if _belongs(pid, ours, word)]
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(_PASS_SECONDS)


def _pids() -> Iterator[int]:
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                yield int(entry.name)


def _is_anothers(pid: int, word: bytes) -> bool:
    """One that is about to be a zombie has no words any more."""
    state, _, words = _look(pid)
    return state not in b"ZX" and any(words) and word not in words


def _belongs(pid: int, sessions: Set[int], word: bytes) -> bool:
    state, session, words = _look(pid)
    return state not in b"ZX" and (session in sessions or word in words)


def _look(pid: int) -> tuple[bytes, int, list[bytes]]:
    """State, session and words of its command line; a process that is gone is as good as dead."""
    try:
        # man 5 proc: pid (name) state ppid pgrp session ...; the name may hold anything
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b"X", 0, []
    return stat[0], int(stat[3]), words
