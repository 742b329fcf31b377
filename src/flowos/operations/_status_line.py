"""The last line of a terminal, rewritten while flows run; what is printed meanwhile goes above it.

While the line is there, sys.stdout and sys.stderr clear it before they write, whoever has them. An
output that has not ended its line yet, such as a prompt, keeps the terminal for itself, and so does
what asks for the descriptor of a stream, to write to it or read a terminal in its own way.
"""

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TextIO

from flowos.engine import now
from flowos.model import OnProgress, Progress

_CLEAR = "\r\x1b[K"
_COLUMNS = 80
_STDERR = 2
_INTERVAL_SECONDS = 0.09
_LINES_SECONDS = 1.0
_LINES_SHARE = 0.1


class StatusLine:
    """Shared by all that have progress to show, by number: the lowest, and the highest."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._watchers: set[int] = set()
        self._shown: dict[int, tuple[str, str]] = {}
        self._hooked: list[tuple[Any, str]] = []
        self._drawn = self._unfinished = False
        self._time = 0.0

    def begin(self, number: int) -> None:
        """From now on it is known what is printed: a prompt may be there before the line."""
        with self.lock:
            if not self._watchers:
                self._begin()
            self._watchers.add(number)

    def show(self, number: int, line: str, brief: str) -> None:
        """brief: for where another shares the line."""
        with self.lock:
            self.begin(number)
            self._shown[number] = line, brief
            if not self._unfinished and now() - self._time > _INTERVAL_SECONDS:
                self._time = now()
                self._draw()

    def end(self, number: int) -> None:
        with self.lock:
            self._shown.pop(number, None)
            self._watchers.discard(number)
            self._clear()
            if not self._watchers:
                while self._hooked:
                    delattr(*self._hooked.pop())

    def _begin(self) -> None:
        self._process, self._unfinished = os.getpid(), False
        for stream in {id(each): each for each in (sys.stdout, sys.stderr)}.values():
            if is_terminal(stream):
                with suppress(AttributeError, TypeError):  # a stream of another kind
                    self._hook(stream.buffer, "write", self._above(stream.buffer))
                    self._hook(stream, "fileno", self._alone(stream.fileno))

    def _hook(self, to: Any, name: str, call: Callable[..., Any]) -> None:
        if name not in vars(to):
            setattr(to, name, call)
            self._hooked.append((to, name))

    def _above(self, buffer: Any) -> Callable[[Any], int]:
        """What writes to this buffer, once the line is cleared."""
        write = buffer.write

        def written(data: Any) -> int:
            if not self._watchers or os.getpid() != self._process:
                return int(write(data))
            with self.lock:
                self._clear()
                count = int(write(data))
                if self._shown:
                    buffer.flush()
                if len(data):
                    self._unfinished = bytes(memoryview(data)[-1:]) != b"\n"
                return count

        return written

    def _alone(self, fileno: Callable[[], int]) -> Callable[[], int]:
        """The descriptor; the line is not drawn until a line that is printed ends."""

        def given() -> int:
            if self._watchers and os.getpid() == self._process:
                with self.lock:
                    self._clear()
                    self._unfinished = True
            return fileno()

        return given

    def _draw(self) -> None:
        from flowos.report import cut

        numbers, columns = sorted(self._shown), _columns()
        if not columns:
            return
        (line, outer), (_, inner) = self._shown[numbers[0]], self._shown[numbers[-1]]
        if len(numbers) > 1:
            line = f"{cut(outer, columns // 2 - 3)} | {inner}"
        self._write(_CLEAR + cut(line, columns))
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        """A terminal that is gone shows nothing."""
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        with suppress(OSError):
            os.write(_STDERR, text.encode(encoding, "replace"))


def is_terminal(stream: object) -> bool:
    """Whether a line can be rewritten there."""
    with suppress(AttributeError, OSError, ValueError):
        return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"  # type: ignore[attr-defined]
    return False


def _columns() -> int:
    """The width of a line; 0 where none may be drawn: for a job in the background."""
    columns = 0
    with suppress(OSError):
        columns = os.get_terminal_size(_STDERR).columns
        if os.tcgetpgrp(_STDERR) != os.getpgrp():
            return 0
    return (columns or _COLUMNS) - 1


_line = StatusLine()
_numbers: Iterator[int] = itertools.count()


class TerminalProgress:
    """In the line of the terminal. A slice that a task opens is made later, and has a higher
    number."""

    delay_seconds = 0.5

    def __init__(self) -> None:
        self._number = next(_numbers)

    def begin(self) -> None:
        _line.begin(self._number)

    def show(self, progress: Progress) -> None:
        from flowos.report import progress_line  # takes long, and most runs do not

        _line.show(self._number, progress_line(progress), progress_line(progress, bar=False))

    def end(self, _: Progress | None) -> None:
        _line.end(self._number)


class PrintedProgress:
    """Lines below one another, less often the longer it takes: for a notebook."""

    delay_seconds = 1.0

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began: float | None = None
        self._next = 0.0

    def begin(self) -> None: ...

    def show(self, progress: Progress) -> None:
        time = now()
        if self._began is None:
            self._began = self._next = time
        if time >= self._next:
            self._next = time + max(_LINES_SECONDS, _LINES_SHARE * (time - self._began))
            self._print(progress)

    def end(self, progress: Progress | None) -> None:
        self._began = None
        if progress is not None:
            self._print(progress)

    def _print(self, progress: Progress) -> None:
        from flowos.report import progress_line

        self._out.write(f"{progress_line(progress)}\n")
        self._out.flush()


class CalledProgress:
    """A function of the caller's."""

    delay_seconds = 0.1

    def __init__(self, on_progress: OnProgress) -> None:
        self.show = on_progress

    def begin(self) -> None: ...

    def end(self, progress: Progress | None) -> None:
        if progress is not None:
            self.show(progress)


def shown_progress() -> TerminalProgress | PrintedProgress | None:
    """Where standard error goes: a terminal, a notebook; None for anything else."""
    out = sys.stderr
    if is_terminal(out) and os.isatty(_STDERR):
        return TerminalProgress()
    return PrintedProgress(out) if type(out).__module__ == "ipykernel.iostream" else None
