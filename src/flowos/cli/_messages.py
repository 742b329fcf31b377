"""What is said on standard error besides errors: notes, which -q leaves out, and what -v adds."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

_said = argparse.Namespace(quiet=False, verbose=False)
"""Of the command that runs."""


def add_messages(command: argparse.ArgumentParser) -> None:
    """Every command has both, though some have nothing to leave out or to add: a script may give
    one to all. Neither has a default: that of a subcommand would count more than its parent's."""
    group = command.add_mutually_exclusive_group()
    group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        default=argparse.SUPPRESS,
        help="no progress and no notes on standard error, only errors",
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=argparse.SUPPRESS,
        help="say on standard error which programs are started, and each number as it is measured",
    )


def heed_messages(args: argparse.Namespace) -> None:
    """From now on notes and starts are said as these options want it."""
    _said.quiet, _said.verbose = args.quiet, args.verbose
    if args.verbose or "flowos.engine._starts" in sys.modules:
        from flowos.engine import tell_starts  # which others need not load

        tell_starts(_Starts(args.command) if args.verbose else None)


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
