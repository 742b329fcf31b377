"""Draws a panel as grouped horizontal bars, each with its number, and its ceiling as a tick."""

from collections.abc import Iterator, Sequence

from flowos.model import Measurement
from flowos.report._panels import Line, Panel, in_order, with_axis
from flowos.report._units import Scale
from flowos.report._words import share_of, spread_of, trust_of, value_of
from flowos.report.page._marks import WIDTH, drawing, line, marker, people, text
from flowos.report.page._markup import Markup, tag
from flowos.report.page._ticks import Axis

_NUMBERS = 122.0
_HEAD, _BAR, _GAP = 25.0, 19.0, 4.0
_OFF_THE_SCALE = 4.0

Group = tuple[str, tuple[tuple[Line, Measurement], ...]]


def bars(panel: Panel, name: str) -> Markup:
    """The drawing of a panel that has at least one bar."""
    groups = _groups(panel)
    max_value = max(m.value for each in panel.lines for _, m in each.points)
    axis = _axis(panel, max_value)
    parts: list[Markup] = []
    y = 4.0
    for label, members in groups:
        parts.append(text(label or panel.chart.title, 0, y + 14, class_="strong"))
        y += _HEAD
        parts.append(line("base", 0.5, y - 2, 0.5, y + len(members) * (_BAR + _GAP) - 2))
        for each, m in members:
            parts.append(_bar(each, m, _ceiling(m, panel, max_value), axis, y, panel.scale))
            y += _BAR + _GAP
        y += 8
    return drawing(panel, name, y, _description(groups, panel.scale), *parts)


def _groups(panel: Panel) -> tuple[Group, ...]:
    levels = in_order(x for each in panel.lines for x, _ in each.points)
    return tuple((with_axis(panel.chart.x, x), tuple(_members(panel, x))) for x in levels)


def _members(panel: Panel, x: str) -> Iterator[tuple[Line, Measurement]]:
    for each in panel.lines:
        for level, m in each.points:
            if level == x:
                yield each, m


def _axis(panel: Panel, max_value: float) -> Axis:
    shown = [m for each in panel.lines for _, m in each.points]
    ends = [v for m in shown for v in (m.value, m.high, *_ceiling(m, panel, max_value))]
    high = max(v for v in ends if v <= abs(max_value) * _OFF_THE_SCALE)
    if panel.chart.log_y:
        low = min(m.value for m in shown) / 2
        return Axis(low, max(high, low * 10), 1, WIDTH - _NUMBERS, log=True)
    return Axis(0.0, high if high > 0 else 1.0, 1, WIDTH - _NUMBERS)


def _ceiling(m: Measurement, panel: Panel, max_value: float) -> list[float]:
    found = share_of(m, "measured") if panel.chart.ceilings else None
    return [found.ceiling] if found and 0 < found.ceiling <= max_value * _OFF_THE_SCALE else []


def _bar(
    each: Line, m: Measurement, ceilings: Sequence[float], axis: Axis, y: float, scale: Scale
) -> Markup:
    end = axis.at(m.value) if axis.log else axis.at(max(m.value, 0.0))
    number = people(value_of(m, scale))
    label = f"{each.label}: {number} ({spread_of(m, scale)}; {trust_of(m)})"
    parts: list[Markup] = []
    if axis.log:
        middle = y + _BAR / 2
        parts.append(line("grid", 1, middle, WIDTH - _NUMBERS, middle))
        parts.append(marker(each.colour, end, middle, m.trust.good, label))
    else:
        style = "bar" if m.trust.good else "bar no"
        width = max(end - 1, 1.5)
        title = tag("title", label)
        parts.append(tag("rect", title, class_=style, x=1, y=y, width=width, height=_BAR, rx=1.5))
    parts += _extent(m, ceilings, axis, y)
    untrusted = "" if m.trust.good else "\N{BLACK UP-POINTING TRIANGLE} "
    parts.append(text(untrusted + number, WIDTH, y + 14.5, "end", "strong"))
    return tag("g", *parts, class_=f"series s{each.colour}")


def _extent(m: Measurement, ceilings: Sequence[float], axis: Axis, y: float) -> Iterator[Markup]:
    """The interquartile range as a thin line, the ceiling as a tick."""
    middle = y + _BAR / 2
    if axis.holds(m.low) and axis.holds(m.high):
        start, end = axis.at(m.low), axis.at(m.high)
        if end - start > 2:
            yield line("over", start, middle, end, middle)
    for ceiling in ceilings:
        at = axis.at(ceiling)
        yield line("ceiling", at, y - 1, at, y + _BAR + 1)


def _description(groups: tuple[Group, ...], scale: Scale) -> str:
    words = [
        f"{label}: "
        + ", ".join(f"{each.label} {people(value_of(m, scale))}" for each, m in members)
        for label, members in groups
    ]
    return "Bars. " + "; ".join(words) + "."
