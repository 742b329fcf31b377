"""Rates over the power of the processors: what a joule does."""

from collections.abc import Iterable, Iterator

from flowos._dataclasses import replace
from flowos.model import Sample

PER_JOULE = "_per_joule"
"""What a metric's name ends with."""

_UNITS = {"flop/s": "flop/J", "byte/s": "byte/J"}


def per_joule(samples: Iterable[Sample]) -> Iterator[Sample]:
    """The same rates per joule: over the mean power while the sample's program ran.

    The power is that of whole packages, with idle cores and the program's own set-up in it. Samples
    of another unit, or during which no energy was counted, are left out.
    """
    for sample in samples:
        watts = sample.state.watts
        if sample.unit in _UNITS and watts:
            yield replace(
                sample,
                metric=sample.metric + PER_JOULE,
                unit=_UNITS[sample.unit],
                values=tuple(value / watts for value in sample.values),
            )
