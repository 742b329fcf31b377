"""A chart of kind `matrix`: numbers by two axes, as rows and columns."""

import math
from collections.abc import Iterator, Mapping, Sequence

from flowos._dataclasses import dataclass
from flowos.model import Measurement
from flowos.report._panels import Panel, in_order, panels_of
from flowos.report._report import Report
from flowos.report._units import Scale

SHADES = 9
UNTRUSTED = "!"
"""Follows a number that cannot be trusted, in a table of text."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers by row and column; not every pair need have one. low, high: of those above zero."""

    title: str
    row_axis: str
    column_axis: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Measurement]
    scale: Scale
    low: float
    high: float

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title}, in {self.scale.symbol}" if self.scale.symbol else self.title

    @property
    def corner(self) -> str:
        """What rows and columns are."""
        return f"{self.row_axis}, {self.column_axis}".replace("_", " ")

    def shade(self, m: Measurement) -> int:
        """0 for the smallest number, SHADES - 1 for the largest, by the ratio between them."""
        if m.value <= 0 or self.low == self.high:
            return 0
        part = math.log(m.value / self.low) / math.log(self.high / self.low)
        return round(part * (SHADES - 1))

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Cells as text, without the names of rows and columns."""
        for row in self.rows:
            yield tuple(self._text(self.cells.get((row, column))) for column in self.columns)

    def _text(self, m: Measurement | None) -> str:
        if m is None:
            return ""
        return self.scale.text(m.value) + ("" if m.trust.good else UNTRUSTED)


def matrix_of(panel: Panel) -> Matrix:
    """The panel's numbers: a row for each level of its first series, a column for each of x."""
    axis = panel.chart.series[0]
    cells = {
        (dict(line.key)[axis], x): m
        for line in (*panel.lines, *panel.context)
        for x, m in line.points
    }
    values = [m.value for m in cells.values() if m.value > 0]
    return Matrix(
        title=panel.chart.title + (f", {panel.title}" if panel.title else ""),
        row_axis=axis,
        column_axis=panel.chart.x,
        rows=in_order(row for row, _ in cells),
        columns=in_order(column for _, column in cells),
        cells=cells,
        scale=panel.scale,
        low=min(values, default=0.0),
        high=max(values, default=0.0),
    )


def matrices_of(report: Report) -> Iterator[Matrix]:
    """Each matrix of more than one number."""
    for section in report.sections:
        for chart in section.charts:
            panels: Sequence[Panel] = panels_of(report, section, chart)
            for panel in panels if chart.kind == "matrix" else ():
                found = matrix_of(panel)
                if len(found.cells) > 1:
                    yield found
