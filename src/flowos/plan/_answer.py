"""Answer for two cases, from the intervals of their medians and means and from their tails.

Different: an interval excludes 1. The median is tested first. If only the mean is decided, a case
that stalls is slower by the cost of its stalls. If both are decided and contradict each other, the
answer is inconclusive.

Equal requires all of this: the median's interval lies within the margin; so does the mean's; the
90th percentiles are alike; the turns that lag most do not belong to one side; and so few of so many
processes stalled that it is not every tenth of them, in 19 of 20 comparisons.
"""

import math
from collections.abc import Iterator
from functools import cache
from itertools import count

from flowos._dataclasses import dataclass, replace
from flowos.model import Answer, Verdict
from flowos.plan._intervals import Interval
from flowos.plan._tails import Tail

MEAN_ERROR = 0.01
"""Error of calling equal means different, over all looks together."""
MIN_FOR_MEAN = 8
"""Rounds; with fewer, a single outlier determines the mean."""
MEAN_LEVEL = 0.9
"""Level of the mean's interval that must lie within the margin.

It leaves 5 % of error at each end, as is usual in equivalence tests (Schuirmann 1987).
"""
MEAN_WIDTH = 1.2
"""That interval must lie within this many margins; its centre must lie within one."""
P90_WIDTH = 2.0
"""The 90th percentiles may differ by this many margins; they scatter more than a median."""
LOPSIDED = 0.02
RARE = 0.1
"""Share of the processes: stalls in so many of them would go over the margin by themselves."""
UNSEEN, SEEN = 0.05, 0.01
"""Error of calling equal what stalls in a tenth of its processes: without a stall seen, and with.

The second is smaller, as most comparisons that come to it were looked at before.
"""
_DIFFERENT = ("slower", "faster")
_ROUNDING = 1e-12
"""Tolerance for logarithms: those of 1.25 and 1 / 1.25 do not add up to exactly 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Data of a comparison at one of `looks` looks. tail: None with fewer than two rounds."""

    median: Interval
    tail: Tail | None
    looks: int


def concluded(opened: Verdict, seen: Evidence) -> Verdict:
    """Returns `opened` with the answer and the numbers behind it filled in."""
    if seen.tail is None:
        return _with(opened, seen.median, answered(seen.median, 0.0))
    found = _with(opened, seen.median, answered(seen.median, math.log1p(opened.margin)))
    found = replace(
        found, mean=exponential(seen.tail.mean(0.0).centre), p90=exponential(seen.tail.p90)
    )
    by_mean = _of_mean(seen.tail, found.margin, seen.looks)
    if by_mean in _DIFFERENT and by_mean != found.answer:
        return _by_mean(found, seen, seen.tail, by_mean)
    return _unless_it_stalls(found, seen, seen.tail) if found.answer == "equal" else found


def answered(where: Interval, margin: float) -> Answer:
    """Answer from the interval alone. margin: in logarithms."""
    if -margin <= where.low and where.high <= margin:
        return "equal"
    if where.high < -_ROUNDING:
        return "slower"
    if where.low > _ROUNDING:
        return "faster"
    return "inconclusive"


def exponential(logarithm: float) -> float:
    """exp(logarithm), or infinity on overflow."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf


def _with(v: Verdict, where: Interval, answer: Answer) -> Verdict:
    ratio, low, high = map(exponential, (where.centre, where.low, where.high))
    return replace(v, answer=answer, ratio=ratio, low=low, high=high)


def _of_mean(tail: Tail, margin: float, looks: int) -> Answer:
    if _even(tail, margin):
        return "equal"
    if len(tail.excesses) < MIN_FOR_MEAN:
        return "inconclusive"
    return answered(_apart(tail, looks), 0.0)


def _apart(tail: Tail, looks: int) -> Interval:
    """Interval of the mean at the level of a test for a difference."""
    return tail.mean(1 - MEAN_ERROR / looks)


def _even(tail: Tail, margin: float) -> bool:
    """Whether the mean is equal. A mean scatters more than a median: its interval may be wider."""
    mean, most = tail.mean(MEAN_LEVEL), math.log1p(margin)
    return abs(mean.centre) <= most and answered(mean, MEAN_WIDTH * most) == "equal"


def _by_mean(v: Verdict, seen: Evidence, tail: Tail, by_mean: Answer) -> Verdict:
    """Verdict where the mean shows a difference that the median does not."""
    if v.answer in _DIFFERENT:
        why = f"the median is {v.answer} ({v.ratio:.3f}), the mean time {by_mean} ({v.mean:.3f})"
        return _because(replace(v, answer="inconclusive"), why, _whose(v, tail))
    why = f"it is the mean time that differs; the median is {v.ratio:.3f}"
    by_tail = replace(_with(v, _apart(tail, seen.looks), by_mean), statistic="mean")
    return _because(by_tail, why, _whose(v, tail))


def _unless_it_stalls(v: Verdict, seen: Evidence, tail: Tail) -> Verdict:
    """Verdict where the median is equal: equal unless there are suspicions."""
    suspicions = list(_suspicions(v, tail))
    if not suspicions:
        return v
    suspicious = _because(replace(v, answer="inconclusive"), "equal in the median", *suspicions)
    if not _even(tail, v.margin):
        where = _apart(tail, seen.looks)
        return replace(_with(suspicious, where, "inconclusive"), statistic="mean")
    if tail.processes < (enough := processes_for(_stalls(v, tail))):
        return replace(suspicious, needed=math.ceil(v.rounds * enough / tail.processes))
    return suspicious


def _suspicions(v: Verdict, tail: Tail) -> Iterator[str]:
    if not _even(tail, v.margin):
        yield f"not so, or not surely so, in the mean time: {v.mean:.3f}"
    if abs(tail.p90) > P90_WIDTH * math.log1p(v.margin):
        yield f"not so in the 90th percentile: {v.p90:.3f}"
    if tail.chance < LOPSIDED:
        yield _whose(v, tail)
    if tail.processes < (enough := processes_for(_stalls(v, tail))):
        yield _too_few(v, tail, enough)


def _too_few(v: Verdict, tail: Tail, enough: int) -> str:
    if not _stalls(v, tail):
        few = f"{tail.processes} processes of each are too few to see a stall in every tenth"
        return f"{few}: {enough} show it"
    base, other = tail.stalls(v.margin / RARE)
    return (
        f"{other} of {tail.processes} processes of {v.other} and {base} of {v.base} took"
        f" {1 + v.margin / RARE:.3g} times as long as their neighbours, or longer"
    )


def _stalls(v: Verdict, tail: Tail) -> int:
    """By how many more of the processes of one side than of the other stalled."""
    base, other = tail.stalls(v.margin / RARE)
    return abs(other - base)


@cache
def processes_for(stalls: int) -> int:
    """So many processes show by so few stalls that these are rarer than one in ten."""
    error = SEEN if stalls else UNSEEN
    return next(n for n in count(1) if _chance_of_so_few(stalls, n) <= error)


def _chance_of_so_few(stalls: int, processes: int) -> float:
    """Probability of at most so many, if each process stalls with probability RARE."""
    return sum(
        math.comb(processes, k) * RARE**k * (1 - RARE) ** (processes - k) for k in range(stalls + 1)
    )


def _whose(v: Verdict, tail: Tail) -> str:
    return (
        f"of the tenth of the turns that lag most {tail.other} are of {v.other}"
        f" and {tail.base} of {v.base}"
    )


def _because(v: Verdict, *why: str) -> Verdict:
    return replace(v, why="; ".join(word for word in (v.why, *why) if word))
