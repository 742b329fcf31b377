"""What a sweep ends in: the best setting, and what each setting is worth, all else equal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median

from flowos.model import Case, Pairs, Sample, Verdict
from flowos.plan._compare import compare

MARGIN = 0.03
SETTING = "setting"
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The case with the best median, and what becomes of it when one setting is changed.

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


def worth(seen: Iterable[Sample], metric: str, margin: float = MARGIN) -> Worth | None:
    """The end of a sweep over `metric`, a rate; None where nothing of it was measured."""
    samples = [s for s in seen if s.metric == metric and s.values]
    if not samples:
        return None
    medians = _medians(samples)
    best = max(medians, key=medians.__getitem__)
    whole = {v.other: v for v in _compare_whole(samples, best, margin)}
    return Worth(
        metric=metric,
        unit=samples[0].unit,
        best=best,
        value=medians[best],
        rivals=tuple(
            c for c in medians if c.label in whole and whole[c.label].answer in ("equal", "faster")
        ),
        settings=tuple(
            _verdict(samples, medians, best, whole, axis, level, margin)
            for axis, levels in _varied(medians).items()
            for level in levels
            if level != best.level(axis)
        ),
    )


def _medians(samples: Sequence[Sample]) -> dict[Case, float]:
    turns: dict[Case, list[float]] = {}
    for sample in samples:
        turns.setdefault(sample.case, []).append(median(sample.values))
    return {case: median(values) for case, values in turns.items()}


def _varied(cases: Iterable[Case]) -> dict[str, list[str]]:
    """The axes with more than one level, and their levels in the order seen."""
    levels: dict[str, list[str]] = {}
    for case in cases:
        for axis, level in case.levels:
            if level not in levels.setdefault(axis, []):
                levels[axis].append(level)
    return {axis: found for axis, found in levels.items() if len(found) > 1}


def _compare_whole(samples: Sequence[Sample], best: Case, margin: float) -> tuple[Verdict, ...]:
    """Every case beside the best, each as one level of a single axis."""
    named = [
        replace(s, case=Case(s.case.probe, levels=((SETTING, s.case.label),))) for s in samples
    ]
    return compare(named, axis=SETTING, base=best.label, margin=margin, looks=1)


def _verdict(
    samples: Sequence[Sample],
    medians: dict[Case, float],
    best: Case,
    whole: dict[str, Verdict],
    axis: str,
    level: str,
    margin: float,
) -> Verdict:
    base = best.level(axis)
    alike = [
        v
        for v in compare(samples, axis=axis, base=base, margin=margin, looks=1)
        if v.other == level and v.rounds
    ]
    if alike:
        return max(alike, key=lambda v: len(set(v.rest) & set(best.levels)))
    of_level = {case: value for case, value in medians.items() if case.level(axis) == level}
    stand_in = max(of_level, key=of_level.__getitem__)
    rest = tuple(pair for pair in stand_in.levels if pair[0] != axis)
    return replace(whole[stand_in.label], axis=axis, base=base, other=level, rest=rest)


def in_words(found: Worth) -> tuple[str, ...]:
    """One line for the best setting, one for each setting's worth."""
    setting = ", ".join(f"{axis} {level}" for axis, level in found.best.levels)
    lines = [f"best {found.metric}: {_scaled(found.value, found.unit)} with {setting}"]
    lines += [f"not told from it: {rival.label}" for rival in found.rivals]
    lines += [_line(verdict, found.best.levels) for verdict in found.settings]
    return tuple(lines)


def _scaled(value: float, unit: str) -> str:
    """61.2 GB/s, 130 Gflop/s: as people read rates."""
    prefix = next((p for p in PREFIXES if value >= p[0]), (1.0, ""))
    return f"{value / prefix[0]:.3g} {prefix[1]}{unit.replace('byte', 'B')}"


def _line(v: Verdict, best: Pairs) -> str:
    elsewhere = [f"{axis} {level}" for axis, level in v.rest if (axis, level) not in best]
    where = f", at {', '.join(elsewhere)}" if elsewhere else ""
    interval = f"{v.low:.3f} to {v.high:.3f}" if isfinite(v.high) else "too few rounds to be sure"
    return f"{v.axis}: {v.other} gives {v.ratio:.3f} ({interval}) of {v.base}: {v.answer}{where}"
