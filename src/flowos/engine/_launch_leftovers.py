"""The last resort: ends what is left of a launch whose flowos-init was killed."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PASSES = 20
_PASS_SECONDS = 0.005


def kill_leftovers(session: int, folder: Path) -> None:
    """SIGKILL all processes of a session, and each flowos-init of this run folder.

    `session` is the id of the outermost process, which began it and is reaped. While a member
    lives the kernel gives that number to no process; if one has it, the session is another's.
    """
    for _ in range(_PASSES):
        ours = None if Path(f"/proc/{session}").exists() else session
        found = [pid for pid in _pids() if _belongs(pid, ours, os.fsencode(folder))]
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


def _belongs(pid: int, session: int | None, folder: bytes) -> bool:
    try:
        # man 5 proc: pid (name) state ppid pgrp session ...; the name may hold anything
        state, _, _, its_session = _read(pid, "stat").rpartition(b")")[2].split()[:4]
        words = _read(pid, "cmdline").split(b"\0")
    except (OSError, ValueError):  # it ended meanwhile
        return False
    return state not in b"ZX" and (int(its_session) == session or folder in words)


def _read(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()
