"""Standard output and error: what cannot be written to them, JSON, and notes, which -q leaves out.

A full disk, a file size limit or a closed pipe behind standard output ends a command with a code of
its own and without a traceback. What standard error does not take is dropped: a message that cannot
be seen is no reason to lose a result.
"""

import codecs
import io
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, TextIO

from flowos.cli._interrupts import interrupt_main

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from _typeshed import ReadableBuffer


class OutputFailed(KeyboardInterrupt):
    """Standard output does not take what is written; the cause is an OSError.

    It ends a command as Ctrl-C does, and no handler takes it for a failure of its own work. Raised
    in the main thread alone: what another thread writes is dropped, and the command interrupted.
    """


_MIN_COLUMNS = 20

_lost: list[OSError] = []
"""Why what other threads wrote was dropped."""


# These are buffers over a plain descriptor: an interrupt is raised between two lines of Python, and
# one between the kernel's write and the buffer's note of it would have that written twice.


class _Output(io.BufferedWriter):
    """A descriptor shared with the process, whose errors are distinguished from all others."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            _fail(error, self.fileno())
            return _size(data)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            _fail(error, self.fileno())


def _fail(error: OSError, number: int) -> None:
    if threading.current_thread() is threading.main_thread():
        raise OutputFailed from error
    _lost.append(error)
    _to_null(number)
    interrupt_main()


class _Messages(io.BufferedWriter):
    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError:
            self._drop()
            return _size(data)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self._drop()

    def _drop(self) -> None:
        """What is held would be tried again."""
        self.raw.write = _size  # type: ignore[method-assign]
        try:
            super().flush()
        finally:
            del self.raw.write


def _size(data: "ReadableBuffer") -> int:
    return len(memoryview(data).cast("B"))


def watch_streams() -> None:
    """From now on standard output raises OutputFailed, and standard error drops what it must.

    Streams that are no files of the process, as tests put in their place, stay as they are.
    """
    sys.stdout = _over(sys.stdout, _Output)
    sys.stderr = _over(sys.stderr, _Messages)


def finish() -> None:
    """Write what is still held. Raises OutputFailed if that cannot be, or something was dropped."""
    sys.stdout.flush()
    if why := dropped():
        raise OutputFailed from why


def dropped() -> OSError | None:
    """Why what another thread wrote was dropped, if it was; once."""
    return _lost.pop() if _lost else None


def give_up() -> None:
    """Nothing more goes to standard output: the interpreter would try again at its end."""
    with suppress(OSError, ValueError):
        _to_null(sys.stdout.fileno())
        sys.stdout.flush()


def _to_null(number: int) -> None:
    """number: of standard output, which is another than 1 if that was closed."""
    null = os.open(os.devnull, os.O_WRONLY)
    for each in {1, number}:
        os.dup2(null, each)
    os.close(null)


def columns() -> int:
    """Of the terminal. argparse asks for each option, and by shutil: 3 ms to import."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def print_folded(text: str, end: str = "\n") -> None:
    """Print a text, on a terminal with lines that are no wider than it is.

    Not in a pipe, whatever COLUMNS says: some exported it for another program.
    """
    if sys.stdout.isatty():
        from flowos.report import folded

        text = folded(text, max(columns(), _MIN_COLUMNS))
    print(text, end=end)


def text_width(max_columns: int) -> int:
    """How wide the lines of a text are to be: of a terminal that is narrower, as wide as it."""
    return min(max_columns, max(columns(), _MIN_COLUMNS)) if sys.stdout.isatty() else max_columns


def print_json(value: object, *, indent: int | None = 1, file: TextIO | None = None) -> None:
    """Print nouns, or plain values, as strict JSON: null is a number that JSON lacks."""
    import json

    from flowos.model import to_json

    print(json.dumps(to_json(value), allow_nan=False, indent=indent), file=file)


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """A byte of a file's name as it is, else an escape."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


codecs.register_error("flowos-escaped", _escaped)
_ERRORS = {"strict": "backslashreplace", "surrogateescape": "flowos-escaped"}
"""What is printed of a text that the encoding of a stream does not have."""


def _over(stream: TextIO, kind: type[io.BufferedWriter]) -> TextIO:
    """The same stream over a buffer of this kind."""
    if not isinstance(stream, io.TextIOWrapper) or type(stream.buffer) is kind:
        return stream
    try:
        number = stream.fileno()
        stream.flush()
    except (OSError, ValueError):
        return stream
    return io.TextIOWrapper(
        kind(io.FileIO(number, "w", closefd=False)),
        encoding=stream.encoding,
        errors=_ERRORS.get(str(stream.errors), stream.errors),
        line_buffering=stream.line_buffering or stream.write_through,  # of PYTHONUNBUFFERED
        write_through=stream.write_through,
    )


def show_plan(planned: list[dict[str, object]], as_json: bool) -> None:
    """Cases and their command lines, of `measured`'s plan."""
    if as_json:
        print_json(planned)
        return
    for step in planned:
        print_folded(str(step["case"]))
        for key in ("commands", "unmeasured", "remedy"):
            said = step.get(key, ())
            for line in [said] if isinstance(said, str) else said:  # type: ignore[attr-defined]
                if key == "commands":  # which one copies
                    print(f"    {line}")
                else:
                    print_folded(f"    {key}: {line}")


_said = SimpleNamespace(quiet=False, verbose=False)
"""Of the command that runs."""


def add_messages(command: "ArgumentParser") -> None:
    """Every command has both, though some have nothing to leave out or to add: a script may give
    one to all. Neither has a default: a default of the subcommand would overwrite what was given
    before it."""
    from argparse import SUPPRESS  # an interrupt may come before it is loaded

    group = command.add_mutually_exclusive_group()
    group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        default=SUPPRESS,
        help="no progress and no notes on standard error, only errors",
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=SUPPRESS,
        help="say on standard error which programs are started, and each number as it is measured",
    )


def apply_verbosity(args: "Namespace") -> None:
    """From now on notes and starts are said as these options want it.

    Raises UsageError if both are given, one of them to a group or before the command.
    """
    if args.quiet and args.verbose:
        from flowos.model import UsageError  # which others need not load

        raise UsageError("-v is not allowed with -q")
    _said.quiet, _said.verbose = args.quiet, args.verbose
    if args.verbose or "flowos.engine._ask" in sys.modules:
        from flowos.engine import report_starts  # which others need not load

        report_starts(_Starts(args.command) if args.verbose else None)


def note(words: object) -> None:
    """Say what is neither the result nor an error."""
    if not _said.quiet:
        print(words, file=sys.stderr)


def notes(lines: Iterable[str], *, failed: bool) -> None:
    """Say them; failed: they say why, so that -q does not leave them out."""
    for line in lines:
        print(line, file=sys.stderr) if failed else note(line)


class _Starts:
    def __init__(self, command: str) -> None:
        self._command = command

    def __call__(self, argv: Sequence[str | Path]) -> None:
        from shlex import join

        words = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in join(map(str, argv)))
        away = "\r\x1b[K" if sys.stderr.isatty() else ""  # a line of progress
        print(f"{away}flowos {self._command}: starts {words}", file=sys.stderr, flush=True)
