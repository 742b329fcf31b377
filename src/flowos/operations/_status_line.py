"""The last line of a terminal, rewritten while flows run; what is printed meanwhile goes above it.

While the line is there, sys.stdout and sys.stderr clear it before they write. An output that has
not ended its line yet, such as a prompt, keeps the terminal for itself, and so does what asks for
the descriptor of a stream, to write to it or read a terminal in its own way.
"""

import itertools
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from operator import itemgetter
from typing import Any, TextIO

from flowos.engine import now
from flowos.model import OnProgress, Progress
from flowos.report import cut, progress_line

_CLEAR = "\r\x1b[K"
_STREAMS = ("stdout", "stderr")
_DIRECTLY = ("fileno", "buffer", "detach", "reconfigure")
_COLUMNS = 80
_LINES_SECONDS = 1.0
_LINES_SHARE = 0.1


class StatusLine:
    """Shared by all that have progress to show, by number: the lowest, and the highest."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.process = os.getpid()
        self.unfinished = False
        self._progress: dict[int, Progress] = {}
        self._drawn = False
        self._out: TextIO | None = None

    @property
    def on(self) -> bool:
        return bool(self._progress) and os.getpid() == self.process

    def show(self, number: int, progress: Progress) -> None:
        with self.lock:
            if not self._progress:
                self.process, self.unfinished = os.getpid(), False
                self._out = self._taken()
            self._progress[number] = progress
            if not self.unfinished:
                self._draw()

    def end(self, number: int) -> None:
        with self.lock:
            self._progress.pop(number, None)
            self.clear()
            if not self._progress:
                _give_back()

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write(_CLEAR)

    def give_way(self) -> None:
        """Until something is printed that ends its line."""
        with self.lock:
            if self.on:
                self.clear()
                self.unfinished = True

    def _draw(self) -> None:
        shown = [progress for _, progress in sorted(self._progress.items(), key=itemgetter(0))]
        columns = _columns(self._out)
        if columns:
            line = progress_line(shown[0])
            if len(shown) > 1:
                outer, inner = (progress_line(each, bar=False) for each in (shown[0], shown[-1]))
                line = f"{cut(outer, columns // 2 - 3)} | {inner}"
            self._write(_CLEAR + cut(line, columns))
            self._drawn = True

    def _write(self, text: str) -> None:
        """A terminal that is gone shows nothing."""
        if self._out is not None:
            encoding = self._out.encoding or "utf-8"
            with suppress(OSError, ValueError):
                self._out.write(text.encode(encoding, "replace").decode(encoding))
                self._out.flush()

    def _taken(self) -> TextIO | None:
        """Streams to a terminal are replaced by those that clear the line first."""
        for name in _STREAMS:
            stream = getattr(sys, name)
            if is_terminal(stream) and not isinstance(stream, _Above):
                setattr(sys, name, _Above(stream, self))
        out = sys.stderr
        return out.stream if isinstance(out, _Above) else out


class _Above:
    """A stream to the terminal that has the line."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self.stream = stream
        self._line = line

    def write(self, text: str) -> int:
        line = self._line
        if not text or not line.on:
            return self.stream.write(text)
        with line.lock:
            line.clear()
            written = self.stream.write(text)
            line.unfinished = not text.endswith("\n")
            return written

    def writelines(self, lines: Iterable[str]) -> None:
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        if name in _DIRECTLY:
            self._line.give_way()
        return getattr(self.stream, name)


def _give_back() -> None:
    for name in _STREAMS:
        stream = getattr(sys, name)
        if isinstance(stream, _Above):
            setattr(sys, name, stream.stream)


def is_terminal(stream: object) -> bool:
    """Whether a line can be rewritten there."""
    with suppress(AttributeError, OSError, ValueError):
        return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"  # type: ignore[attr-defined]
    return False


def _columns(out: TextIO | None) -> int:
    """The width of a line; 0 where none may be drawn: for a job in the background."""
    if out is None:
        return 0
    columns = 0
    with suppress(OSError, ValueError):
        fd = out.fileno()
        columns = os.get_terminal_size(fd).columns
        if os.tcgetpgrp(fd) != os.getpgrp():
            return 0
    return (columns or _COLUMNS) - 1


_line = StatusLine()
_numbers = itertools.count()


class TerminalProgress:
    """In the line of the terminal. A slice that a task opens is made later, and has a higher
    number."""

    delay_seconds = 0.5

    def __init__(self) -> None:
        self._number = next(_numbers)

    def show(self, progress: Progress) -> None:
        _line.show(self._number, progress)

    def end(self, _: Progress) -> None:
        _line.end(self._number)


class PrintedProgress:
    """Lines below one another, less often the longer it takes: for a notebook."""

    delay_seconds = 1.0

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began: float | None = None
        self._next = 0.0

    def show(self, progress: Progress) -> None:
        time = now()
        if self._began is None:
            self._began = self._next = time
        if time >= self._next:
            self._next = time + max(_LINES_SECONDS, _LINES_SHARE * (time - self._began))
            self._print(progress)

    def end(self, progress: Progress) -> None:
        self._began = None
        self._print(progress)

    def _print(self, progress: Progress) -> None:
        self._out.write(f"{progress_line(progress)}\n")
        self._out.flush()


class CalledProgress:
    """A function of the caller's."""

    delay_seconds = 0.1

    def __init__(self, on_progress: OnProgress) -> None:
        self.show = self.end = on_progress


def shown_progress() -> TerminalProgress | PrintedProgress | None:
    """Where standard error goes: a terminal, a notebook; None for anything else."""
    out = sys.stderr
    if is_terminal(out):
        return TerminalProgress()
    return PrintedProgress(out) if type(out).__module__ == "ipykernel.iostream" else None
