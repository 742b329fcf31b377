"""Compares two levels of an axis over all cases of a probe, as one verdict.

The ratio is the geometric mean over the cases, as is usual for rates of different kinds (Fleming
and Wallace, How not to lie with statistics, CACM 29(3), 1986). Many noisy cases together are
decided much earlier than each alone.
"""

import math
from collections.abc import Iterable, Sequence

from flowos.model import Sample, Verdict
from flowos.plan._answer import Evidence, concluded
from flowos.plan._compare import (
    LOOKS,
    MEDIAN_ERROR,
    MIN_ROUNDS,
    deviation_inside,
    quiet_rounds,
    without_outliers,
)
from flowos.plan._intervals import Interval, interval
from flowos.plan._pairs import Pair, Round, pairs
from flowos.plan._tails import tail_of, together
from flowos.plan._trust import NOISE_THRESHOLDS, NoiseThresholds

GEOMEAN = "geomean"
"""Stands for the probe in these verdicts; their metric is the probe."""


def geomean_verdict(
    seen: Iterable[Sample],
    *,
    axis: str,
    base: str,
    margin: float,
    looks: int = LOOKS,
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> tuple[Verdict, ...]:
    """One verdict for each probe and each level of `axis` compared with `base`.

    Leaves out cases with fewer than four usable rounds, and rounds that fewer than half of the
    cases have. Without any round left the ratio is NaN and the interval 0..inf.
    """
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs(seen, axis, base, limits):
        found.setdefault((pair.probe, pair.other), []).append(pair)
    return tuple(_verdict(those, axis, margin, looks) for those in found.values())


def _verdict(those: Sequence[Pair], axis: str, margin: float, looks: int) -> Verdict:
    first, *_ = those
    counted = [quiet_rounds(pair.rounds) for pair in those]
    kept = [without_outliers(rounds) for rounds in counted]
    kept = [rounds for rounds in kept if len(rounds) >= MIN_ROUNDS]
    counted = [rounds for rounds in counted if len(rounds) >= MIN_ROUNDS]
    ratios = together([{r.at: r.log_ratio for r in rounds} for rounds in kept])
    median, tail = Interval(math.nan, -math.inf, math.inf), None
    if len(ratios) >= MIN_ROUNDS:
        median = interval(ratios, 1 - MEDIAN_ERROR / looks, min_deviation=_deviation(kept))
        tail = tail_of(counted, math.log1p(margin))
    disturbed = {r.at for rounds in kept for r in rounds if r.marked}
    return concluded(
        Verdict(
            probe=GEOMEAN,
            axis=axis,
            base=first.base,
            other=first.other,
            rest=(),
            metric=first.probe,
            ratio=math.nan,
            low=0.0,
            high=math.inf,
            margin=margin,
            rounds=len(ratios),
            answer="inconclusive",
            why=f"geometric mean of {len(kept)} of {len(those)} cases",
            disturbed=min(len(disturbed), len(ratios)),
        ),
        Evidence(median=median, tail=tail, looks=looks),
    )


def _deviation(kept: Sequence[Sequence[Round]]) -> float:
    """Standard deviation of a mean over cases, from the differences between turns of one case."""
    return math.sqrt(sum(deviation_inside(rounds) ** 2 for rounds in kept)) / len(kept)
