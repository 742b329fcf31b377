"""The last resort: ends what is left of a launch whose runtime or flowos-init was killed.

A process belongs to a launch if it is of one of its sessions, or if a word of its command line is
the launch's run folder or something in it: runtimes are given such words, and hand them to the
helpers that they put into sessions of their own (podman's conmon).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

_PASSES = 20
_PASS_SECONDS = 0.005
_UNMOUNT_SECONDS = 5.0


def kill_leftovers(sessions: Set[int], folder: Path) -> None:
    """SIGKILL all processes of these sessions, and each that names this run folder.

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


def is_named(folder: Path) -> bool:
    """Whether a process still has this run folder in its command line."""
    word = os.fsencode(folder)
    return any(_belongs(pid, frozenset(), word) for pid in _pids())


def end_orphans(folder: Path) -> None:
    """Of a run folder whose supervisor is gone: end what its flowos-init cannot end any more.

    Its numbers mean nothing in another pid namespace, nor after the node was started again.
    """
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    for file in folder.glob("started.*"):
        with contextlib.suppress(OSError, ValueError):
            init, _, session, namespace = map(int, file.read_bytes().split())
            here = namespace == Path("/proc/self/ns/pid").stat().st_ino
            here = here and file.stat().st_mtime > booted
            if here and not _belongs(init, frozenset(), os.fsencode(folder)):
                kill_leftovers({session}, folder)


def unmount(folder: Path) -> None:
    """Undo FUSE mounts there and below, as a killed server leaves them."""
    program = shutil.which("fusermount3") or shutil.which("fusermount")
    for mount in _mounts(folder) if program else ():
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [str(program), "-u", "-z", mount],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_UNMOUNT_SECONDS,
            )


def _mounts(folder: Path) -> Iterable[str]:
    """No path of ours holds what mountinfo would write with a backslash."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in reversed(lines):
        if f"{(place := line.split()[4])}/".startswith(f"{folder}/"):
            yield place


def _pids() -> Iterator[int]:
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                yield int(entry.name)


def _is_anothers(pid: int, word: bytes) -> bool:
    """One that is about to be a zombie has no words any more."""
    state, _, words = _look(pid)
    return state not in b"ZX" and any(words) and not _named_in(words, word)


def _belongs(pid: int, sessions: Set[int], word: bytes) -> bool:
    state, session, words = _look(pid)
    return state not in b"ZX" and (session in sessions or _named_in(words, word))


def _named_in(words: list[bytes], folder: bytes) -> bool:
    return any(word == folder or word.startswith(folder + b"/") for word in words)


def _look(pid: int) -> tuple[bytes, int, list[bytes]]:
    """State, session and words of its command line; a process that is gone is as good as dead."""
    try:
        # man 5 proc: pid (name) state ppid pgrp session ...; the name may hold anything
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b"X", 0, []
    return stat[0], int(stat[3]), words
