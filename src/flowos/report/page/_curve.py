"""Draws a panel as lines over a numeric axis, with ceilings, spread, and steps such as caches."""

from itertools import pairwise

from flowos._dataclasses import dataclass
from flowos.model import Measurement
from flowos.report import _units
from flowos.report._panels import Ceiling, Line, Panel, as_number
from flowos.report._units import Scale
from flowos.report._words import spread_of, trust_of, value_of
from flowos.report.page._marks import WIDTH, drawing, line, marker, people, symbol, text
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._ticks import Axis, apart, binary_ticks, decade_ticks, even_ticks

HEIGHT = 350.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 16.0, 34.0, 50.0
_OFF_THE_SCALE = 4.0
_LABEL_GAP = 19.0
_STEP_ROOM = 110.0
_WIDEST_CHARACTER, _USUAL_CHARACTER = 9.6, 7.6
"""On narrow pages, where text is drawn larger."""


@dataclass(frozen=True, slots=True)
class CurveFrame:
    """Both axes; binary: are ticks of x powers of two, in bytes?"""

    x: Axis
    y: Axis
    scale: Scale
    binary: bool


def curve(panel: Panel, name: str, frame: CurveFrame | None = None, *more: Markup) -> Markup:
    """The drawing of a panel that has at least one point.

    frame: by default all points fit. more: drawn on top.
    """
    frame = frame or _frame(panel)
    return drawing(
        panel,
        name,
        HEIGHT,
        _description(panel),
        _grid(panel, frame),
        *_steps(panel, frame),
        *(_context(each, frame) for each in panel.context),
        *(_series(each, frame) for each in panel.lines),
        _ceilings(panel, frame),
        *more,
        class_="plot curve",
        data_x=_words(frame.x),
        data_y=_words(frame.y),
        data_factor=f"{frame.scale.factor:g}",
        data_binary=str(int(frame.binary)),
    )


def _words(axis: Axis) -> str:
    """An axis for the script."""
    ends = f"{axis.low:.8g} {axis.high:.8g} {axis.start:g} {axis.end:g}"
    return f"{ends} {int(axis.log)}"


def values(*points: tuple[float | None, float | None]) -> str:
    """Points for the script: "x,y" each; one without a value stays where it is on that axis."""
    return " ".join(",".join("" if v is None else f"{v:.6g}" for v in point) for point in points)


def _frame(panel: Panel) -> CurveFrame:
    chart, drawn = panel.chart, panel.drawn
    values = [m.value for m in drawn]
    most = max(values)
    ceilings = [v for c in panel.ceilings for _, v in c.points if v <= most * _OFF_THE_SCALE]
    top = max([most, *ceilings])
    low = min(values) / 1.25 if chart.log_y else min(0.0, *values)
    high = top * 1.25 if chart.log_y else max(top * 1.08, 0.0) or 1.0
    levels = [x for each in (*panel.lines, *panel.context) for x, _ in each.points]
    xs = [number for number in map(as_number, levels) if number is not None]
    left, right = min(xs), max(xs)
    if left == right:
        left, right = (left / 2, right * 2) if chart.log_x else (left - 1, right + 1)
    elif not chart.log_x:
        room = (right - left) * 0.03
        left, right = left - room, right + room
    binary = "bytes" in chart.x_label.lower() or chart.x == "bytes"
    return frame_of(panel, (left, right), (low, high), binary=binary)


def frame_of(
    panel: Panel, x: tuple[float, float], y: tuple[float, float], *, binary: bool = False
) -> CurveFrame:
    """Axes over these values."""
    return CurveFrame(
        x=Axis(*x, _LEFT + 8, WIDTH - _RIGHT, panel.chart.log_x),
        y=Axis(*y, HEIGHT - _BOTTOM, _TOP, panel.chart.log_y),
        scale=panel.scale,
        binary=binary,
    )


def _grid(panel: Panel, frame: CurveFrame) -> Markup:
    y, factor = frame.y, frame.scale.factor
    rows = decade_ticks(y.low, y.high) if y.log else even_ticks(y.low / factor, y.high / factor)
    heights = [(row, y.at(row)) for row in (rows if y.log else [r * factor for r in rows])]
    parts = [line("grid", _LEFT, at, WIDTH - _RIGHT, at) for _, at in heights]
    parts += [text(_plain(row / factor), _LEFT - 8, at + 4.5, "end") for row, at in heights]
    base = HEIGHT - _BOTTOM
    parts.append(line("base", _LEFT, base, WIDTH - _RIGHT, base))
    for at, label in _named_columns(frame):
        parts.append(line("base", at, base, at, base + 5))
        parts.append(text(label, at, base + 21, "middle"))
    label = panel.chart.x_label or panel.chart.x
    return join(
        tag("g", *parts, class_="scale"),
        text(symbol(frame.scale.symbol), 0, 15, class_="strong"),
        text(label, WIDTH - _RIGHT, HEIGHT - 5, "end", "strong"),
    )


def _named_columns(frame: CurveFrame) -> list[tuple[float, str]]:
    """Ticks of the x axis whose labels do not touch, even with larger text on narrow pages."""
    x = frame.x
    if frame.binary and x.log:
        ticks = binary_ticks(x.low, x.high)
    elif x.log:
        ticks = decade_ticks(x.low, x.high)
    else:
        ticks = even_ticks(x.low, x.high)
    labels = [(x.at(t), _units.size(t) if frame.binary else _plain(t)) for t in ticks]
    if not x.log:
        labels = [pair for pair in labels if "." not in pair[1]]
    kept: list[tuple[float, str]] = []
    free = 0.0
    for at, label in labels:
        half = len(label) * _WIDEST_CHARACTER / 2
        if at - half >= free and at + half <= WIDTH + 8:
            kept.append((at, label))
            free = at + half + 6
    return kept


def _plain(value: float) -> str:
    """A tick's value: only significant digits, thousands separated."""
    return f"{value:,.10g}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _points(each: Line, frame: CurveFrame) -> list[tuple[float, float, Measurement]]:
    return [(frame.x.at(float(x)), frame.y.at(m.value), m) for x, m in each.points]


def _path(points: list[tuple[float, float, Measurement]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)


def _context(each: Line, frame: CurveFrame) -> Markup:
    points = _points(each, frame)
    title, at = tag("title", each.label), _values(each)
    if len(points) == 1:
        x, y, _ = points[0]
        return tag("circle", title, class_="cdot", cx=x, cy=y, r="2.5", data_at=at)
    return tag("path", title, class_="context", d=_path(points), data_at=at)


def _values(each: Line) -> str:
    return values(*((float(x), m.value) for x, m in each.points))


def _series(each: Line, frame: CurveFrame) -> Markup:
    points = _points(each, frame)
    parts = []
    if len(points) > 1:
        parts.append(tag("path", class_="line", d=_path(points), data_at=_values(each)))
    for (x, _, m), (level, _) in zip(points, each.points, strict=True):
        ends = [frame.y.at(v) for v in (m.low, m.high) if frame.y.holds(v)]
        if len(ends) == 2 and abs(ends[0] - ends[1]) > 3:
            at = values((float(level), m.low), (float(level), m.high))
            parts.append(line("spread", x, ends[0], x, ends[1], at))
    parts += [
        marker(
            each.colour,
            x,
            y,
            m.trust.good,
            _point_title(each, frame, level, m),
            values((float(level), m.value)),
        )
        for (x, y, m), (level, _) in zip(points, each.points, strict=True)
    ]
    return tag("g", *parts, class_=f"series s{each.colour}")


def _point_title(each: Line, frame: CurveFrame, level: str, m: Measurement) -> str:
    at = _units.size(float(level)) if frame.binary else level
    number = people(value_of(m, frame.scale))
    return f"{each.label} at {at}: {number} ({spread_of(m, frame.scale)}; {trust_of(m)})"


def _ceilings(panel: Panel, frame: CurveFrame) -> Markup:
    shown = [c for c in panel.ceilings if all(frame.y.holds(v) for _, v in c.points)]
    parts = [_ceiling(each, frame) for each in shown]
    labelled = sorted(shown, key=lambda c: frame.y.at(c.points[-1][1]))
    heights = [frame.y.at(c.points[-1][1]) - 6 for c in labelled]
    places = apart(heights, _LABEL_GAP, _TOP - 14, HEIGHT - _BOTTOM - 6)
    for each, at in zip(labelled, places, strict=True):
        end = values((None, each.points[-1][1]))
        parts.append(text(*_named(each, frame, at), "end", "halo", end))
    return join(*parts)


def _named(each: Ceiling, frame: CurveFrame, at: float) -> tuple[str, float, float]:
    """Words, and where they end: left of its corner if there is room, else above its right end."""
    number = people(frame.scale.number(each.points[-1][1]))
    if each.free_below:
        words = f"{each.label} {number}"
        end = frame.x.at(float(each.free_below)) - 6
        if fits_before(end, words):
            return words, end, at + 10
    kind = "nominal " if each.kind == "nominal" else ""
    return f"{each.label} {kind}ceiling {number}".strip(), WIDTH - _RIGHT, at


def fits_before(end: float, words: str) -> bool:
    """Is there room for the words in a plot, if they end there? Also on a narrow page."""
    return end - _LEFT > _USUAL_CHARACTER * len(words)


def _ceiling(each: Ceiling, frame: CurveFrame) -> Markup:
    style = f"ceiling {each.kind}"
    if each.flat:
        at = frame.y.at(each.points[0][1])
        level = (None, each.points[0][1])
        return line(style, _LEFT, at, WIDTH - _RIGHT, at, values(level, level))
    points = [f"{frame.x.at(float(x)):.1f} {frame.y.at(v):.1f}" for x, v in each.points]
    corners = values(*((float(x), v) for x, v in each.points))
    return tag("path", class_=style, d="M" + "L".join(points), data_at=corners)


def _steps(panel: Panel, frame: CurveFrame) -> list[Markup]:
    parts = []
    shown = sorted((s for s in panel.steps if frame.x.holds(s.at)), key=lambda s: s.at)
    places = [frame.x.at(s.at) for s in shown]
    crowded = any(b - a < _STEP_ROOM for a, b in pairwise(places))
    for number, step in enumerate(shown):
        at = frame.x.at(step.at)
        here = (step.at, None)
        parts.append(line("step", at, _TOP, at, HEIGHT - _BOTTOM, values(here, here)))
        left = at > WIDTH * 0.7
        y = _TOP + 12 + (18 * (number % 3) if crowded else 0)
        anchor = "end" if left else "start"
        place = at - 5 if left else at + 5
        parts.append(text(step.label, place, y, anchor, "halo", values(here)))
    return parts


def _description(panel: Panel) -> str:
    """The plot in a sentence, for a screen reader; the numbers follow as a table."""
    lines = [
        f"{each.label}: from {people(value_of(each.points[0][1], panel.scale))} at"
        f" {each.points[0][0]} to {people(value_of(each.points[-1][1], panel.scale))} at"
        f" {each.points[-1][0]}"
        for each in panel.lines
    ]
    return f"Lines over {panel.chart.x_label or panel.chart.x}. " + "; ".join(lines) + "."
