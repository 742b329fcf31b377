"""The last resort: ends what is left of a launch whose runtime or flowos-init was killed."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.engine._ask import ask, which

_PASSES = 100
_PASS_SECONDS = 0.005
_UNMOUNT_SECONDS = 5.0
_UNUSED_SECONDS = 0.05
_NO_STEP = b"-.-"


class Started:
    """Where a flowos-init says that it runs. `here`: its numbers mean the same to us.

    The first pid namespace has the same number on every machine, so its boot counts too.
    mounts: its mount namespace, if that is not ours too. step: of Slurm, JOB.STEP; "" elsewhere.
    """

    def __init__(self, text: bytes) -> None:
        words = text.split()
        self.init, self.command, self.session, pids, mounts = map(int, words[:5])
        self.pids = pids
        self.here = pids == pid_namespace() and words[5:6] in ([], [boot_id()])
        self.mounts = frozenset({mounts} - {0, _namespace("self", "mnt")})
        self.step = words[7].decode() if words[7:] not in ([], [_NO_STEP]) else ""


class Answers:
    """Of each rank: its status file, once it has ended; where it started."""

    def __init__(self) -> None:
        self.statuses: dict[int, bytes] = {}
        self.started: dict[int, Started] = {}

    @property
    def step(self) -> str:
        """Of Slurm, that all ranks are of; "" where none has said so."""
        return next((at.step for at in self.started.values()), "")

    def may_go_on(self) -> bool:
        """Whether one that did not tell its end may live still."""
        return any(_may_live(at) for rank, at in self.started.items() if rank not in self.statuses)


def answers_in(folder: Path, *, elsewhere: bool = False) -> Answers:
    """What flowos-init of each rank has written into the run folder so far.

    elsewhere: on another machine; what we write there ourselves makes NFS look anew.
    """
    said = Answers()
    if elsewhere:
        with contextlib.suppress(OSError):
            os.utime(folder)
    # another program may have cleaned /tmp
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            what, _, rank = entry.name.partition(".")
            if what == "status" and rank.isdigit():
                said.statuses[int(rank)] = Path(entry.path).read_bytes()
            elif what == "started" and rank.isdigit():
                said.started[int(rank)] = Started(Path(entry.path).read_bytes())
    return said


def _may_live(started: Started) -> bool:
    if not started.here:
        return True
    try:
        os.kill(started.init, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Marks:
    """By what a process is known to be of a launch; any one will do.

    folder: its run folder, or something in it, is a word of the command line. Runtimes are given
    such words, and hand them to the helpers that they put into sessions of their own (conmon).
    sessions: each has the number of the process that began it, the outermost one or flowos-init.
    While a member lives the kernel gives that number to no other process; so if a process has it
    that is not ours, the session is over and the number another's.
    mounts: mount namespaces, as every container has one of its own; the kernel gives the number of
    one that is gone to the next, so those of other launches are to be left out.
    pipes: inodes of the pipes whose writing ends only the launch was given.
    """

    folder: Path
    sessions: frozenset[int] = frozenset()
    mounts: frozenset[int] = frozenset()
    pipes: frozenset[int] = frozenset()


def marks_of(folder: Path, outermost: int, pipes: frozenset[int]) -> Marks:
    """Of a launch with this run folder, of which the outermost process is known."""
    said = [at for at in answers_in(folder).started.values() if at.here]
    return Marks(
        folder=folder,
        # what runs in our terminal is of our own session, as are others
        sessions=frozenset({outermost, *(at.session for at in said)} - {os.getsid(0)}),
        mounts=frozenset[int]().union(*(at.mounts for at in said)) - others_mounts(folder),
        pipes=pipes,
    )


def kill_leftovers(marks: Marks, *, helpers: bool = True) -> None:
    """SIGKILL all processes that have one of these marks and what they started, and wait until they
    are gone.

    helpers: also what only names the run folder, as a runtime that may tidy up behind a command.
    """
    signalled: set[int] = set()
    for _ in range(_PASSES):
        found = _with_children({pid for pid in _pids() if _belongs(pid, marks, helpers=helpers)})
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        # a container's last process takes the mounts down: it has no marks any more, yet is there
        signalled = {pid for pid in signalled | found if _look(pid)[0] not in b"ZX"}
        if not signalled:
            return
        time.sleep(_PASS_SECONDS)


def is_named(folder: Path) -> bool:
    """Whether a process still has this run folder in its command line."""
    return any(_belongs(pid, Marks(folder=folder)) for pid in _pids())


def await_unused(folder: Path, seconds: float) -> None:
    """Wait until no process names this folder, but `seconds` at most.

    For a folder that is unlocked because its supervisor was killed: the launch ends a little later.
    """
    until = time.monotonic() + seconds
    while is_named(folder) and time.monotonic() < until:
        time.sleep(_UNUSED_SECONDS)


def is_monitor(file: Path, folder: Path) -> bool:
    """Whether the process whose number stands in this file, if there is one, works for `folder`."""
    try:
        return _belongs(int(file.read_bytes()), Marks(folder=folder))
    except (OSError, ValueError):
        return False


def end_orphans(folder: Path) -> None:
    """Of a run folder whose supervisor is gone: end what its flowos-init cannot end any more.

    By session alone: the number of a mount namespace is given anew at once.
    """
    own = not (folder / "group").exists()  # else the session is that of a terminal
    for file, started in unfinished(folder):
        lives = _belongs(started.init, Marks(folder=folder))
        if own and not lives and started.here and is_of_these_processes(file):
            kill_leftovers(Marks(folder=folder, sessions=frozenset({started.session})))


def may_run_elsewhere(folder: Path) -> bool:
    """Whether processes listed in this run folder may run in another pid namespace."""
    return any(is_elsewhere(started.pids, file) for file, started in unfinished(folder))


def is_elsewhere(pids: int, file: Path) -> bool:
    """Whether the pid namespace of which a file speaks is another, and may be there still.

    It is not if that was before the node was started.
    """
    return pids != pid_namespace() and file.stat().st_mtime > node_started()


def pid_namespace() -> int:
    return _namespace("self", "pid")


@cache
def boot_id() -> bytes:
    """Of this machine's kernel since it was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b"-"


def unfinished(folder: Path) -> Iterator[tuple[Path, Started]]:
    """Those that began and did not tell how they ended."""
    for file in _in(folder, "started.*"):  # none on a mount whose server is gone
        if not file.with_name(file.name.replace("started", "status")).exists():
            with contextlib.suppress(OSError, ValueError):
                yield file, Started(file.read_bytes())


def is_of_these_processes(file: Path) -> bool:
    """Whether it was written since the first process of our pid namespace began.

    Else its numbers are those of before the node was started, or of a namespace that is gone: the
    kernel gives a namespace's own number to another at once.
    """
    ticks = int(Path("/proc/1/stat").read_bytes().rpartition(b")")[2].split()[19])
    return file.stat().st_mtime > node_started() + ticks / os.sysconf("SC_CLK_TCK")


def node_started() -> float:
    """In seconds since 1970."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def others_mounts(folder: Path) -> frozenset[int]:
    """Mount namespaces in which other launches of this user say that they run."""
    found: frozenset[int] = frozenset()
    launches = [launch for session in _in(folder.parent.parent) for launch in _in(session)]
    for launch in launches:
        for file in _in(launch, "started.*") if launch != folder else ():
            with contextlib.suppress(OSError, ValueError):
                found |= Started(file.read_bytes()).mounts
    return found


def _in(folder: Path, pattern: str = "*") -> list[Path]:
    """What is there, and nothing where the folder goes meanwhile: others' come and go at any time,
    and one glob over all of them would raise (Python before 3.13)."""
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def unmount(folder: Path) -> None:
    """Undo FUSE mounts there and below, as a killed server leaves them."""
    for mount in _mounts(folder):
        program = which("fusermount3") or which("fusermount")
        with contextlib.suppress(OSError):
            ask([str(program), "-u", "-z", mount], seconds=_UNMOUNT_SECONDS)


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


def _with_children(found: set[int]) -> set[int]:
    """A container that is not started yet (of crun, below conmon) has no mark of its own."""
    if found:
        parents = {pid: _parent(pid) for pid in _pids()}
        while new := {pid for pid, parent in parents.items() if parent in found} - found:
            found = found | new
    return found


def _parent(pid: int) -> int:
    """0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def _belongs(pid: int, marks: Marks, *, helpers: bool = True) -> bool:
    state, session, words = _look(pid)
    if state in b"ZX":
        return False
    return (
        (helpers and _names(words, marks.folder))
        or (session in marks.sessions and not _is_anothers(session, marks.folder))
        or (bool(marks.mounts) and _namespace(pid, "mnt") in marks.mounts)
        or (bool(marks.pipes) and _writes(pid, marks.pipes))
    )


def _is_anothers(session: int, folder: Path) -> bool:
    """One that is about to be a zombie has no words any more."""
    state, _, words = _look(session)
    return state not in b"ZX" and any(words) and not _names(words, folder)


def _names(words: list[bytes], folder: Path) -> bool:
    word = os.fsencode(folder)
    return any(each == word or each.startswith(word + b"/") for each in words)


def _look(pid: int) -> tuple[bytes, int, list[bytes]]:
    """State, session and words of its command line; a process that is gone is as good as dead."""
    try:
        # man 5 proc: pid (name) state ppid pgrp session ...; the name may hold anything
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b"X", 0, []
    return stat[0], int(stat[3]), words


def _namespace(pid: int | str, kind: str) -> int:
    """0 if it may not be read: a process of another user."""
    try:
        return Path(f"/proc/{pid}/ns/{kind}").stat().st_ino
    except OSError:
        return 0


def _writes(pid: int, pipes: frozenset[int]) -> bool:
    """Whether it holds a writing end; a process between fork and exec may hold our reading end."""
    try:
        names = [path.name for path in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(_writes_to(pid, name, pipes) for name in names)


def _writes_to(pid: int, fd: str, pipes: frozenset[int]) -> bool:
    try:
        if Path(f"/proc/{pid}/fd/{fd}").stat().st_ino not in pipes:
            return False
        info = Path(f"/proc/{pid}/fdinfo/{fd}").read_text().split()
    except OSError:
        return False
    flags = int(info[info.index("flags:") + 1], 8)
    return flags & os.O_ACCMODE != os.O_RDONLY
