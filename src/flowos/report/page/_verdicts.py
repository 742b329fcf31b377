"""Comparisons as a table in which each row draws its 95 % interval around 1."""

import math
from collections.abc import Sequence

from flowos.model import Verdict
from flowos.report._words import ratio_text
from flowos.report.page._marks import line
from flowos.report.page._markup import Markup, tag
from flowos.report.page._tables import scrolled
from flowos.report.page._ticks import Axis

_NAMES = ("change", "answer", "ratio (95 %)", "interval", "rounds", "number", "at")
_WIDTH = 170.0
_MIDDLE = 10.0


def verdict_table(verdicts: Sequence[Verdict]) -> Markup:
    """One row for each; below 1 is slower, the band is what counts as equal."""
    axis = _axis(verdicts)
    caption = "Each setting beside the best, all else equal. Below 1 is slower."
    return scrolled(caption, _NAMES, [_row(v, axis) for v in verdicts], "verdicts")


def _axis(verdicts: Sequence[Verdict]) -> Axis:
    """The same for all rows, even by ratio, 1 in the middle."""
    ends = [v for each in verdicts for v in (each.low, each.high) if math.isfinite(v) and v > 0]
    widest = max([1.05, *(max(v, 1 / v) for v in ends)])
    return Axis(1 / widest, widest, 4, _WIDTH - 4, log=True)


def _row(v: Verdict, axis: Axis) -> Markup:
    rest = ", ".join(f"{name} {level}" for name, level in v.rest)
    answer = {"slower": "warn", "faster": "good"}.get(v.answer)
    return tag(
        "tr",
        tag("th", f"{v.axis}: {v.other} instead of {v.base}", scope="row"),
        tag("td", v.answer, class_=answer),
        tag("td", ratio_text(v), class_="n"),
        tag("td", _interval(v, axis)),
        tag("td", str(v.rounds), class_="n"),
        tag("td", f"{v.probe} {v.metric}"),
        tag("td", "; ".join(word for word in (rest, v.why) if word), class_="wrap"),
    )


def _interval(v: Verdict, axis: Axis) -> Markup | None:
    if not all(map(math.isfinite, (v.ratio, v.low, v.high))) or min(v.ratio, v.low) <= 0:
        return None
    left = max(axis.at(1 - v.margin), axis.start) if v.margin < 1 else axis.start
    right = min(axis.at(1 + v.margin), axis.end)
    one = axis.at(1.0)
    return tag(
        "svg",
        tag("rect", class_="band", x=left, y=2, width=max(right - left, 0.0), height=16),
        line("one", one, 1, one, 19),
        line("ci", axis.at(v.low), _MIDDLE, axis.at(v.high), _MIDDLE),
        tag("circle", class_="cidot", cx=axis.at(v.ratio), cy=_MIDDLE, r=4.0),
        class_="forest",
        viewBox=f"0 0 {_WIDTH:.0f} 20",
        aria_hidden="true",
    )
