"""Compares two runs for a terminal: inconclusive probes, each probe, numbers that differ."""

import math
from collections.abc import Callable, Iterator, Sequence

from flowos.model import Case, Verdict, counted
from flowos.plan import UNPAIRED, RunsOutcome
from flowos.report._units import share
from flowos.report._words import case_text, ratio_text
from flowos.report._wrap import wrapped


def lines_of_runs(
    outcome: RunsOutcome,
    probes: Sequence[Verdict],
    numbers: Sequence[Verdict],
    *,
    changes: Sequence[str],
    everything: bool,
) -> Iterator[str]:
    """changes: what else differs. everything: append the numbers whose ranges overlap."""
    if not probes:
        yield "nothing to compare: neither run has a number"
        return
    first = probes[0]
    yield from _cannot_be_judged(probes)
    yield from _without_ratio(numbers)
    yield from wrapped(f"run {first.other} next to {first.base}, within {share(first.margin)}:")
    yield f"  {outcome}"
    yield from wrapped(f"  {UNPAIRED}", rest="  ")
    for change in changes:
        yield from wrapped(f"  {change}", rest="    ")
    yield ""
    yield from _table("ratio (range)", probes, lambda v: f"{v.metric}: {v.why}")
    yield from _numbers(numbers, everything=everything)


def _cannot_be_judged(probes: Sequence[Verdict]) -> Iterator[str]:
    """The first section: probes without a conclusion."""
    open_ones = [v for v in probes if v.answer == "inconclusive"]
    if not open_ones:
        return
    yield f"{counted(len(open_ones), 'probe')} of {len(probes)} cannot be judged:"
    for v in open_ones:
        because = f" ({v.marks[0]})" if v.marks else ""
        yield from wrapped(f"{v.metric}: {v.why}{because}", "  ", "    ")
    yield ""


def _without_ratio(numbers: Sequence[Verdict]) -> Iterator[str]:
    if found := [v for v in numbers if _has_no_ratio(v)]:
        yield f"{counted(len(found), 'number')} of {len(numbers)} cannot be judged:"
        for v in found:
            yield from wrapped(_what(v), "  ", "    ")
        yield ""


def _has_no_ratio(v: Verdict) -> bool:
    return v.low <= 0 and v.answer == "inconclusive" and not v.marks


def _numbers(numbers: Sequence[Verdict], *, everything: bool) -> Iterator[str]:
    ordered = sorted(numbers, key=gap, reverse=True)
    apart = [v for v in ordered if gap(v) > 0]
    if rows := ordered if everything else apart:
        yield ""
        yield "numbers whose ranges lie apart" + (", then the others" if everything else "")
        yield from _table("ratio (range), below 1 is worse", rows, _what)
    meet = [v for v in ordered if gap(v) <= 0 and not _has_no_ratio(v)]
    if not everything and meet:
        yield ""
        yield f"{len(meet)} whose ranges meet are not listed: --all shows them"


def gap(v: Verdict) -> float:
    """Distance between the ranges of the two runs, in logarithms; not above 0 if they overlap."""
    return max(math.log(v.low) if v.low > 0 else -math.inf, -math.log(v.high))


def _table(title: str, rows: Sequence[Verdict], what: Callable[[Verdict], str]) -> Iterator[str]:
    cells = [(ratio_text(v), f"{v.answer} !" if v.marks else v.answer) for v in rows]
    widths = [max(map(len, column)) for column in zip((title, "answer"), *cells, strict=True)]
    for (ratio, answer), said in zip(
        [(title, "answer"), *cells], ["what", *map(what, rows)], strict=True
    ):
        head = f"  {ratio.ljust(widths[0])}  {answer.ljust(widths[1])}  "
        yield from wrapped(said, head, " " * len(head))
    if any(v.marks for v in rows):
        yield from wrapped(
            "! one of the two numbers, or some of several, must not be believed", "  "
        )


def _what(v: Verdict) -> str:
    point = case_text(Case(v.probe, v.rest))
    named = point if v.metric == v.probe else f"{point}: {v.metric.replace('_', ' ')}"
    return f"{named} ({v.why})" if v.why and not v.marks else named
