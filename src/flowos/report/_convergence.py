"""Convergence plot: values that fall towards a goal, and the plot in ASCII."""

import math
from collections.abc import Sequence
from itertools import chain, count

from flowos._dataclasses import dataclass
from flowos.report._units import digits

_COLUMNS, _MAX_ROWS = 79, 16
_BEFORE = 7
"""Columns of a label and the axis."""
_MAX_POINTS = 400

Point = tuple[int, float]
"""Step and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergencePlot:
    """Values over steps, on a logarithmic scale. goal: 0 for none."""

    title: str
    points: tuple[Point, ...]
    goal: float = 0.0
    what: str = "relative residual"
    steps: str = "iterations"

    @property
    def drawn(self) -> tuple[Point, ...]:
        """Points that fit a logarithmic scale, thinned to a visible number; the ends stay."""
        fit = [p for p in self.points if math.isfinite(p[1]) and p[1] > 0]
        stride = -(-len(fit) // _MAX_POINTS) or 1
        return tuple((*fit[:-1:stride], *fit[-1:]))

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest drawn value, including the goal."""
        values = [value for _, value in self.drawn]
        return min(values + [self.goal] * (self.goal > 0)), max(values)


def convergence_text(plot: ConvergencePlot, columns: int = _COLUMNS) -> str:
    """The curve in ASCII, with its goal as a dashed line; empty if there is nothing to draw."""
    points = plot.drawn
    if not points:
        return ""
    grid = _Grid.around(plot, max(columns - _BEFORE, 1))
    if plot.goal > 0:
        grid.dash(plot.goal)
    for step, value in points:
        grid.mark(step, value)
    goal = f", - - goal {digits(plot.goal)}" if plot.goal > 0 else ""
    return "\n".join((f"{plot.what}{goal}", *grid.lines(plot.steps))) + "\n"


class _Grid:
    def __init__(
        self, top: int, decades: float, rows: int, ends: tuple[int, int], width: int
    ) -> None:
        """top: exponent of the first row; each further row is `decades` decades lower. ends: the
        first and the last step.
        """
        self._top, self._decades = top, decades
        (self._first, self._last), self._width = ends, width
        self._cells = [[" "] * width for _ in range(rows)]

    @classmethod
    def around(cls, plot: ConvergencePlot, width: int) -> "_Grid":
        low, high = plot.ends
        top, bottom = math.ceil(math.log10(high)), math.floor(math.log10(low))
        span = max(1, top - bottom)
        decades = next(d for d in chain((0.5,), count(1)) if span <= d * _MAX_ROWS)
        rows = math.ceil(span / decades) + 1
        return cls(top, decades, rows, (plot.drawn[0][0], plot.drawn[-1][0]), width)

    def dash(self, value: float) -> None:
        row = self._cells[self._row(value)]
        row[::2] = "-" * len(row[::2])

    def mark(self, step: int, value: float) -> None:
        steps = max(1, self._last - self._first)
        column = round((step - self._first) / steps * (self._width - 1))
        self._cells[self._row(value)][column] = "*"

    def lines(self, steps: str) -> Sequence[str]:
        rows = [
            f"{self._label(number)} |{''.join(cells)}".rstrip()
            for number, cells in enumerate(self._cells)
        ]
        first = str(self._first)
        last = f"{self._last} {steps}" if self._last > self._first else steps
        under = first + last.rjust(self._width - len(first))
        return (*rows, f"      +{'-' * self._width}", f"       {under}")

    def _row(self, value: float) -> int:
        return round((self._top - math.log10(value)) / self._decades)

    def _label(self, row: int) -> str:
        down = float(row * self._decades)
        return f"1e{self._top - int(down):+03d}" if down.is_integer() else " " * 5
