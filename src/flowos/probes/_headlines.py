"""The key numbers of a machine, among the hundreds that are measured."""

from collections.abc import Iterable, Iterator, Sequence

from flowos.model import Measurement, Sample, lower_is_better
from flowos.plan import NOISE_THRESHOLDS, NoiseThresholds
from flowos.probes import _tables
from flowos.probes._base import Headline
from flowos.probes._best import case_effects


def headlines_of(
    measured: Sequence[Measurement],
    samples: Sequence[Sample],
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> Iterator[tuple[Headline, Measurement]]:
    """Each headline that was measured, with its number."""
    for probe in _tables.PROBES:
        ours = [m for m in measured if m.case.probe == probe.name]
        for headline in probe.headlines(ours):
            if found := best_of(headline, ours, samples, limits):
                yield headline, found


def best_of(
    headline: Headline,
    measured: Iterable[Measurement],
    samples: Sequence[Sample] = (),
    limits: NoiseThresholds = NOISE_THRESHOLDS,
) -> Measurement | None:
    """The best of a headline's settings by the rule of `_best`; None if none was measured.

    For ceilings, and without samples of positive values, the one with the best value.
    """
    fitting = {m.case: m for m in measured if headline.fits(m)}
    if not fitting:
        return None
    ours = [
        s
        for s in samples
        if s.metric == headline.metric and s.case in fitting and min(s.values, default=0) > 0
    ]
    if not ours or any(m.ceiling for m in fitting.values()):
        return max(fitting.values(), key=_goodness)
    effects = case_effects(ours, limits)
    return fitting[max(effects, key=effects.__getitem__)]


def _goodness(m: Measurement) -> float:
    return -m.value if lower_is_better(m.unit) else m.value
