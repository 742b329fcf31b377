"""Progress of long work: one line that is rewritten on a terminal, a line per case elsewhere."""

import math
import shutil
from typing import TextIO

from flowos.model import Progress, Sample


class Live:
    """Shows what is being done, the last number, and about how long the rest will take."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rewrites = out.isatty()
        self._doing = ""
        self._last = ""

    def show_sample(self, sample: Sample) -> None:
        """With the next progress."""
        values = sorted(sample.values)
        middle = values[len(values) // 2] if values else float("nan")
        self._last = f"{sample.metric} {middle:.3g} {sample.unit}"

    def show(self, progress: Progress) -> None:
        if progress.lasting:
            self.end()
            print(progress.doing, file=self._out, flush=True)
        elif self._rewrites:
            self._rewrite(progress)
        elif progress.doing != self._doing:
            print(_line(progress), file=self._out, flush=True)
        self._doing = progress.doing

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


def _line(progress: Progress) -> str:
    if progress.left_seconds is None:
        return progress.doing
    if progress.left_seconds <= 0:
        return f"time is out  {progress.doing}"
    return f"{math.ceil(progress.left_seconds):4} s left  {progress.doing}"
