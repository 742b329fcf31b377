"""Renders comparisons as a table in which each row draws its 95 % interval around 1."""

import math
from collections.abc import Callable, Iterable, Sequence

from flowos.model import Verdict
from flowos.report._comparison_table import VerdictGroup, known, notes_of, rounds_of, untrusted
from flowos.report._words import ratio_text
from flowos.report.page._marks import line, words
from flowos.report.page._markup import Markup, join, tag
from flowos.report.page._tables import scrolled
from flowos.report.page._ticks import Axis

_NAMES = ("answer", "ratio (95 %)", "interval", "rounds")
Column = Callable[[Verdict], str]

_WIDTH = 150.0
_MIDDLE = 10.0


def verdict_table(group: VerdictGroup, name: str) -> Markup:
    """One row for each comparison, the slowest first; the band is the range of equality."""
    axis = _axis(group.rows)
    caption = f"{group.title}. Below 1 is slower."
    if any(v.needed for v in group.rows):
        caption += " Rounds: how many it rests on, of about how many that are needed."
    columns = [c for c in (group.at, _why) if any(map(c, group.rows))]
    titles = {group.at: "at", _why: "why"}
    names = (group.change_title, *_NAMES, *(titles[c] for c in columns))
    rows = [_row(group, v, axis, columns) for v in group.rows]
    commands = [tag("p", words(f"{note[:1].upper()}{note[1:]}.")) for note in _commands(group)]
    return join(scrolled(caption, names, rows, name, "comparison"), *commands)


def _commands(group: VerdictGroup) -> Iterable[str]:
    """Commands that would help to decide, listed once below the table."""
    return dict.fromkeys(note for v in group.rows for note in notes_of(v) if "`" in note)


def _why(v: Verdict) -> str:
    return "; ".join(note for note in notes_of(v) if "`" not in note)


def _axis(verdicts: Sequence[Verdict]) -> Axis:
    """Axis shared by all rows: logarithmic, with 1 in the middle."""
    ends = [v for each in verdicts for v in (each.low, each.high) if math.isfinite(v) and v > 0]
    widest = max([1.05, *(max(v, 1 / v) for v in ends)])
    return Axis(1 / widest, widest, 4, _WIDTH - 4, log=True)


def _row(group: VerdictGroup, v: Verdict, axis: Axis, columns: Sequence[Column]) -> Markup:
    return tag(
        "tr",
        tag("th", group.change(v), scope="row"),
        _answer(v),
        tag("td", ratio_text(v), class_="n"),
        tag("td", _interval(v, axis)),
        tag("td", rounds_of(v), class_="n"),
        *(tag("td", column(v)) for column in columns),
    )


def _answer(v: Verdict) -> Markup:
    """The answer, the range of an inconclusive one, and the evidence against it."""
    style = {"slower": "warn", "faster": "good"}.get(v.answer)
    parts = [tag("strong", v.answer)]
    if range_ := known(v):
        parts.append(join(tag("br"), range_))
    if why := untrusted(v):
        mark = tag("span", f"\N{BLACK UP-POINTING TRIANGLE} not trusted: {why}", class_="warn")
        parts.append(join(tag("br"), mark))
    return tag("td", *parts, class_=style)


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
