"""Groups samples of two cases by the rounds in which both were measured."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from statistics import fmean, median, quantiles

from flowos._dataclasses import dataclass
from flowos.model import Pairs, Sample, lower_is_better
from flowos.plan._regimes import positive
from flowos.plan._trust import NoiseThresholds, undisturbed

RoundId = tuple[str, int]
"""Run id and round number."""


@dataclass(frozen=True, slots=True)
class Turns:
    """One case in one round: log goodness of each turn, and whether its machine state is marked.

    A turn is a run of the program. For programs that ran side by side (interleaved), each value
    is a turn, measured next to one of the other program. logs: from the median of a turn's values.
    means: from the mean time, in which stalls count.
    """

    logs: tuple[float, ...]
    means: tuple[float, ...]
    marked: bool
    interleaved: bool


@dataclass(frozen=True)
class Round:
    """A whole round A B B A of two cases, or many such turns of two that ran side by side.

    Without slots: what follows from its turns is asked for often, and computed once.
    """

    at: RoundId
    base: Turns
    other: Turns

    @cached_property
    def differences(self) -> tuple[float, ...]:
        """Log ratio of each two neighbouring turns."""
        return tuple([b - a for a, b in zip(self.base.logs, self.other.logs, strict=True)])

    @cached_property
    def lags(self) -> tuple[float, ...]:
        """The same for mean times: negative where other's turn lags, positive where base's does."""
        return tuple([b - a for a, b in zip(self.base.means, self.other.means, strict=True)])

    @cached_property
    def log_ratio(self) -> float:
        """Median of the differences (robust against a few disturbed turns); of two, the mean."""
        return median(self.differences)

    @cached_property
    def inner(self) -> float:
        """Spread between turns of one case; side by side, interquartile range of the log ratios."""
        if self.interleaved:
            low, _, high = quantiles(self.differences, n=4)
            return high - low
        return max(max(side.logs) - min(side.logs) for side in (self.base, self.other))

    @property
    def interleaved(self) -> bool:
        return self.base.interleaved and self.other.interleaved

    @property
    def marked(self) -> bool:
        return self.base.marked or self.other.marked


@dataclass(frozen=True, slots=True)
class Pair:
    """Two levels of the axis, everything else equal, and the whole rounds that hold both."""

    probe: str
    base: str
    other: str
    rest: Pairs
    metric: str
    rounds: tuple[Round, ...]


def pairs(
    seen: Iterable[Sample], axis: str, base: str, limits: NoiseThresholds
) -> tuple[Pair, ...]:
    """Each other level of `axis` paired with `base`, in the order seen."""
    found: dict[tuple[str, Pairs, str, str], dict[str, dict[RoundId, list[Sample]]]] = {}
    for sample in seen:
        level = dict(sample.case.levels).get(axis)
        if level is not None:
            rest = tuple(pair for pair in sample.case.levels if pair[0] != axis)
            kind = (sample.case.probe, rest, sample.metric, sample.unit)
            rounds = found.setdefault(kind, {}).setdefault(level, {})
            rounds.setdefault((sample.run, sample.round), []).append(sample)
    return tuple(
        Pair(probe, base, level, rest, metric, _whole(levels.get(base, {}), theirs, limits))
        for (probe, rest, metric, _), levels in found.items()
        for level, theirs in levels.items()
        if level != base
    )


def _whole(
    ours: Mapping[RoundId, Sequence[Sample]],
    theirs: Mapping[RoundId, Sequence[Sample]],
    limits: NoiseThresholds,
) -> tuple[Round, ...]:
    """Rounds with equally many turns of both, and at least two."""
    both = (
        Round(at, _turns(ours[at], limits), _turns(theirs[at], limits))
        for at in ours
        if at in theirs
    )
    return tuple(r for r in both if len(r.base.logs) == len(r.other.logs) >= 2)


def _turns(samples: Sequence[Sample], limits: NoiseThresholds) -> Turns:
    """One turn per sample: the median of its values; a sample without a positive value is skipped.

    Of samples with `interleaved` each value is a turn, and all values must be positive.
    """
    sign = -1 if lower_is_better(samples[0].unit) else 1
    interleaved = all(s.interleaved for s in samples)
    kept = [(s, values) for s in samples if (values := positive(s.values))]
    if interleaved:
        whole = (values for s, values in kept if len(values) == len(s.values))
        turns: list[tuple[float, ...]] = [(value,) for values in whole for value in values]
    else:
        turns = [values for _, values in kept]
    return Turns(
        logs=tuple([sign * math.log(_median(values)) for values in turns]),
        means=tuple([_mean([sign * math.log(v) for v in values]) for values in turns]),
        marked=not all(undisturbed(s.state, limits) for s in samples),
        interleaved=interleaved,
    )


def _median(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else median(values)


def _mean(logs: Sequence[float]) -> float:
    """Log goodness of the mean of times with these log goodnesses; it does not overflow."""
    least = min(logs)
    if len(logs) == 1:
        return least
    return least - math.log(fmean([math.exp(least - value) for value in logs]))
