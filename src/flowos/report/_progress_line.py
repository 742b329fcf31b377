"""Progress as one line for a terminal."""

import math
import unicodedata

from flowos.model import Progress
from flowos.report._wrap import safe

_BAR = 24


def progress_line(progress: Progress, *, bar: bool = True) -> str:
    """Such as:   12 s left  sweep [######..................] 137/500 items

    bar: else the bar and the time left are left out.
    """
    left, line = progress.left_seconds if bar else None, progress.doing
    if progress.total and bar:
        line += f" [{'#' * int(progress.done / progress.total * _BAR):.<{_BAR}}]"
    if progress.detail:
        line += (" " if progress.total and bar else "  ") + progress.detail
    if left is None or 0 < progress.total <= progress.done:
        return safe(line)
    return safe(f"{_duration(left)} left  {line}" if left > 0 else f"time is out  {line}")


def cut(line: str, columns: int) -> str:
    """As much of it as has room; some characters take two columns."""
    room = columns
    for i, each in enumerate(line):
        room -= _columns(each)
        if room < 0:
            return line[:i]
    return line


def _columns(each: str) -> int:
    if unicodedata.combining(each):
        return 0
    return 2 if unicodedata.east_asian_width(each) in "WF" else 1


def _duration(seconds: float) -> str:
    if seconds < 1000:
        return f"{math.ceil(seconds):4} s"
    return f"{seconds / 60:4.0f} min" if seconds < 6000 else f"{seconds / 3600:4.0f} h"
