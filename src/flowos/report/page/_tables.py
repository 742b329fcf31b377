"""Every number as a table: what a keyboard and a screen reader reach."""

from collections.abc import Sequence

from flowos.model import Measurement
from flowos.report import _units
from flowos.report._panels import Panel, in_order, varying
from flowos.report._words import share_text, spread_of, trust_of, value_of
from flowos.report.page._marks import people
from flowos.report.page._markup import Markup, join, tag

_NUMBERS = ("median", "middle half", "best", "n", "of measured ceiling", "of nominal", "trust")


def scrolled(caption: str, names: Sequence[str], rows: Sequence[Markup], name: str) -> Markup:
    """A table that scrolls inside its own box, which the keyboard reaches."""
    head = tag("tr", *(tag("th", n, scope="col", class_=_side(n)) for n in names))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", tag("span", caption), id=name),
            tag("thead", head),
            tag("tbody", *rows),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_labelledby=name,
    )


def panel_table(panel: Panel, name: str) -> Markup:
    """All measurements of a panel, also those that the plot folds or draws in grey."""
    chart = panel.chart
    facets = {axis for axis, _ in panel.facets}
    told = [a for a in varying(panel.rows) if a not in facets and a != chart.x]
    axes = [chart.x, *told]
    metrics = len({m.metric for m in panel.rows}) > 1
    names = [*axes, *(["metric"] if metrics else []), *_NUMBERS]
    caption = chart.title + (f", {panel.title}" if panel.title else "") + _constants(panel, axes)
    rows = [_row(m, axes, metrics) for m in _sorted(panel.rows, chart.x)]
    count = f"The numbers: {len(rows)} row" + ("" if len(rows) == 1 else "s")
    return tag("details", tag("summary", count), scrolled(caption, names, rows, name))


def _constants(panel: Panel, told: Sequence[str]) -> str:
    """What all rows have in common is said once."""
    first = panel.rows[0].case
    varied = {*varying(panel.rows), *told, *(axis for axis, _ in panel.facets)}
    same = [f"{axis} {level}" for axis, level in first.levels if axis not in varied and level]
    return f". All with {', '.join(same)}" if same else ""


def _sorted(rows: Sequence[Measurement], x: str) -> list[Measurement]:
    place = {level: i for i, level in enumerate(in_order(m.case.level(x) for m in rows))}
    return sorted(rows, key=lambda m: place[m.case.level(x)])


def _row(m: Measurement, axes: Sequence[str], metrics: bool) -> Markup:
    first, *rest = [m.case.level(axis) for axis in axes]
    trust = tag("td", "trusted") if m.trust.good else tag("td", trust_of(m), class_="warn wrap")
    return tag(
        "tr",
        tag("th", first or "all", scope="row"),
        *(tag("td", level) for level in rest),
        tag("td", m.metric) if metrics else None,
        number_cells(m),
        trust,
    )


def number_cells(m: Measurement) -> Markup:
    best = people(_units.number(m.best, m.unit, m.metric))
    words = (people(value_of(m)), people(spread_of(m)), best, str(m.count))
    shares = (people(share_text(m, "measured")), people(share_text(m, "nominal")))
    return join(*(tag("td", word, class_="n") for word in (*words, *shares)))


def _side(name: str) -> str | None:
    return "n" if name in _NUMBERS[:-1] else None
