"""Two levels of an axis on the whole: the cases of a probe put together, as one verdict.

The ratio is the geometric mean over the cases, as is usual where rates of different kinds are put
together (Fleming and Wallace, How not to lie with statistics, CACM 29(3), 1986). A round's value is
the mean, over the cases that have this round, of how far its log ratio lies off its case's own
mean, so that a case that lacks a round shifts nothing. Many noisy cases tell much earlier together
than each by itself.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from flowos.model import Sample, Verdict
from flowos.plan._compare import (
    ERROR,
    LEAST_ROUNDS,
    LOOKS,
    answered,
    deviation_inside,
    exponential,
    kept_rounds,
)
from flowos.plan._intervals import Interval, interval
from flowos.plan._pairs import Pair, Round, RoundId, pairs
from flowos.plan._trust import LIMITS, Limits

OVERALL = "overall"
"""In the place of the probe in these verdicts; their metric is the probe."""


def overall(
    seen: Iterable[Sample],
    *,
    axis: str,
    base: str,
    margin: float,
    looks: int = LOOKS,
    limits: Limits = LIMITS,
) -> tuple[Verdict, ...]:
    """A verdict for each probe and each level of `axis` beside `base`; of one case its own.

    Cases with fewer than four usable rounds are left out, and rounds that less than half of the
    cases have. Without any such round the ratio is NaN and the interval 0..inf.
    """
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs(seen, axis, base, limits):
        found.setdefault((pair.probe, pair.other), []).append(pair)
    return tuple(_verdict(those, axis, margin, looks) for those in found.values())


def _verdict(those: Sequence[Pair], axis: str, margin: float, looks: int) -> Verdict:
    kept = [kept_rounds(pair.rounds) for pair in those]
    kept = [rounds for rounds in kept if len(rounds) >= LEAST_ROUNDS]
    ratios = _together(kept) if kept else []
    where = Interval(math.nan, -math.inf, math.inf)
    if len(ratios) >= LEAST_ROUNDS:
        where = interval(ratios, 1 - ERROR / looks, least_deviation=_deviation(kept))
    disturbed = {r.at for rounds in kept for r in rounds if r.marked}
    return Verdict(
        probe=OVERALL,
        axis=axis,
        base=those[0].base,
        other=those[0].other,
        rest=(),
        metric=those[0].probe,
        ratio=exponential(where.centre),
        low=exponential(where.low),
        high=exponential(where.high),
        margin=margin,
        rounds=len(ratios),
        answer=answered(where, math.log1p(margin)),
        why=f"geometric mean of {len(kept)} of {len(those)} cases",
        disturbed=min(len(disturbed), len(ratios)),
    )


def _together(kept: Sequence[Sequence[Round]]) -> list[float]:
    """The log ratio of each round on the whole."""
    centres = [fmean(r.log_ratio for r in rounds) for rounds in kept]
    off: dict[RoundId, list[float]] = {}
    for centre, rounds in zip(centres, kept, strict=True):
        for r in rounds:
            off.setdefault(r.at, []).append(r.log_ratio - centre)
    return [fmean(centres) + fmean(each) for each in off.values() if 2 * len(each) >= len(centres)]


def _deviation(kept: Sequence[Sequence[Round]]) -> float:
    """Of a mean over the cases, from how much the turns of one case differ."""
    return math.sqrt(sum(deviation_inside(rounds) ** 2 for rounds in kept)) / len(kept)
