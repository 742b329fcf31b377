"""Progress of long work: one line that is rewritten on a terminal, a line per case elsewhere."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from flowos.model import OnProgress, Progress, Sample


class Live:
    """Shows what is being done, the last number, and about how long the rest will take."""

    def __init__(self, out: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
        """quiet: shows nothing. verbose: each number has a line of its own, which stays."""
        self._out = out
        self._quiet = quiet
        self._verbose = verbose
        self._rewrites = out.isatty() and os.environ.get("TERM") != "dumb" and not quiet
        self._shown = ("", "")
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def show_sample(self, sample: Sample) -> None:
        """With the next progress."""
        from flowos.report import number  # which other long work does not need

        values = sorted(sample.values)
        middle = values[len(values) // 2] if values else float("nan")
        self._last = f"{sample.metric} {number(middle, sample.unit, sample.metric)}"
        if self._verbose:
            self.end()
            levels = (f"{axis}={level}" for axis, level in sample.case.levels)
            case = " ".join((sample.case.probe, *levels))
            print(f"round {sample.round}  {case}  {self._last}", file=self._out, flush=True)

    def show(self, progress: Progress) -> None:
        doing = progress.doing, progress.detail
        if self._quiet:
            return
        if progress.lasting:
            self.end()
            print(progress.doing, file=self._out, flush=True)
        elif self._rewrites:
            self._rewrite(progress)
        elif doing != self._shown:
            print(_line(progress), file=self._out, flush=True)
        self._shown = doing

    def end(self) -> None:
        """Leave an empty line behind."""
        if self._rewrites:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _rewrite(self, progress: Progress) -> None:
        last = f"   [{self._last}]" if self._last else ""
        width = shutil.get_terminal_size().columns - 1
        self._out.write("\r\x1b[K" + (_line(progress) + last)[:width])
        self._out.flush()


def live_of(args: argparse.Namespace) -> Live:
    """As -q and -v say."""
    return Live(sys.stderr, quiet=args.quiet, verbose=args.verbose)


@contextmanager
def on_a_terminal(args: argparse.Namespace) -> Iterator[OnProgress]:
    """One line that is rewritten, on a terminal; elsewhere, with --json or --quiet, nothing."""
    with Live(sys.stderr) as live:
        yield live.show if sys.stderr.isatty() and not (args.json or args.quiet) else lambda _: None


def _line(progress: Progress) -> str:
    from flowos.report import progress_line  # takes long, and not all have progress

    return progress_line(progress)
