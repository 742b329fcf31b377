"""Compares two runs whose measurements were not interleaved.

Other changes between the runs, such as another job or a different clock, are unknown. The
comparison therefore finds what became worse, but not why. To find the cause, measure both in one
run (`flowos measure --env`).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import Answer, Case, Measurement, Sample, Verdict, lower_is_better
from flowos.plan._geomean_verdict import GEOMEAN
from flowos.plan._trust import NOISE_THRESHOLDS, NoiseThresholds, undisturbed

UNPAIRED = "the runs were not interleaved: what else changed between them is not known"
MUCH = 3
"""A single number that is slower by more than this many margins makes its probe slower."""

MIN_VALUES = 4
"""With fewer values in either run, a number differs only by more than MUCH margins."""

_Key = tuple[Case, str, str]
"""Case, metric, unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Measurements of one run.

    samples: those from which the measurements were computed. failed: cases that could not be
    measured, even with enough time. ended_early: why the run did, or "".
    """

    run: str
    measurements: Sequence[Measurement]
    samples: Sequence[Sample] = ()
    failed: Collection[Case] = ()
    ended_early: str = ""
    limits: NoiseThresholds = NOISE_THRESHOLDS

    @property
    def by_key(self) -> dict[_Key, Measurement]:
        return {(m.case, m.metric, m.unit): m for m in self.measurements}

    @property
    def means(self) -> dict[_Key, float]:
        """Means of the values of undisturbed samples; of all samples where none is undisturbed."""
        quiet, rest = defaultdict[_Key, list[float]](list), defaultdict[_Key, list[float]](list)
        for s in self.samples:
            values = [v for v in s.values if math.isfinite(v)]
            rest[s.case, s.metric, s.unit] += values
            if undisturbed(s.state, self.limits):
                quiet[s.case, s.metric, s.unit] += values
        return {key: fmean(quiet[key] or values) for key, values in rest.items() if values}


def side_by_side(base: Numbers, other: Numbers, *, margin: float) -> tuple[Verdict, ...]:
    """One verdict for each number that both runs have, in the order of `other`.

    ratio: of the medians. low, high: ratios of opposite quartiles, which is no confidence interval.
    mean: ratio of the means. A number that is marked in either run is inconclusive.
    Slower or faster: the interquartile ranges are disjoint and the medians differ by more than the
    margin. Equal: the ratios of medians and of means lie within the margin, and low and high within
    twice the margin.
    """
    before, means = base.by_key, (base.means, other.means)
    return tuple(
        _judged(before[key], now, (base.run, other.run), _mean(key, means), margin)
        for key, now in other.by_key.items()
        if key in before
    )


def by_probe(
    rows: Sequence[Verdict], base: Numbers, other: Numbers, *, margin: float
) -> tuple[Verdict, ...]:
    """One verdict for each probe of either run, from the verdicts on its numbers.

    ratio, low and high are geometric means over the numbers that can be compared. The answer is
    'inconclusive' if no more than half can be compared, or if the probe is in one run only. What is
    0 in both runs is equal, and counts for neither half.
    """
    probes = dict.fromkeys(m.case.probe for m in (*base.measurements, *other.measurements))
    return tuple(
        _on_the_whole(probe, [v for v in rows if v.probe == probe], base, other, margin)
        for probe in probes
    )


RunsOutcome = Literal["equal or better", "worse", "cannot judge"]


def outcome(verdicts: Iterable[Verdict]) -> RunsOutcome:
    """'worse' if any verdict is slower; 'cannot judge' if any is inconclusive, or there is none."""
    answers = {v.answer for v in verdicts}
    if "slower" in answers:
        return "worse"
    return "cannot judge" if "inconclusive" in answers or not answers else "equal or better"


def _mean(key: _Key, means: tuple[Mapping[_Key, float], Mapping[_Key, float]]) -> float | None:
    """Ratio of the means, above 1 if the other run is better; None if unknown."""
    before, after = (found.get(key, 0.0) for found in means)
    if min(before, after) <= 0:
        return None
    return before / after if lower_is_better(key[2]) else after / before


def _judged(
    base: Measurement, other: Measurement, runs: tuple[str, str], mean: float | None, margin: float
) -> Verdict:
    ratio, low, high = _ratios(base, other)
    both = list(zip(runs, (base, other), strict=True))
    marks = tuple(f"{run}: {mark}" for run, m in both for mark in m.trust.marks)
    values = min(base.count, other.count)
    answer, why = _answer((ratio, low, high), mean, margin, marks, values)
    if low <= 0 and not marks:
        why = f"{base.median:.3g}, then {other.median:.3g} {base.unit}: {why}"
        answer, why = ("equal", "0 in both") if _are_0(base, other) else (answer, why)
    return Verdict(
        probe=base.case.probe,
        axis="run",
        base=runs[0],
        other=runs[1],
        rest=base.case.levels,
        metric=base.metric,
        ratio=ratio,
        low=low,
        high=high,
        margin=margin,
        rounds=0,
        answer=answer,
        why=why,
        disturbed=sum(not m.trust.good for _, m in both),
        mean=mean,
        marks=marks,
    )


def _are_0(*measured: Measurement) -> bool:
    return all(m.low == m.high == 0 for m in measured)


def _ratios(base: Measurement, other: Measurement) -> tuple[float, float, float]:
    """Ratio of the medians, and its range; (0, inf) if a low value is 0 or below."""
    better, worse = (base, other) if lower_is_better(base.unit) else (other, base)
    ratio = better.median / worse.median if min(better.median, worse.median) > 0 else math.nan
    if min(better.low, worse.low) <= 0:
        return ratio, 0.0, math.inf
    return ratio, better.low / worse.high, better.high / worse.low


def _answer(
    ratios: tuple[float, float, float],
    mean: float | None,
    margin: float,
    marks: tuple[str, ...],
    values: int,
) -> tuple[Answer, str]:
    if marks:
        return "inconclusive", f"not to be trusted: {marks[0]}"
    if ratios[1] <= 0:
        return "inconclusive", "a value is not above 0, so that there is no ratio"
    if values < 2:
        return "inconclusive", "measured once, so that its spread is not known"
    at, low, high = map(math.log, ratios)
    bound = math.log1p(margin)
    least = bound if values >= MIN_VALUES else MUCH * bound
    if high < 0 and at < -least:
        return "slower", ""
    if low > 0 and at > least:
        return "faster", ""
    if abs(at) > bound:
        return "inconclusive", _meet(high < 0 or low > 0, values)
    if max(-low, high) > 2 * bound:
        return "inconclusive", "the middle halves are wider than the margin"
    if mean is not None and abs(math.log(mean)) > bound:
        return "inconclusive", f"the medians are equal, but the ratio of the means is {mean:.3f}"
    return "equal", ""


def _meet(apart: bool, values: int) -> str:
    if apart:
        return f"the medians lie apart, but not by enough for {values} values"
    return "the medians lie apart, and the middle halves meet"


def _on_the_whole(
    probe: str, rows: Sequence[Verdict], base: Numbers, other: Numbers, margin: float
) -> Verdict:
    judged = [v for v in rows if not v.marks and v.low > 0]
    answer, why = _whole_answer(rows, judged, margin)
    alone = _alone(probe, base, other)
    if answer != "slower" and (lost := _lost(probe, len(judged), base, other)):
        answer, why = "inconclusive", "; ".join(word for word in (why, lost) if word)
    return Verdict(
        probe=GEOMEAN,
        axis="run",
        base=base.run,
        other=other.run,
        rest=(),
        metric=probe,
        ratio=_geometric_mean(judged, lambda v: v.ratio),
        low=_geometric_mean(judged, lambda v: v.low) if judged else 0.0,
        high=_geometric_mean(judged, lambda v: v.high) if judged else math.inf,
        margin=margin,
        rounds=0,
        answer=answer,
        why="; ".join(word for word in (why, *alone) if word),
        disturbed=sum(bool(v.marks) for v in rows),
        marks=tuple(dict.fromkeys(v.marks[0] for v in rows if v.marks))[:1],
    )


def _whole_answer(
    rows: Sequence[Verdict], judged: Sequence[Verdict], margin: float
) -> tuple[Answer, str]:
    rest = [v for v in rows if not (v.answer == "equal" and v.low <= 0)]  # without 0 in both
    if rows and not rest:
        return "equal", rows[0].why
    if 2 * len(judged) <= len(rest):
        return "inconclusive", _unjudged(rest, judged)
    bound = math.log1p(margin)
    at = math.log(_geometric_mean(judged, lambda v: v.ratio)) / bound
    mean = math.log(_geometric_mean(judged, lambda v: v.mean or v.ratio)) / bound
    slower, faster, equal = (
        [v for v in judged if v.answer == answer] for answer in ("slower", "faster", "equal")
    )
    counts = f"{len(slower)} slower, {len(equal)} equal, {len(faster)} faster of {len(judged)}"
    if slower and (at < -1 or any(math.log(v.ratio) < -MUCH * bound for v in slower)):
        return "slower", counts
    if slower or at < -1:
        return "inconclusive", f"{counts}: single numbers and the whole do not agree"
    if mean < -1:
        return "inconclusive", f"{counts}; the means are slower, though not the medians"
    if at > 1:
        return ("faster" if faster else "inconclusive"), counts
    return ("equal" if 2 * len([*equal, *faster]) >= len(judged) else "inconclusive"), counts


def _unjudged(rows: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    marked = sum(bool(v.marks) for v in rows)
    words = [f"{marked} of {len(rows)} numbers are marked"] if marked else []
    if zero := len(rows) - len(judged) - marked:
        words.append(f"{zero} of {len(rows)} have no ratio, as a value is not above 0")
    return ", ".join(words)


def _lost(probe: str, judged: int, base: Numbers, other: Numbers) -> str:
    """What keeps the probe from being equal or faster: numbers that the other run does not have."""
    ours = [key for key in base.by_key if key[0].probe == probe]
    missing = [key for key in ours if key not in other.by_key]
    failed = sum(any(is_within(key[0], case) for case in other.failed) for key in missing)
    if failed:
        return f"{failed} of {len(ours)} numbers could not be measured in {other.run}"
    if other.ended_early and missing and 2 * judged <= len(ours):
        return f"{other.run} ended early: {other.ended_early}"
    return ""


def is_within(found: Case, case: Case) -> bool:
    """Whether it is this case, or a point of it that its program swept by itself."""
    return found.probe == case.probe and set(case.levels) <= set(found.levels)


def _alone(probe: str, base: Numbers, other: Numbers) -> Iterable[str]:
    """Reports numbers that only one of the runs has."""
    for here, there in ((base, other), (other, base)):
        ours = [key for key in here.by_key if key[0].probe == probe]
        if lone := sum(key not in there.by_key for key in ours):
            yield f"{lone} of {len(ours)} numbers are in {here.run} only"


def _geometric_mean(rows: Sequence[Verdict], of: Callable[[Verdict], float]) -> float:
    return math.exp(fmean(math.log(of(v)) for v in rows)) if rows else math.nan
