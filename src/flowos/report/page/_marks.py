"""Parts shared by all plots: markers, swatches of the legend, and the frame with its title."""

from flowos.report._panels import Panel
from flowos.report._units import Scale, number, scale_for
from flowos.report._words import spans_of
from flowos.report.page._markup import Markup, join, tag

WIDTH = 560.0
_NAME = 100
_LONG = (
    (172_800.0, Scale(86_400.0, "d")),
    (7200.0, Scale(3600.0, "h")),
    (600.0, Scale(60.0, "min")),
)

_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z",
    "M-3.6-3.6h7.2v7.2h-7.2Z",
    "M0-4.8L4.6 3.4h-9.2Z",
    "M0-5L5 0L0 5L-5 0Z",
    "M0 4.8L4.6-3.4h-9.2Z",
    "M-1.7-4.8h3.4v3.1h3.1v3.4h-3.1v3.1h-3.4v-3.1h-3.1v-3.4h3.1Z",
    "M0-5.2L1.5-1.6L5-1.6L2.3.9L3.2 4.6L0 2.5L-3.2 4.6L-2.3.9L-5-1.6L-1.5-1.6Z",
    "M-2-4.6h4l2.8 4.6l-2.8 4.6h-4l-2.8-4.6Z",
)


def symbol(unit: str) -> str:
    """The unit with the Greek letter that a terminal may lack."""
    return "\N{MICRO SIGN}s" if unit == "us" else unit


def people(words: str) -> str:
    """A number with its unit as shown on the page, without a line break."""
    head, space, unit = words.rpartition(" ")
    return f"{head}\N{NO-BREAK SPACE}{symbol(unit)}" if space else words


def time_scale(seconds: float) -> Scale:
    """The unit in which a person reads so long a time."""
    found = (each for each in _LONG if seconds >= each[0])
    _, scale = next(found, (0.0, None))
    return scale or scale_for((seconds,), "second")


def seconds_of(value: float) -> str:
    return people(time_scale(value).number(value))


def bytes_of(count: float) -> str:
    return people(number(count, "byte"))


def brief(name: str) -> str:
    """A name of any length as a page can hold it many times."""
    return (
        name if len(name) <= _NAME else f"{name[: _NAME // 2]}\N{HORIZONTAL ELLIPSIS}{name[-20:]}"
    )


def words(text: str) -> Markup:
    """Text with the commands in backquotes as code elements."""
    return join(*(tag("code", piece) if code else piece for piece, code in spans_of(text)))


def marker(
    series: int, x: float, y: float, good: bool, title: str, at: str | None = None
) -> Markup:
    """A point; hollow if it cannot be trusted. at: its values, for the script of curves."""
    return tag(
        "path",
        tag("title", title),
        class_="dot" if good else "dot no",
        d=_SHAPES[series],
        transform=f"translate({x:.1f} {y:.1f})",
        data_at=at,
    )


def swatch(series: int, bar: bool) -> Markup:
    """The sample of a line or bar next to its name."""
    if bar:
        drawn = tag("rect", class_="bar", x="1", y="2", width="16", height="10", rx="1.5")
    else:
        drawn = join(
            tag("path", class_="sw", d="M0 7H30"),
            tag("path", class_="dot", d=_SHAPES[series], transform="translate(15 7)"),
        )
    width = "18" if bar else "30"
    return tag("svg", drawn, class_=f"s{series}", width=width, height="14", aria_hidden="true")


def drawing(
    panel: Panel, name: str, height: float, description: str, *parts: Markup, **more: str
) -> Markup:
    """The SVG image with its title and a description for screen readers. more: attributes."""
    return tag(
        "svg",
        tag(
            "title", panel.chart.title + (f", {panel.title}" if panel.title else ""), id=f"{name}-t"
        ),
        tag("desc", description, id=f"{name}-d"),
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        **{"class_": "plot", **more},
    )


def text(
    words: str,
    x: float,
    y: float,
    anchor: str = "start",
    class_: str | None = None,
    at: str | None = None,
) -> Markup:
    return tag(
        "text",
        words,
        x=x,
        y=y,
        text_anchor=None if anchor == "start" else anchor,
        class_=class_,
        data_at=at,
    )


def line(class_: str, x1: float, y1: float, x2: float, y2: float, at: str | None = None) -> Markup:
    return tag("path", class_=class_, d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", data_at=at)
