"""What a sweep ends in: the best setting, and what each setting is worth, all else equal.

The best is not the highest median: a machine that runs faster for a minute would make the cases of
that minute the best. Each turn is taken as case effect plus round effect, fitted by median polish
(Tukey, Exploratory Data Analysis, 1977, chapter 11), and the highest case effect is the best.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TypeVar

from flowos.model import Case, Sample, Verdict
from flowos.plan import LIMITS, Limits, compare, judge

Key = TypeVar("Key", bound=Hashable)

MARGIN = 0.03
SETTING = "setting"
SWEEPS = 10
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The best case, its median, and what becomes of it when one setting is changed.

    rivals: other cases that are not told from the best by `margin`.
    settings: per axis and other level a verdict beside the best's level. Its `rest` is that of the
    best, or the nearest that was measured; where all else could not be equal (a compiler with
    flags of its own), that level's best case stands for it.
    """

    metric: str
    unit: str
    best: Case
    value: float
    rivals: tuple[Case, ...]
    settings: tuple[Verdict, ...]


def worth(
    seen: Iterable[Sample], metric: str, margin: float = MARGIN, limits: Limits = LIMITS
) -> Worth | None:
    """The end of a sweep over `metric`, a rate; None where nothing of it was measured."""
    samples = [s for s in seen if s.metric == metric and s.values and min(s.values) > 0]
    if not samples:
        return None
    effects = _case_effects(_calm(samples, limits))
    best = max(effects, key=effects.__getitem__)
    whole = {v.other: v for v in _compare_whole(samples, best, margin, limits)}
    compared = {
        axis: compare(
            samples, axis=axis, base=best.level(axis), margin=margin, looks=1, limits=limits
        )
        for axis in _varied(effects)
    }
    return Worth(
        metric=metric,
        unit=samples[0].unit,
        best=best,
        value=median(median(s.values) for s in samples if s.case == best),
        rivals=tuple(
            c for c in effects if c.label in whole and whole[c.label].answer in ("equal", "faster")
        ),
        settings=tuple(
            _nearest(verdicts, best, level) or _stand_in(effects, whole, best, axis, level)
            for axis, verdicts in compared.items()
            for level in _varied(effects)[axis]
            if level != best.level(axis)
        ),
    )


def _calm(samples: Sequence[Sample], limits: Limits) -> Sequence[Sample]:
    """The undisturbed samples, if they hold every case; else all."""
    calm = [s for s in samples if judge([s.state], limits=limits).good]
    return calm if {s.case for s in calm} == {s.case for s in samples} else samples


def _case_effects(samples: Sequence[Sample]) -> dict[Case, float]:
    """How the cases differ (log rate) once what a whole round has in common is taken out."""
    turns: dict[tuple[Case, Hashable], list[float]] = {}
    for s in samples:
        turns.setdefault((s.case, (s.run, s.round)), []).append(math.log(median(s.values)))
    cells = {cell: fmean(logs) for cell, logs in turns.items()}
    cases = {case: 0.0 for case, _ in cells}
    rounds: dict[Hashable, float] = {number: 0.0 for _, number in cells}
    for _ in range(SWEEPS):
        rounds = _medians((number, log - cases[case]) for (case, number), log in cells.items())
        cases = _medians((case, log - rounds[number]) for (case, number), log in cells.items())
    return cases


def _medians(values: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    grouped: dict[Key, list[float]] = {}
    for key, value in values:
        grouped.setdefault(key, []).append(value)
    return {key: median(found) for key, found in grouped.items()}


def _varied(cases: Iterable[Case]) -> dict[str, list[str]]:
    """The axes with more than one level, and their levels in the order seen."""
    levels: dict[str, list[str]] = {}
    for case in cases:
        for axis, level in case.levels:
            if level not in levels.setdefault(axis, []):
                levels[axis].append(level)
    return {axis: found for axis, found in levels.items() if len(found) > 1}


def _compare_whole(
    samples: Sequence[Sample], best: Case, margin: float, limits: Limits
) -> tuple[Verdict, ...]:
    """Every case beside the best, each as one level of a single axis."""
    named = [
        replace(s, case=Case(s.case.probe, levels=((SETTING, s.case.label),))) for s in samples
    ]
    return compare(named, axis=SETTING, base=best.label, margin=margin, looks=1, limits=limits)


def _nearest(verdicts: Iterable[Verdict], best: Case, level: str) -> Verdict | None:
    """The verdict on this level whose other settings are most like the best's."""
    alike = [v for v in verdicts if v.other == level and v.rounds]
    return max(alike, key=lambda v: len(set(v.rest) & set(best.levels)), default=None)


def _stand_in(
    effects: Mapping[Case, float], whole: Mapping[str, Verdict], best: Case, axis: str, level: str
) -> Verdict:
    """The level's best case beside the best of all."""
    case = max((c for c in effects if c.level(axis) == level), key=effects.__getitem__)
    rest = tuple(pair for pair in case.levels if pair[0] != axis)
    return replace(whole[case.label], axis=axis, base=best.level(axis), other=level, rest=rest)


def in_words(found: Worth) -> tuple[str, ...]:
    """The best setting, and what is not told from it; the verdicts say what settings are worth."""
    setting = ", ".join(f"{axis} {level}" for axis, level in found.best.levels)
    lines = [f"best {found.metric}: {_scaled(found.value, found.unit)} with {setting}"]
    lines += [f"not told from it: {rival.label}" for rival in found.rivals]
    return tuple(lines)


def _scaled(value: float, unit: str) -> str:
    """61.2 GB/s, 130 Gflop/s: as people read rates."""
    prefix = next((p for p in PREFIXES if value >= p[0]), (1.0, ""))
    return f"{value / prefix[0]:.3g} {prefix[1]}{unit.replace('byte', 'B')}"
