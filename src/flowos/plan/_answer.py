"""What two cases are called, from the intervals of their medians and means and from their tails.

Different: an interval that excludes 1 says so, of the median first. Where the median tells nothing
and the mean does, a case that stalls is slower by what its stalls cost; where both tell and
contradict each other, nothing is told.

Equal has to be shown, each part of it: the median's interval lies within the margin, so does the
mean's, the turns that lag most are not one side's, and as many processes were started as show, in
19 of 20 comparisons, a stall that comes in every tenth of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from flowos.model import Answer, Verdict
from flowos.plan._intervals import Interval
from flowos.plan._tails import Tail

MEAN_ERROR = 0.01
"""Of calling equal means different, at all looks together."""
MIN_FOR_MEAN = 8
"""Rounds: of fewer, an outlier alone makes the mean."""
MEAN_LEVEL = 0.9
"""Of the mean's interval that has to lie within the margin: 5 % of error at each end, as is usual
where equivalence is tested (Schuirmann 1987)."""
MEAN_WIDTH = 1.5
"""Margins within which that interval has to lie; its centre has to lie within one."""
LOPSIDED = 0.02
RARE, SHOWN = 0.1, 0.95
PROCESSES = math.ceil(math.log(1 - SHOWN) / math.log(1 - RARE))
_DIFFERENT = ("slower", "faster")
_ROUNDING = 1e-12
"""Of logarithms: those of 1.25 and 1 / 1.25 do not quite add up to 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a comparison saw, at one of so many looks. tail: None of fewer than two rounds."""

    median: Interval
    tail: Tail | None
    looks: int


def concluded(opened: Verdict, seen: Evidence) -> Verdict:
    """The verdict, with its answer and what that rests on; `opened` has the rest."""
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
    """What the interval alone says; margin: of logarithms."""
    if -margin <= where.low and where.high <= margin:
        return "equal"
    if where.high < -_ROUNDING:
        return "slower"
    if where.low > _ROUNDING:
        return "faster"
    return "inconclusive"


def exponential(logarithm: float) -> float:
    """Infinity where it is beyond all floats."""
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
    """The mean's interval that tells a difference where it excludes 1."""
    return tail.mean(1 - MEAN_ERROR / looks)


def _even(tail: Tail, margin: float) -> bool:
    """Is the mean equal? A mean scatters more than a median, so its interval may be wider."""
    mean, most = tail.mean(MEAN_LEVEL), math.log1p(margin)
    return abs(mean.centre) <= most and answered(mean, MEAN_WIDTH * most) == "equal"


def _by_mean(v: Verdict, seen: Evidence, tail: Tail, by_mean: Answer) -> Verdict:
    """The mean tells a difference that the median does not."""
    if v.answer in _DIFFERENT:
        why = f"the median is {v.answer} ({v.ratio:.3f}), the mean time {by_mean} ({v.mean:.3f})"
        return _because(replace(v, answer="inconclusive"), why, _whose(v, tail))
    why = f"it is the mean time that differs; the median is {v.ratio:.3f}"
    told = replace(_with(v, _apart(tail, seen.looks), by_mean), statistic="mean")
    return _because(told, why, _whose(v, tail))


def _unless_it_stalls(v: Verdict, seen: Evidence, tail: Tail) -> Verdict:
    """Equal in the median: equal, if nothing speaks against it."""
    doubts = list(_doubts(v, tail))
    if not doubts:
        return v
    doubted = _because(replace(v, answer="inconclusive"), "equal in the median", *doubts)
    if not _even(tail, v.margin):
        where = _apart(tail, seen.looks)
        return replace(_with(doubted, where, "inconclusive"), statistic="mean")
    if tail.processes < PROCESSES:
        return replace(doubted, needed=math.ceil(v.rounds * PROCESSES / tail.processes))
    return doubted


def _doubts(v: Verdict, tail: Tail) -> Iterator[str]:
    if not _even(tail, v.margin):
        yield f"not so, or not surely so, in the mean time: {v.mean:.3f}"
    if tail.chance < LOPSIDED:
        yield _whose(v, tail)
    if tail.processes < PROCESSES:
        yield (
            f"{tail.processes} processes of each are too few to see a stall in every tenth:"
            f" {PROCESSES} show it"
        )


def _whose(v: Verdict, tail: Tail) -> str:
    return (
        f"of the tenth of the turns that lag most {tail.other} are of {v.other}"
        f" and {tail.base} of {v.base}"
    )


def _because(v: Verdict, *why: str) -> Verdict:
    return replace(v, why="; ".join(word for word in (v.why, *why) if word))
