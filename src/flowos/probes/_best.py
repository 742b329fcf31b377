"""Which of several settings is the best: one rule for headlines and sweeps.

The best is not the highest median: a machine that runs faster for a minute would make the cases of
that minute the best. Each turn is taken as case effect plus round effect, fitted by median polish
(Tukey, Exploratory Data Analysis, 1977, chapter 11), and the highest case effect is the best.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean, median
from typing import TypeVar

from flowos.model import Case, Sample, lower_is_better
from flowos.plan import NoiseThresholds, assess_trust

Key = TypeVar("Key", bound=Hashable)

SWEEPS = 10


def case_effects(samples: Sequence[Sample], limits: NoiseThresholds) -> dict[Case, float]:
    """The effect of each case (log), without what all cases of a round have in common.

    Samples of one metric with positive values; disturbed ones are used only if the others do not
    contain every case. The best case has the highest effect, whatever the unit.
    """
    turns: dict[tuple[Case, Hashable], list[float]] = {}
    for s in _calm(samples, limits):
        sign = -1 if lower_is_better(s.unit) else 1
        turns.setdefault((s.case, (s.run, s.round)), []).append(sign * math.log(median(s.values)))
    cells = {cell: fmean(logs) for cell, logs in turns.items()}
    cases: dict[Case, float] = defaultdict(float)
    for _ in range(SWEEPS):
        rounds = _medians((number, log - cases[case]) for (case, number), log in cells.items())
        cases = _medians((case, log - rounds[number]) for (case, number), log in cells.items())
    return cases


def _calm(samples: Sequence[Sample], limits: NoiseThresholds) -> Sequence[Sample]:
    """The undisturbed samples, if they contain every case; else all."""
    quiet = [s for s in samples if assess_trust([s.state], limits=limits).good]
    return quiet if {s.case for s in quiet} == {s.case for s in samples} else samples


def _medians(values: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    grouped: dict[Key, list[float]] = {}
    for key, value in values:
        grouped.setdefault(key, []).append(value)
    return {key: median(found) for key, found in grouped.items()}
