"""Renders every number as a table, accessible by keyboard and screen reader."""

from collections.abc import Collection, Sequence

from flowos.model import Measurement, counted
from flowos.report._panels import Panel, in_order, varying
from flowos.report._units import Scale
from flowos.report._words import share_text, spread_of, trust_of
from flowos.report.page._marks import people
from flowos.report.page._markup import Markup, join, tag

_NUMBERS = ("median", "middle half", "best", "count", "of measured ceiling", "of nominal", "trust")

MAX_ROWS_OF_A_MATRIX = 600
"""More would make the page too large; their numbers stand in the matrix."""


def scrolled(
    caption: str,
    names: Sequence[str],
    rows: Sequence[Markup],
    name: str,
    kind: str | None = None,
    numeric: Collection[str] = _NUMBERS[:-1],
) -> Markup:
    """A table that scrolls inside its own focusable box. kind: its class. numeric: columns whose
    names are on the right."""
    sides = (("n" if n in numeric else None) for n in names)
    named = zip(names, sides, strict=True)
    head = tag("tr", *(tag("th", n, scope="col", class_=side) for n, side in named))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", tag("span", caption), id=name),
            tag("thead", head),
            tag("tbody", *rows),
            class_=kind,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_labelledby=name,
    )


def panel_table(panel: Panel, name: str) -> Markup:
    """All measurements of a panel, including those that the plot merges or draws in grey."""
    chart = panel.chart
    facets = {axis for axis, _ in panel.facets}
    varied = [a for a in varying(panel.rows) if a not in facets and a != chart.x]
    axes = [chart.x, *varied]
    metrics = len({m.metric for m in panel.rows}) > 1
    names = [*axes, *(["metric"] if metrics else []), *_NUMBERS]
    caption = chart.title + (f", {panel.title}" if panel.title else "") + _constants(panel, axes)
    if chart.kind == "matrix" and len(panel.rows) > MAX_ROWS_OF_A_MATRIX:
        return tag("p", "Spread and trust of each number: see the CSV or JSON.", class_="note")
    rows = [_row(m, axes, metrics, panel.scale) for m in _sorted(panel.rows, chart.x)]
    count = f"The numbers: {counted(len(rows), 'row')}"
    return tag("details", tag("summary", count), scrolled(caption, names, rows, name))


def _constants(panel: Panel, shown: Sequence[str]) -> str:
    """Levels common to all rows, stated once."""
    first = panel.rows[0].case
    varied = {*varying(panel.rows), *shown, *(axis for axis, _ in panel.facets)}
    same = [f"{axis} {level}" for axis, level in first.levels if axis not in varied and level]
    return f". All with {', '.join(same)}" if same else ""


def _sorted(rows: Sequence[Measurement], x: str) -> list[Measurement]:
    place = {level: i for i, level in enumerate(in_order(m.case.level(x) for m in rows))}
    return sorted(rows, key=lambda m: place[m.case.level(x)])


def _row(m: Measurement, axes: Sequence[str], metrics: bool, scale: Scale) -> Markup:
    first, *rest = [m.case.level(axis) for axis in axes]
    trust = tag("td", "trusted") if m.trust.good else tag("td", trust_of(m), class_="warn wrap")
    return tag(
        "tr",
        tag("th", first or "all", scope="row"),
        *(tag("td", level) for level in rest),
        tag("td", m.metric) if metrics else None,
        number_cells(m, scale),
        trust,
    )


def number_cells(m: Measurement, scale: Scale) -> Markup:
    """Cells of a number; of median and best, the one used on cards is bold."""
    numbers = [people(scale.number(value)) for value in (m.median, m.best)]
    median, best = (
        tag("td", tag("b", number) if bold else number, class_="n")
        for number, bold in zip(numbers, (not m.ceiling, m.ceiling), strict=True)
    )
    words = (
        str(m.count),
        *(people(share_text(m, kind, scale)) for kind in ("measured", "nominal")),
    )
    rest = (tag("td", word, class_="n") for word in words)
    return join(median, tag("td", people(spread_of(m, scale)), class_="n"), best, *rest)
