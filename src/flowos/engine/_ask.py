"""One question to a small program of this machine: its answer is read, and it is waited for.

What a person asked for is a Launch (see `launch/`); this is for tools that say what there is, or
do one thing at once. A listener gets the words of each program that this process starts.
"""

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Self

from flowos._dataclasses import dataclass

_KILLED_SECONDS = 2.0


@dataclass(frozen=True)
class ToolAnswer:
    """What a program printed, and its exit code; of a signal that ended it, the number below 0."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def says(self) -> str:
        """What it complains of, as text."""
        return self.stderr.decode(errors="replace").strip()


def ask(
    argv: Sequence[str | Path],
    *,
    seconds: float | None,
    cwd: Path | str | None = None,
    variables: Mapping[str, str] | None = None,
) -> ToolAnswer:
    """Run a program without input, in this process's own variables unless others are given.

    It writes into memory files. The end of a pipe would be that of every process that inherited it,
    and what a tool leaves behind (a killed `podman unshare`) may run for ever.

    Raises OSError if it cannot be started (FileNotFoundError if the program does not exist).
    Raises TimeoutError, an OSError too, if it does not end within `seconds`: then it is killed with
    its session.
    """
    announce_start(lambda: argv)
    with _memory_file("stdout") as stdout, _memory_file("stderr") as stderr, _Interrupts() as held:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env=variables,
            start_new_session=True,
        )
        try:
            held.deliver()
            if not _ends_within(process.pid, seconds):
                raise TimeoutError(f"{argv[0]}: no answer within {seconds:.0f} s")
        except BaseException:
            _kill(process)
            raise
        return ToolAnswer(process.wait(), _content(stdout), _content(stderr))


class _Interrupts:
    """Held back until `deliver`: one that comes during a start would leave a program running."""

    def __init__(self) -> None:
        handler = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        self._handler = handler if is_main and callable(handler) else None
        self._came: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Self:
        if self._handler is not None:
            signal.signal(signal.SIGINT, lambda *seen: self._came.append(seen))
        return self

    def deliver(self) -> None:
        """From now on they come at once; one that came meanwhile comes now."""
        handler, self._handler = self._handler, None
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
            for seen in self._came[:1]:
                handler(*seen)

    def __exit__(self, *_: object) -> None:
        self.deliver()


def which(program: str) -> str | None:
    """Where it lies, in PATH or by a path. As `shutil.which`, which takes 3 ms to import."""
    folders = [] if "/" in program else os.get_exec_path()
    places = [f"{folder or '.'}/{program}" for folder in folders] or [program]
    return next((p for p in places if os.access(p, os.X_OK) and not Path(p).is_dir()), None)


def _ends_within(pid: int, seconds: float | None) -> bool:
    """`Popen.wait` with a time looks again and again, and sleeps meanwhile: 2 ms of 7."""
    ending = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        waiting.register(ending, select.POLLIN)
        return bool(waiting.poll(None if seconds is None else seconds * 1000))
    finally:
        os.close(ending)


def _memory_file(name: str) -> BinaryIO:
    return os.fdopen(os.memfd_create(name), "w+b", buffering=0)


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a process that hangs in the kernel
        process.wait(_KILLED_SECONDS)


OnStart = Callable[[Sequence[str | Path]], None]

_listener: OnStart | None = None


def report_starts(to: OnStart | None) -> None:
    """From now on it is called before each start, in whatever thread; None: nothing is."""
    global _listener
    _listener = to


def announce_start(argv: Callable[[], Sequence[str | Path]]) -> None:
    """A program is started now; its words are asked for only if one listens."""
    listener = _listener
    if listener is not None:
        listener(argv())
