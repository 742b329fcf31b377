"""Summarizes samples of one case and metric: spread, shares of ceilings, and trust."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from flowos._dataclasses import replace
from flowos.model import Case, Measurement, Sample, Share, Trust, lower_is_better
from flowos.plan._trust import NOISE_THRESHOLDS, NoiseThresholds, assess_trust, undisturbed

ABOVE_CEILING = 1.02

CeilingOf = Callable[[Case], Case | None]
"""The case that bounds this one; its optional level "metric" names the metric."""

NominalOf = Callable[[Case, str], tuple[str, float] | None]
"""For a case and a unit: name and value of the data sheet's figure."""

_Key = tuple[Case, str, str]
"""Case, metric, unit."""


def no_ceiling(_case: Case) -> None:
    """No case bounds this one."""


def no_nominal(_case: Case, _unit: str) -> None:
    """No data sheet is known."""


def summarize(
    seen: Iterable[Sample],
    *,
    ceiling_of: CeilingOf = no_ceiling,
    nominal_of: NominalOf = no_nominal,
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> tuple[Measurement, ...]:
    """One measurement per case and metric, in the order first seen; without finite values none.

    median, low and high (the quartiles) and best are over all values of the samples with an
    unmarked machine state. If every sample is marked, they are over all samples, and the marks
    stay. Values that are not finite are left out and marked. A measured ceiling is the best value
    in this unit among the cases with the ceiling's probe and levels. A share is the median over the
    ceiling (for times: the ceiling over the median); it is marked above 1.02.
    """
    found: dict[_Key, list[Sample]] = {}
    for sample in seen:
        found.setdefault((sample.case, sample.metric, sample.unit), []).append(sample)
    plain = [_measurement(key, all_, limits) for key, all_ in found.items() if _values(all_)]
    bests = {(m.case, m.metric, m.unit): m.best for m in plain}
    return tuple(_with_shares(m, bests, ceiling_of(m.case), nominal_of) for m in plain)


def _measurement(key: _Key, samples: Sequence[Sample], limits: NoiseThresholds) -> Measurement:
    case, metric, unit = key
    finite = [s for s in samples if _values([s])]
    quiet = [s for s in finite if undisturbed(s.state, limits)] or finite
    values = _values(quiet)
    low, median, high = _quartiles(values)
    return Measurement(
        case=case,
        metric=metric,
        unit=unit,
        count=len(values),
        median=median,
        low=low,
        high=high,
        best=_best(values, unit),
        trust=Trust(
            marks=(
                *assess_trust((s.state for s in quiet), values, limits).marks,
                *_not_finite(samples),
            )
        ),
    )


def _not_finite(samples: Sequence[Sample]) -> Iterator[str]:
    count = sum(len(s.values) for s in samples)
    if odd := count - len(_values(samples)):
        yield f"{odd} of {count} values are not finite numbers, and left out"


def _with_shares(
    m: Measurement, bests: Mapping[_Key, float], ceiling: Case | None, nominal_of: NominalOf
) -> Measurement:
    nominal = nominal_of(m.case, m.unit)
    shares: list[Share] = []
    marks = list(m.trust.marks)
    measured = None if ceiling is None else _best_of(ceiling, m.unit, bests)
    if ceiling is not None and measured is not None:
        shares += _share("measured", ceiling.label, measured, m)
    marks += (
        f"{s.value:.0%} of {s.of}: above its ceiling" for s in shares if s.value > ABOVE_CEILING
    )
    if nominal is not None:
        shares += _share("nominal", *nominal, m)
    return replace(m, shares=tuple(shares), trust=Trust(marks=tuple(marks)))


def _best_of(ceiling: Case, unit: str, bests: Mapping[_Key, float]) -> float | None:
    """Best value of any measured case that has the ceiling's levels, or more."""
    metric = ceiling.level("metric")
    levels = {pair for pair in ceiling.levels if pair[0] != "metric"}
    found = [
        best
        for (case, name, its_unit), best in bests.items()
        if case.probe == ceiling.probe
        and its_unit == unit
        and metric in ("", name)
        and levels <= set(case.levels)
    ]
    return _best(found, unit) if found else None


def _share(
    kind: Literal["measured", "nominal"], of: str, ceiling: float, m: Measurement
) -> Iterator[Share]:
    """Yields nothing if a share has no meaning: a ceiling or a median that is not above 0."""
    if ceiling > 0 and m.median > 0:
        value = ceiling / m.median if lower_is_better(m.unit) else m.median / ceiling
        yield Share(kind=kind, of=of, ceiling=ceiling, value=value)


def _values(samples: Iterable[Sample]) -> list[float]:
    return [v for s in samples for v in s.values if math.isfinite(v)]


def _best(values: Sequence[float], unit: str) -> float:
    return min(values) if lower_is_better(unit) else max(values)


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Quartiles, linearly interpolated between two values."""
    ordered = sorted(values)

    def below(share: float) -> float:
        whole, part = divmod(share * (len(ordered) - 1), 1)
        low, high = ordered[int(whole)], ordered[min(int(whole) + 1, len(ordered) - 1)]
        return low + (high - low) * part

    return below(0.25), below(0.5), below(0.75)
