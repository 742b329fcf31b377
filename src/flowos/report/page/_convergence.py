"""Renders a convergence plot as an SVG image, and as a page with its numbers and facts."""

from base64 import b64encode
from collections.abc import Sequence

from flowos.report._convergence import ConvergencePlot, Point
from flowos.report._units import digits
from flowos.report.page._head import document
from flowos.report.page._marks import WIDTH, line, text
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._style import DARK, LIGHT
from flowos.report.page._tables import scrolled
from flowos.report.page._ticks import Axis, decade_ticks, even_ticks

_HEIGHT = 350.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 16.0, 34.0, 50.0
_ROOM = 1.5
_SHOWN = ("paper", "ink", "muted", "rule", "c0")
_ALONE = (
    "text{font:12.5px sans-serif;fill:var(--muted)}.strong{fill:var(--ink);font-weight:600}"
    ".grid{stroke:var(--rule)}.base{stroke:var(--muted)}.paper{fill:var(--paper)}"
    ".line{fill:none;stroke:var(--c0);stroke-width:2.2;stroke-linejoin:round}"
    ".dot{fill:var(--c0)}.ceiling{fill:none;stroke:var(--ink);stroke-dasharray:5 4}"
)
_NAMESPACE = "http://www.w3.org/2000/svg"


def convergence_svg(plot: ConvergencePlot) -> str:
    """A standalone image, light or dark by the viewer's preference."""
    light, dark = (
        ";".join(f"--{name}:{theme[name]}" for name in _SHOWN) for theme in (LIGHT, DARK)
    )
    style = f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{_ALONE}"
    paper = tag("rect", class_="paper", width="100%", height="100%")
    return f"{_drawing(plot, tag('style', Markup(style)), paper, xmlns=_NAMESPACE)}\n"


def convergence_html(plot: ConvergencePlot, lede: str, facts: Sequence[tuple[str, str]]) -> str:
    """A page: a summary sentence, the plot, its numbers, and facts (name, in words)."""
    rows = [join(tag("dt", what), tag("dd", words)) for what, words in facts]
    return document(
        plot.title,
        tag(
            "header",
            tag("p", tag("b", "FlowOS"), " solve", class_="kicker"),
            tag("h1", plot.title),
            tag("p", lede, class_="lede"),
        ),
        tag(
            "main",
            tag("section", tag("h2", f"The {plot.what}"), _figure(plot)),
            tag("section", tag("h2", "How it was solved"), tag("dl", *rows, class_="facts")),
        ),
    )


def convergence_cell(plot: ConvergencePlot, lede: str) -> str:
    """For a notebook: a summary sentence, and the plot as an image, whose style stays its own."""
    image = b64encode(convergence_svg(plot).encode()).decode()
    source = f"data:image/svg+xml;base64,{image}"
    drawn = tag("img", src=source, alt=_description(plot), style="width:560px;max-width:100%")
    return tag("div", tag("p", lede), drawn)


def _figure(plot: ConvergencePlot) -> Markup:
    if not plot.drawn:
        return tag("p", "There is nothing to draw.", class_="note")
    rows = [
        tag("tr", tag("td", str(step), class_="n"), tag("td", f"{value:.3e}", class_="n"))
        for step, value in plot.drawn
    ]
    caption = f"The {plot.what} after so many {plot.steps}"
    table = scrolled(caption, (plot.steps, plot.what), rows, "numbers")
    return tag("figure", _drawing(plot), tag("details", tag("summary", "The numbers"), table))


def _drawing(plot: ConvergencePlot, *first: Markup, xmlns: str | None = None) -> Markup:
    shown = _curve(plot) if plot.drawn else text("There is nothing to draw.", 0, 15)
    return tag(
        "svg",
        *first,
        tag("title", plot.title, id="plot-t"),
        tag("desc", _description(plot), id="plot-d"),
        shown,
        xmlns=xmlns,
        class_="plot s0",
        viewBox=f"0 0 {WIDTH:.0f} {_HEIGHT:.0f}",
        role="img",
        aria_labelledby="plot-t plot-d",
    )


def _description(plot: ConvergencePlot) -> str:
    """The plot in a sentence, for a screen reader."""
    if not plot.drawn:
        return "There is nothing to draw."
    (first, high), (last, low) = plot.drawn[0], plot.drawn[-1]
    return f"A line: {plot.what} {high:.1e} after {first} {plot.steps}, {low:.1e} after {last}." + (
        f" The goal is {plot.goal:.1e}." if plot.goal > 0 else ""
    )


def _curve(plot: ConvergencePlot) -> Markup:
    x, y = _axes(plot)
    base = _HEIGHT - _BOTTOM
    return join(
        *_grid(x, y, base),
        text(plot.what, 0, 15, class_="strong"),
        text(plot.steps, WIDTH - _RIGHT, _HEIGHT - 5, "end", "strong"),
        *(_goal(plot.goal, y) if plot.goal > 0 else ()),
        *_line(plot.drawn, x, y),
    )


def _axes(plot: ConvergencePlot) -> tuple[Axis, Axis]:
    low, high = plot.ends
    first, last = float(plot.drawn[0][0]), float(plot.drawn[-1][0])
    if first == last:
        first, last = first - 1, last + 1
    x = Axis(first, last, _LEFT + 8, WIDTH - _RIGHT)
    return x, Axis(low / _ROOM, high * _ROOM, _HEIGHT - _BOTTOM, _TOP, log=True)


def _grid(x: Axis, y: Axis, base: float) -> list[Markup]:
    parts = []
    for value in decade_ticks(y.low, y.high):
        at = y.at(value)
        parts.append(line("grid", _LEFT, at, WIDTH - _RIGHT, at))
        parts.append(text(f"{value:g}", _LEFT - 8, at + 4.5, "end"))
    parts.append(line("base", _LEFT, base, WIDTH - _RIGHT, base))
    for value in even_ticks(x.low, x.high):
        if value.is_integer():
            at = x.at(value)
            parts.append(line("base", at, base, at, base + 5))
            parts.append(text(f"{value:.0f}", at, base + 21, "middle"))
    return parts


def _goal(goal: float, y: Axis) -> list[Markup]:
    at = y.at(goal)
    words = text(f"goal {digits(goal)}", _LEFT + 8, at - 6)
    return [line("ceiling", _LEFT, at, WIDTH - _RIGHT, at), words]


def _line(points: Sequence[Point], x: Axis, y: Axis) -> list[Markup]:
    places = [(x.at(step), y.at(value)) for step, value in points]
    path = "M" + "L".join(f"{at:.1f} {height:.1f}" for at, height in places)
    end = tag("circle", class_="dot", cx=places[-1][0], cy=places[-1][1], r="3.5")
    return [tag("path", class_="line", d=path), end]
