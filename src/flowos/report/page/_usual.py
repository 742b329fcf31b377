"""The numbers of a run among those of others of its kind: a table with a strip over time."""

from flowos.plan import HistoryPoint, NumberPlace
from flowos.report._report import Report
from flowos.report._units import number
from flowos.report._usual import NAMES, TITLE, about, cells_of
from flowos.report.page._marks import line, people
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._tables import scrolled
from flowos.report.page._ticks import Axis

_WIDTH, _HEIGHT, _EDGE = 150.0, 30.0, 5.0
_STYLES = {"worse": "warn", "better": "good"}


def places(report: Report) -> Markup | None:
    """None without enough other runs."""
    if not report.places:
        return None
    note = tag("p", about(report), class_="note")
    strips = "A strip is over time: each dot a run, this one larger; the band is the range."
    rows = [_row(place) for place in report.places]
    names = (*NAMES, "over time")
    table = scrolled(f"{TITLE} {strips}", names, rows, "usual-n", "comparison", numeric=NAMES[1:4])
    return join(note, table)


def _row(place: NumberPlace) -> Markup:
    label, *numbers, words = cells_of(place)
    return tag(
        "tr",
        tag("th", label, scope="row"),
        *(tag("td", people(cell), class_="n") for cell in numbers),
        tag("td", tag("strong", words), class_=_STYLES.get(place.answer)),
        tag("td", _strip(place)),
    )


def _strip(place: NumberPlace) -> Markup:
    """Runs in their order, evenly spaced."""
    values = [point.value for point in place.history]
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 1, high + 1
    x = Axis(0, len(values) - 1, _EDGE, _WIDTH - _EDGE)
    y = Axis(low, high, _HEIGHT - _EDGE, _EDGE)
    top, bottom = y.at(place.high), y.at(place.low)
    dots = [_dot(place, point, x.at(i), y.at(point.value)) for i, point in enumerate(place.history)]
    return tag(
        "svg",
        tag("rect", class_="band", x=0, y=top, width=_WIDTH, height=max(bottom - top, 1.0)),
        line("one", 0, y.at(place.median), _WIDTH, y.at(place.median)),
        *dots,
        class_="forest strip",
        viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}",
        role="img",
        aria_label=f"{place.label} in {len(values)} runs",
    )


def _dot(place: NumberPlace, point: HistoryPoint, x: float, y: float) -> Markup:
    value = people(number(point.value, place.unit, place.metric))
    untrusted = "" if point.trusted else ", not trusted"
    title = tag("title", f"{point.started[:16]}, {point.machine}: {value}{untrusted}")
    style = "dot" if point.trusted else "dot no"
    own = point == place.own
    circle = tag("circle", title, class_=style, cx=x, cy=y, r=4.0 if own else 2.5)
    return tag("g", circle, class_="s1" if own else "s7")
