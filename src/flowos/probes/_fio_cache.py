"""Detects, by comparing storage numbers, that a cache answered and not the device."""

from collections.abc import Mapping, Sequence

from flowos._dataclasses import replace
from flowos.model import Case, Measurement, Trust

MIN_DEVICE_SECONDS = 5e-6
WRITES_OVER_READS = 1.3

Key = tuple[frozenset[tuple[str, str]], str]
"""Levels and metric."""


def cache_answers(measured: Sequence[Measurement], probe: str) -> tuple[Measurement, ...]:
    """The measurements, with a mark on those of storage that a cache may have answered."""
    storage = [m for m in measured if m.case.probe == probe]
    typical = {_key(m.case, m.metric): m.median for m in storage}
    return tuple(_marked(m, typical) if m.case.probe == probe else m for m in measured)


def _key(case: Case, metric: str, **changed: str) -> Key:
    return frozenset(case.at(**changed).levels), metric


def _marked(m: Measurement, typical: Mapping[Key, float]) -> Measurement:
    reasons = [reason for reason in (_too_quick(m, typical), _write_cache(m, typical)) if reason]
    return replace(m, trust=Trust(marks=(*m.trust.marks, *reasons))) if reasons else m


def _too_quick(m: Measurement, typical: Mapping[Key, float]) -> str:
    """A note if single requests take less than some microseconds, which no device can do."""
    workload = m.case.level("workload").replace("sequential", "random")
    alone = _key(m.case, "latency_p50", workload=workload, iodepth="1")
    seconds = typical.get(alone, MIN_DEVICE_SECONDS)
    if seconds < MIN_DEVICE_SECONDS:
        return f"answers come after {seconds * 1e6:.1f} us: a cache answers, not a device"
    return ""


def _write_cache(m: Measurement, typical: Mapping[Key, float]) -> str:
    """A note if writes are much faster than reads; the writes of a mix follow its ratio."""
    workload = m.case.level("workload")
    if m.metric not in ("bandwidth", "iops") or workload not in (
        "sequential write",
        "random write",
    ):
        return ""
    read = typical.get(_key(m.case, m.metric, workload=workload.replace("write", "read")), 0.0)
    if read and m.median > WRITES_OVER_READS * read:
        return f"writes are {m.median / read:.1f} times as fast as reads: a write cache answers"
    return ""
