"""Two runs beside each other, for a terminal: the cases whose ranges lie apart, farthest first."""

import math
from collections.abc import Iterator, Sequence

from flowos.model import Case, Verdict
from flowos.report._lines import wrapped
from flowos.report._words import case_text, counted, ratio_text


def lines_of_runs(verdicts: Sequence[Verdict], *, everything: bool) -> Iterator[str]:
    """everything: the cases whose ranges meet come too, behind the others."""
    if not verdicts:
        yield "nothing to compare: no case is in both"
        return
    first = verdicts[0]
    ordered = sorted(verdicts, key=gap, reverse=True)
    apart = [v for v in ordered if gap(v) > 0]
    yield from wrapped(
        f"run {first.other} beside {first.base}: {counted(len(ordered), 'number')}; of "
        f"{len(apart) or 'none'} the ranges lie apart"
    )
    yield from wrapped(first.why)
    yield from _table(ordered if everything else apart)
    if not everything and len(apart) < len(ordered):
        yield ""
        yield f"{len(ordered) - len(apart)} whose ranges meet are not listed: --all shows them"


def gap(v: Verdict) -> float:
    """How far the ranges of the two runs lie apart, as a logarithm; not above 0 if they meet."""
    return max(math.log(v.low), -math.log(v.high))


def _table(rows: Sequence[Verdict]) -> Iterator[str]:
    if not rows:
        return
    ratios = ["ratio (range), below 1 is worse", *map(ratio_text, rows)]
    width = max(map(len, ratios)) + 4
    yield ""
    for ratio, what in zip(ratios, ["case", *map(_what, rows)], strict=True):
        yield from wrapped(what, f"  {ratio}".ljust(width), " " * width)


def _what(v: Verdict) -> str:
    told = case_text(Case(v.probe, v.rest))
    return told if v.metric == v.probe else f"{told}: {v.metric.replace('_', ' ')}"
