"""Two cases, measured in turns: equal, slower, faster, or cannot tell.

A round is A B B A, or many such turns of programs that run side by side: drift that is linear in
time, and noise that lasts for the whole round (side by side, for longer than a turn), cancel in the
round's log ratio. Whole rounds are the unit of resampling; `_intervals` says how. There are up to
four looks at a comparison and 5 % of error in all, so each look gets 5 % / 4 (Bonferroni, which
holds however the looks depend on each other). Every verdict stands for itself: of many equal pairs,
up to 5 % may still be called different.

A round is left out whole, so that neither side gains by it, when its machine state is marked, or
when the two turns of one case lie wildly apart: then a regime of the machine changed inside it.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, median

from flowos.model import Answer, Sample, Verdict
from flowos.plan._intervals import Interval, interval
from flowos.plan._pairs import Pair, Round, pairs
from flowos.plan._regimes import regimes
from flowos.plan._trust import LIMITS, Limits

ERROR = 0.05
LOOKS = 4
LEAST_ROUNDS = 4
WILD_FLOOR = 0.05
_MEDIAN_PER_QUARTILES = math.sqrt(math.pi / 2) / 1.349
"""Deviation of a median, times the root of the count, over the values' range between quartiles."""
WILD_FACTOR = 5.0
_ROUNDING = 1e-12
"""Of logarithms: those of 1.25 and 1 / 1.25 do not quite add up to 0."""


def compare(
    seen: Iterable[Sample],
    *,
    axis: str,
    base: str,
    margin: float,
    looks: int = LOOKS,
    limits: Limits = LIMITS,
) -> tuple[Verdict, ...]:
    """A verdict for each level of `axis` beside `base`, per probe, other levels and metric.

    Only rounds that hold both cases whole count. margin: a difference up to this share counts as
    equal (0.03 for 3 %). looks: how often this comparison is looked at before it ends. Without any
    usable round the ratio is NaN, and with fewer than four the interval is 0..inf.
    """
    return tuple(_verdict(pair, axis, margin, looks) for pair in pairs(seen, axis, base, limits))


def _verdict(pair: Pair, axis: str, margin: float, looks: int) -> Verdict:
    kept = kept_rounds(pair.rounds)
    where = _interval(kept, 1 - ERROR / looks)
    answer = answered(where, math.log1p(margin))
    return Verdict(
        probe=pair.probe,
        axis=axis,
        base=pair.base,
        other=pair.other,
        rest=pair.rest,
        metric=pair.metric,
        ratio=exponential(where.centre),
        low=exponential(where.low),
        high=exponential(where.high),
        margin=margin,
        rounds=len(kept),
        answer=answer,
        why=_why(pair.rounds, kept, answer),
        disturbed=sum(r.marked for r in kept),
    )


def kept_rounds(rounds: Sequence[Round]) -> Sequence[Round]:
    """The rounds to judge by. Where most are marked, the machine is so: all of them are kept."""
    calm = [r for r in rounds if not r.marked]
    if len(calm) < max(LEAST_ROUNDS, len(rounds) / 2):
        calm = list(rounds)
    if not calm:
        return calm
    wild = max(WILD_FLOOR, WILD_FACTOR * median(r.inner for r in calm))
    return [r for r in calm if r.inner <= wild]


def _interval(rounds: Sequence[Round], level: float) -> Interval:
    ratios = [r.log_ratio for r in rounds]
    if len(ratios) < LEAST_ROUNDS:
        return Interval(median(ratios) if ratios else math.nan, -math.inf, math.inf)
    return interval(ratios, level, least_deviation=deviation_inside(rounds))


def deviation_inside(rounds: Sequence[Round]) -> float:
    """The deviation of a round's log ratio, from how much the turns of one case differ.

    Side by side: of the median of the turns' log ratios, from their quartiles.
    """
    beside = [r for r in rounds if r.in_turns]
    if beside:
        each = (r.inner**2 / len(r.differences) for r in beside)
        return _MEDIAN_PER_QUARTILES * math.sqrt(fmean(each))
    sides = [side.logs for r in rounds for side in (r.base, r.other)]
    squares = sum((v - sum(logs) / len(logs)) ** 2 for logs in sides for v in logs)
    freedom = sum(len(logs) - 1 for logs in sides)
    turns = min(len(logs) for logs in sides)
    return math.sqrt(2 / turns * squares / freedom)


def answered(where: Interval, margin: float) -> Answer:
    if -margin <= where.low and where.high <= margin:
        return "equal"
    if where.high < -_ROUNDING:
        return "slower"
    if where.low > _ROUNDING:
        return "faster"
    return "cannot tell"


def _why(rounds: Sequence[Round], kept: Sequence[Round], answer: Answer) -> str:
    notes: list[str] = []
    if len(kept) < LEAST_ROUNDS:
        notes.append(f"both ran in {len(kept)} of the {LEAST_ROUNDS} whole rounds needed")
    elif answer == "cannot tell":
        notes.append("the interval holds 1 and is wider than the margin")
    if left_out := len(rounds) - len(kept):
        notes.append(f"{left_out} of {len(rounds)} rounds were disturbed and left out")
    if marked := sum(r.marked for r in kept):
        notes.append(f"{marked} of {len(kept)} rounds were disturbed and had to be used")
    if two := regimes(exponential(r.log_ratio) for r in kept):
        notes.append(f"the ratio has {two}")
    return "; ".join(notes)


def exponential(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf
