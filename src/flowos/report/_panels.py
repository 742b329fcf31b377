"""Turns a chart and measurements into panels: what is drawn and listed, without any drawing."""

import math
from collections.abc import Iterable, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.model import Chart, Measurement, Pairs, lower_is_better
from flowos.report._report import ChartStep, HeadlineNumber, Report, Section
from flowos.report._units import ONE, Scale, common_scale

MAX_COLOURS = 8


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or one colour of bars. `key` is the metric and the levels that define it.

    `colour` counts from 0; within a chart a key has the same colour as long as there are enough.
    """

    label: str
    key: Pairs
    colour: int
    points: tuple[tuple[str, Measurement], ...]
    """(level of the x axis, number), one for each level."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Upper bound of numbers of a panel: (level of the x axis, value) pairs.

    free_below: a level below which nothing can reach its height, so that its name may be there.
    """

    label: str
    kind: str
    points: tuple[tuple[str, float], ...]
    free_below: str = ""

    @property
    def flat(self) -> bool:
        return len({value for _, value in self.points}) == 1


@dataclass(frozen=True, slots=True)
class Panel:
    """One frame of a chart. `lines` are coloured, `context` is drawn in grey behind them."""

    chart: Chart
    facets: Pairs
    lines: tuple[Line, ...]
    context: tuple[Line, ...]
    ceilings: tuple[Ceiling, ...]
    steps: tuple[ChartStep, ...]
    rows: tuple[Measurement, ...]
    scale: Scale = ONE
    """The unit of all numbers of the chart, the same in all its panels."""

    @property
    def title(self) -> str:
        return ", ".join(f"{axis} {level}" for axis, level in self.facets if level)

    @property
    def metric(self) -> str:
        return self.rows[0].metric

    @property
    def drawn(self) -> tuple[Measurement, ...]:
        return tuple(m for line in (*self.lines, *self.context) for _, m in line.points)


def panels_of(report: Report, section: Section, chart: Chart) -> tuple[Panel, ...]:
    """The panels of one chart, one for each measured combination of its facets.

    No curve where nothing was measured along its x axis.
    """
    found: dict[Pairs, list[Measurement]] = {}
    for m in report.measurements:
        if m.case.probe == section.probe and m.metric in chart.metrics:
            found.setdefault(_levels(m, chart.facets), []).append(m)
    found = {facets: rows for facets, rows in found.items() if _along(chart, rows)}
    chart = _with_few_bars(chart, found.values())
    steps = tuple(s for s in report.steps if (s.probe, s.axis) == (section.probe, chart.x))
    panels = [_panel(chart, facets, rows, steps) for facets, rows in _sorted(found)]
    return _coloured(_in_one_unit(panels))


def _along(chart: Chart, rows: Iterable[Measurement]) -> bool:
    return chart.kind == "bars" or any(chart.x in dict(m.case.levels) for m in rows)


def _in_one_unit(panels: Sequence[Panel]) -> Sequence[Panel]:
    """Use one unit for the whole chart, so that its numbers can be compared at a glance."""
    drawn = [m for p in panels for m in (p.drawn or p.rows)]
    if not drawn:
        return panels
    scale = common_scale([m.value for m in drawn], drawn[0].unit, drawn[0].metric)
    return [replace(p, scale=scale) for p in panels]


def _with_few_bars(chart: Chart, panels: Iterable[Sequence[Measurement]]) -> Chart:
    """If bars of several metrics need too many colours, draw each metric's best series only."""
    most = max((len({(m.metric, _levels(m, chart.series)) for m in p}) for p in panels), default=0)
    crowded = chart.kind == "bars" and len(chart.metrics) > 1 and most > MAX_COLOURS
    return replace(chart, series=()) if crowded else chart


def _sorted(
    found: dict[Pairs, list[Measurement]],
) -> list[tuple[Pairs, list[Measurement]]]:
    """Sort the panels: the first facet varies slowest; levels in their natural order."""
    columns = [in_order(level for _, level in column) for column in zip(*found, strict=True)]
    place = [{level: i for i, level in enumerate(column)} for column in columns]

    def where(item: tuple[Pairs, list[Measurement]]) -> list[int]:
        return [order[level] for order, (_, level) in zip(place, item[0], strict=True)]

    return sorted(found.items(), key=where)


def _coloured(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """Give a key the same colour in all panels, or colours per panel if there are too many keys."""
    used = {line.key for panel in panels for line in panel.lines}
    seen = dict.fromkeys(_key(m, p.chart) for p in panels for m in p.rows)
    order = {key: i for i, key in enumerate(key for key in seen if key in used)}
    return tuple(replace(p, lines=_in_colour(p, order)) for p in panels)


def _in_colour(panel: Panel, order: dict[Pairs, int]) -> tuple[Line, ...]:
    """Lines stay best first, the order of their ends; bars are ordered by colour."""
    if len(order) > MAX_COLOURS:
        own = sorted((line.key for line in panel.lines), key=lambda key: order[key])
        order = {key: i for i, key in enumerate(own)}
    lines = [replace(line, colour=order[line.key]) for line in panel.lines]
    if panel.chart.kind == "bars":
        lines.sort(key=lambda line: line.colour)
    return tuple(lines)


def headlines_of(report: Report) -> tuple[HeadlineNumber, ...]:
    """The headlines of the report, or else the best number of each panel's first metric.

    If environments were compared there are no such defaults: the verdicts matter there.
    """
    if report.headlines or report.run.environments:
        return report.headlines
    return tuple(
        HeadlineNumber(
            label=f"{chart.title}, {panel.title}" if panel.title else chart.title,
            measured=best_of(m for m in panel.rows if m.metric == panel.metric),
        )
        for section in report.sections
        for chart in section.charts
        for panel in panels_of(report, section, chart)
    )


def best_of(measured: Iterable[Measurement]) -> Measurement:
    """The best of at least one measurement; a value that is not finite is the worst."""
    return max(measured, key=goodness)


def goodness(m: Measurement) -> float:
    if not math.isfinite(m.value):
        return -math.inf
    return -m.value if lower_is_better(m.unit) else m.value


def varying(rows: Iterable[Measurement], axes: Iterable[str] | None = None) -> tuple[str, ...]:
    """Axes, of these or of all, on which the rows have more than one level."""
    rows = tuple(rows)
    if axes is None:
        axes = dict.fromkeys(axis for m in rows for axis, _ in m.case.levels)
    return tuple(axis for axis in axes if len({m.case.level(axis) for m in rows}) > 1)


def in_order(levels: Iterable[str]) -> tuple[str, ...]:
    """Levels in natural order: numbers by size, other words in the order given."""
    found = tuple(dict.fromkeys(levels))
    numbers = {level: as_number(level) for level in found}
    if any(number is None for number in numbers.values()):
        return found
    return tuple(sorted(found, key=lambda level: numbers[level] or 0.0))


def with_axis(axis: str, level: str) -> str:
    """A level alone; a bare number is preceded by its axis, as it means nothing alone."""
    return level if as_number(level) is None else f"{axis} {level}"


def as_number(level: str) -> float | None:
    """The finite number, or None."""
    try:
        value = float(level)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _panel(
    chart: Chart, facets: Pairs, rows: Sequence[Measurement], steps: tuple[ChartStep, ...]
) -> Panel:
    lines = _lines(chart, [m for m in rows if _can_be_drawn(m, chart)])
    shown = _worth_a_colour(lines)
    drawn = [point for line in shown for point in line.points]
    return Panel(
        chart=chart,
        facets=facets,
        lines=shown,
        context=tuple(line for line in lines if line not in shown),
        ceilings=_ceilings(drawn) if chart.ceilings else (),
        steps=steps,
        rows=tuple(rows),
    )


def _can_be_drawn(m: Measurement, chart: Chart) -> bool:
    if chart.kind == "matrix" and not all(m.case.level(a) for a in (chart.x, *chart.series)):
        return False
    x = as_number(m.case.level(chart.x))
    if chart.kind == "curve" and (x is None or (chart.log_x and x <= 0)):
        return False
    return math.isfinite(m.value) and (m.value > 0 or not chart.log_y)


def _lines(chart: Chart, rows: Sequence[Measurement]) -> tuple[Line, ...]:
    """One line for each metric and combination of series; the best number if several share an x."""
    shown = varying(rows, chart.series)
    several = len({m.metric for m in rows}) > 1
    found: dict[Pairs, dict[str, Measurement]] = {}
    for m in rows:
        at = found.setdefault(_key(m, chart), {})
        x = m.case.level(chart.x)
        at[x] = best_of((at[x], m)) if x in at else m
    order = in_order(x for points in found.values() for x in points)
    return tuple(
        Line(
            label=_label(key, shown, several),
            key=key,
            colour=0,
            points=tuple((x, points[x]) for x in order if x in points),
        )
        for key, points in found.items()
    )


def _key(m: Measurement, chart: Chart) -> Pairs:
    return (("metric", m.metric), *_levels(m, chart.series))


def _label(key: Pairs, shown: Sequence[str], several_metrics: bool) -> str:
    words = [with_axis(axis, level) for axis, level in key[1:] if axis in shown and level]
    if several_metrics or not words:
        words.insert(0, key[0][1].replace("_", " "))
    return " ".join(words)


def _worth_a_colour(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The best line, then the best of each level that is not shown yet, up to the colour limit."""
    ranked = sorted(lines, key=lambda line: -max(goodness(m) for _, m in line.points))
    chosen: dict[Pairs, None] = {}
    seen: set[tuple[str, str]] = set()
    for line in ranked:
        if not seen.issuperset(line.key):
            chosen[line.key] = None
            seen.update(line.key)
    for line in ranked:
        chosen[line.key] = None
    kept = set(list(chosen)[:MAX_COLOURS])
    return tuple(line for line in ranked if line.key in kept)


def _ceilings(drawn: Sequence[tuple[str, Measurement]]) -> tuple[Ceiling, ...]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for x, m in drawn:
        for share in m.shares:
            if math.isfinite(share.ceiling) and share.ceiling > 0:
                found.setdefault((share.kind, share.of), {})[x] = share.ceiling
    names = _distinct_labels([of for _, of in found])
    different: dict[tuple[str, frozenset[float]], Ceiling] = {}
    for (kind, label), points in _end_to_end(found, names).items():
        drawn_at = tuple((x, points[x]) for x in in_order(points))
        key = (kind, frozenset(points.values()))
        different.setdefault(key, Ceiling(label=label, kind=kind, points=drawn_at))
    return tuple(different.values())


def _end_to_end(
    found: dict[tuple[str, str], dict[str, float]], names: dict[str, str]
) -> dict[tuple[str, str], dict[str, float]]:
    """Joins ceilings that apply to different levels of x, such as thread counts, into one line."""
    joined: dict[tuple[str, str], dict[str, float]] = {}
    for kind in dict.fromkeys(kind for kind, _ in found):
        those = {of: points for (k, of), points in found.items() if k == kind}
        levels = [x for points in those.values() for x in points]
        if len(levels) == len(set(levels)):
            joined[kind, ""] = {x: v for points in those.values() for x, v in points.items()}
        else:
            joined |= {(kind, names[of]): points for of, points in those.items()}
    return joined


def _distinct_labels(names: Sequence[str]) -> dict[str, str]:
    """Shortens names such as `flops isa=avx2 type=f64` to the levels in which they differ."""
    words = {name: name.split() for name in dict.fromkeys(names)}
    common = set.intersection(*map(set, words.values())) if words else set()
    return {
        name: " ".join(_level_of(word) for word in its if word not in common)
        for name, its in words.items()
    }


def _level_of(word: str) -> str:
    axis, _, level = word.partition("=")
    return with_axis(axis, level) if level else word.replace("_", " ")


def _levels(m: Measurement, axes: Sequence[str]) -> Pairs:
    return tuple((axis, m.case.level(axis)) for axis in axes)
