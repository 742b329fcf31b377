"""The result of a sweep: the best setting, and what each setting gains, all else equal."""

from collections.abc import Iterable, Mapping, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.model import EQUAL_MARGIN, Case, Sample, Verdict
from flowos.plan import NOISE_THRESHOLDS, NoiseThresholds, compare
from flowos.probes._best import case_effects

SETTING = "setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningGain:
    """The best case (see `_best`), and the effect of changing one setting of it.

    contenders: other cases that do not differ from the best by more than `margin`.
    settings: a verdict of each other level of each axis against the best's level. Its `rest` is
    that of the best, or the nearest that was measured; if all else cannot be equal (a compiler with
    flags of its own), it is of that level's best case.
    """

    metric: str
    best: Case
    contenders: tuple[Case, ...]
    settings: tuple[Verdict, ...]


def tuning_gain(
    seen: Iterable[Sample],
    metric: str,
    margin: float = EQUAL_MARGIN,
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> TuningGain | None:
    """The result of a sweep over `metric`, a rate; None if it was not measured."""
    samples = [s for s in seen if s.metric == metric and s.values and min(s.values) > 0]
    if not samples:
        return None
    effects = case_effects(samples, limits)
    best = max(effects, key=effects.__getitem__)
    whole = {v.other: v for v in _compare_whole(samples, best, margin, limits)}
    compared = {
        axis: compare(
            samples, axis=axis, base=best.level(axis), margin=margin, looks=1, limits=limits
        )
        for axis in _varied(effects)
    }
    return TuningGain(
        metric=metric,
        best=best,
        contenders=tuple(c for c in effects if c.label in whole and _alike(whole[c.label])),
        settings=tuple(
            _nearest(verdicts, best, level) or _stand_in(effects, whole, best, axis, level)
            for axis, verdicts in compared.items()
            for level in _varied(effects)[axis]
            if level != best.level(axis)
        ),
    )


def _alike(v: Verdict) -> bool:
    """Is it faster, or equal within the margin, by the median? A sweep is too short for stalls."""
    within = 1 / (1 + v.margin) <= v.low and v.high <= 1 + v.margin
    return v.answer == "faster" or within


def _varied(cases: Iterable[Case]) -> dict[str, list[str]]:
    """The axes with more than one level, and their levels in the order seen."""
    levels: dict[str, list[str]] = {}
    for case in cases:
        for axis, level in case.levels:
            if level not in levels.setdefault(axis, []):
                levels[axis].append(level)
    return {axis: found for axis, found in levels.items() if len(found) > 1}


def _compare_whole(
    samples: Sequence[Sample], best: Case, margin: float, limits: NoiseThresholds
) -> tuple[Verdict, ...]:
    """Compare every case with the best, each as one level of a single axis."""
    named = [
        replace(s, case=Case(s.case.probe, levels=((SETTING, s.case.label),))) for s in samples
    ]
    return compare(named, axis=SETTING, base=best.label, margin=margin, looks=1, limits=limits)


def _nearest(verdicts: Iterable[Verdict], best: Case, level: str) -> Verdict | None:
    """The verdict on this level whose other settings are nearest to the best's."""
    alike = [v for v in verdicts if v.other == level and v.rounds]
    return max(alike, key=lambda v: len(set(v.rest) & set(best.levels)), default=None)


def _stand_in(
    effects: Mapping[Case, float], whole: Mapping[str, Verdict], best: Case, axis: str, level: str
) -> Verdict:
    """Compare the level's best case with the best of all."""
    case = max((c for c in effects if c.level(axis) == level), key=effects.__getitem__)
    rest = tuple(pair for pair in case.levels if pair[0] != axis)
    return replace(whole[case.label], axis=axis, base=best.level(axis), other=level, rest=rest)


def in_words(found: TuningGain, value: str) -> tuple[str, ...]:
    """The best setting with its number, and cases that do not differ from it."""
    setting = ", ".join(f"{axis} {level}" for axis, level in found.best.levels)
    lines = [f"best {found.metric}: {value} with {setting}"]
    if found.contenders:
        first, *others = (contender.label for contender in found.contenders)
        lines.append(
            f"no measurable difference from it: {first}"
            + (f" and {len(others)} more" if others else "")
        )
    return tuple(lines)
