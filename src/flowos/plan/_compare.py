"""Compares two interleaved cases: equal, slower, faster, or inconclusive.

A round is A B B A, or many such turns of programs that run side by side. Two kinds of disturbance
cancel in the round's log ratio: drift that is linear in time, and noise that lasts for the whole
round (side by side: longer than a turn). Whole rounds are the unit of resampling; see
`_intervals`. There are up to four looks at a comparison and 5 % of error in total, 4 % for the
median and 1 % for the mean. Each look gets a quarter of that (Bonferroni, which holds however the
looks depend on each other). There is no correction over verdicts: of many equal pairs, up to 5 %
may still be called different.

The median leaves out a whole round, so that neither side gains by it, when its machine state is
marked or when the two turns of one case lie far apart, because a regime of the machine then
changed inside it. The mean leaves out marked rounds only. Marks that occur mostly on one side are
ignored: a slowdown that a case causes itself is no disturbance. `_answer` defines equal.
docs/comparisons.md has the error rates.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from flowos._dataclasses import replace
from flowos.model import Sample, Verdict
from flowos.plan._answer import Evidence, concluded, exponential
from flowos.plan._few import DECIDED_BY_FEW, MANY, Noise, beyond_noise, noise_of
from flowos.plan._intervals import Interval, interval
from flowos.plan._pairs import Pair, Round, pairs
from flowos.plan._regimes import regimes
from flowos.plan._tails import chance_of, tail_of
from flowos.plan._trust import NOISE_THRESHOLDS, NoiseThresholds

LOOKS = 4
MIN_ROUNDS = 4
MEDIAN_ERROR = 0.04
OUTLIER_FLOOR = 0.05
OUTLIER_FACTOR = 5.0
SIDED = 0.1
"""Marks are attributed to one case if chance puts them on one side less often than this."""
MEDIAN_PER_QUARTILES = math.sqrt(math.pi / 2) / 1.349
"""Standard deviation of a median, times the root of the count, over the interquartile range."""


def compare(
    seen: Iterable[Sample],
    *,
    axis: str,
    base: str,
    margin: float,
    looks: int = LOOKS,
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> tuple[Verdict, ...]:
    """Compare each level of `axis` with `base`, per probe, other levels and metric.

    Only whole rounds that hold both cases count. margin: differences up to this share count as
    equal (0.03 for 3 %). looks: how often this comparison is examined before it ends. Without any
    usable round the ratio is NaN. With fewer than four rounds the interval is 0..inf, unless no
    noise can explain the factor (see `_few`).
    """
    found = pairs(seen, axis, base, limits)
    noise = {key: _noise(key, found) for key in map(_alike, found)}
    return tuple(_verdict(pair, axis, margin, looks, noise[_alike(pair)]) for pair in found)


def _alike(pair: Pair) -> tuple[str, str, str]:
    """Pairs with the same noise: one metric on the same number of cores, as others use the rest."""
    return pair.probe, pair.metric, dict(pair.rest).get("cores", "")


def _noise(key: tuple[str, str, str], found: Sequence[Pair]) -> Noise:
    """Of the pairs alike; where these have too few rounds to tell, of all pairs of the metric."""
    own = noise_of([p for p in found if _alike(p) == key])
    return own if own.rounds >= MANY else noise_of([p for p in found if _alike(p)[:2] == key[:2]])


def _verdict(pair: Pair, axis: str, margin: float, looks: int, noise: Noise) -> Verdict:
    counted = quiet_rounds(pair.rounds)
    kept = without_outliers(counted)
    median = _interval(kept, 1 - MEDIAN_ERROR / looks, noise)
    tail = tail_of([counted], math.log1p(margin)) if len(counted) > 1 else None
    found = concluded(
        Verdict(
            probe=pair.probe,
            axis=axis,
            base=pair.base,
            other=pair.other,
            rest=pair.rest,
            metric=pair.metric,
            ratio=math.nan,
            low=0.0,
            high=math.inf,
            margin=margin,
            rounds=len(kept),
            answer="inconclusive",
            disturbed=sum(r.marked for r in kept),
        ),
        Evidence(median=median, tail=tail, looks=looks),
    )
    why = (found.why or _wide(found), *_left_out(pair.rounds, kept))
    return replace(found, why="; ".join(word for word in why if word))


def quiet_rounds(rounds: Sequence[Round]) -> Sequence[Round]:
    """Unmarked rounds; all rounds if most are marked or if the marks occur mostly on one side."""
    quiet = [r for r in rounds if not r.marked]
    enough = len(quiet) >= max(MIN_ROUNDS, len(rounds) / 2)
    sided = chance_of(r.other.marked - r.base.marked for r in rounds) < SIDED
    return quiet if enough and not sided else rounds


def without_outliers(rounds: Sequence[Round]) -> Sequence[Round]:
    """Rounds used for the median: without those in which the turns of one case are far apart."""
    if not rounds:
        return rounds
    outlier = max(OUTLIER_FLOOR, OUTLIER_FACTOR * median(r.inner for r in rounds))
    return [r for r in rounds if r.inner <= outlier]


def _interval(rounds: Sequence[Round], level: float, noise: Noise) -> Interval:
    ratios = [r.log_ratio for r in rounds]
    if len(ratios) < MIN_ROUNDS:
        return beyond_noise(rounds, noise)
    return interval(ratios, level, min_deviation=deviation_inside(rounds))


def deviation_inside(rounds: Sequence[Round]) -> float:
    """Standard deviation of a round's log ratio, from the differences between turns of one case.

    Side by side: of the median of the turns' log ratios, from their quartiles.
    """
    interleaved = [r for r in rounds if r.interleaved]
    if interleaved:
        each = (r.inner**2 / len(r.differences) for r in interleaved)
        return MEDIAN_PER_QUARTILES * math.sqrt(fmean(each))
    sides = [side.logs for r in rounds for side in (r.base, r.other)]
    squares = sum((v - sum(logs) / len(logs)) ** 2 for logs in sides for v in logs)
    freedom = sum(len(logs) - 1 for logs in sides)
    turns = min(len(logs) for logs in sides)
    return math.sqrt(2 / turns * squares / freedom)


def _wide(v: Verdict) -> str:
    if v.answer != "inconclusive":
        return DECIDED_BY_FEW if v.rounds < MIN_ROUNDS else ""
    if v.rounds < MIN_ROUNDS:
        return f"both ran in {v.rounds} of the {MIN_ROUNDS} whole rounds needed"
    return "the interval holds 1 and is wider than the margin"


def _left_out(rounds: Sequence[Round], kept: Sequence[Round]) -> Iterator[str]:
    if left_out := len(rounds) - len(kept):
        yield f"{left_out} of {len(rounds)} rounds were disturbed and left out"
    if marked := sum(r.marked for r in kept):
        yield f"{marked} of {len(kept)} rounds were disturbed and had to be used"
    if two := regimes(exponential(r.log_ratio) for r in kept):
        yield f"the ratio has {two}"
