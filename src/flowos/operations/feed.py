"""`flowos feed`: fills, lists, verifies and removes caches. Metrics of feeds."""

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass, field, replace
from flowos.engine import MetricsServer, now
from flowos.feeder import (
    Binding,
    CachedSource,
    CacheLimits,
    Feed,
    FeedStage,
    Prefill,
    PrefillStatus,
    SampleComparison,
    SourceOptions,
    asked,
    binding,
    clear,
    compare,
    compared_with,
    kept_in,
    kept_of,
    opened,
    sample_filter,
    verify,
)
from flowos.model import FeedError, OnProgress
from flowos.operations._progress import ProgressMeter, counted, listing

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from flowos.feeder import Where

__all__ = [
    "CacheLimits",
    "CacheSelection",
    "CachedSource",
    "FillPlan",
    "PrefillResult",
    "SourceOptions",
    "VerifiedCache",
    "asked",
    "cleared",
    "planned",
    "prefilled",
    "removable",
    "sample_filter",
    "serve_metrics",
    "state",
    "verified",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSelection:
    """What of a cache folder is to be used. where: None for all sources in it.

    Of several words, `planned` and `prefilled` make one data set; the others take that one too if
    it is cached, else what each word is by itself.
    """

    cache: str | PathLike[str]
    where: "Where | None" = None
    asked: SourceOptions = field(default_factory=SourceOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class FillPlan:
    """What a prefill would do. bytes: of the source; None if unknown before its files are read."""

    source: str
    samples: int
    bytes: int | None
    cached: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillResult:
    """What a prefill did, and the cache after it.

    already_cached: samples that were there before it began. binding: the stage that the others
    waited for; None: nothing had to be done.
    """

    kept: CachedSource
    already_cached: int
    prefill: PrefillStatus
    seconds: float
    interrupted: bool
    stages: tuple[FeedStage, ...]
    binding: Binding | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedCache:
    """Result of a verification.

    damaged: number of samples whose checksum was wrong; they were dropped. changed: names of
    samples that differ from the source; dropped too. missing: number of samples that the source no
    longer has. compared: was the source read?
    """

    kept: CachedSource
    damaged: int
    compared: bool = False
    changed: tuple[str, ...] = ()
    missing: int = 0


_PREFILLING, _VERIFYING = "warming", "verifying"


def planned(selection: CacheSelection, on_progress: OnProgress) -> FillPlan:
    """What `prefilled` would read. Raises FeedError if the source does not exist."""
    assert selection.where is not None
    with listing(_PREFILLING, on_progress) as found:
        data = opened(selection.where, selection.cache, selection.asked, found)
    sizes = data.catalog.sizes()
    kept = kept_of(selection.cache, selection.where, selection.asked)
    return FillPlan(
        source=data.source.name,
        samples=len(data.catalog),
        bytes=None if bool((sizes < 0).any()) else int(sizes.sum()),
        cached=kept.cached if kept else 0,
    )


def prefilled(
    selection: CacheSelection, limits: CacheLimits, on_progress: OnProgress
) -> PrefillResult:
    """Read the data into the cache. After an interrupt, what was read stays in the cache.

    Raises FeedError if the source does not exist or the cache cannot be written.
    """
    assert selection.where is not None
    began, interrupted, pace = now(), False, ProgressMeter(_PREFILLING, on_progress)
    with listing(_PREFILLING, on_progress) as found:
        prefill = Prefill(selection.where, selection.cache, selection.asked, limits, found)
    at = PrefillStatus(samples=0)
    try:
        for at in prefill.steps():
            done_bytes = at.source_bytes + at.cache_bytes
            pace.at(at.samples, at.done, done_bytes, prefill.binding_seconds)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        prefill.close()
    kept = prefill.kept()
    return PrefillResult(
        kept=replace(kept, processes=max(0, kept.processes - 1)),  # one of them is this
        already_cached=prefill.already_cached,
        prefill=at,
        seconds=now() - began,
        interrupted=interrupted,
        stages=prefill.stages(),
        binding=None if prefill.is_complete else binding(prefill.binding_seconds()),
    )


def state(selection: CacheSelection) -> tuple[CachedSource, ...]:
    """The state of each source's cache in the folder. Raises FeedError if there is none."""
    return kept_in(selection.cache, selection.where, selection.asked)


def verified(
    selection: CacheSelection, *, with_source: bool, on_progress: OnProgress
) -> Iterator[VerifiedCache]:
    """Verify cached samples, optionally against the source. Raises FeedError if there are none."""
    if with_source and selection.where is None:
        raise FeedError("to compare with the source, name it: flowos feed verify SOURCE --source")
    found = state(selection)
    sources: list[Where | None] = [None for _ in found]
    if with_source and selection.where is not None:  # all of them, before the first is read
        sources = [compared_with(kept, selection.where, selection.asked) for kept in found]
    for kept, source in zip(found, sources, strict=True):
        damaged, at = _checked(kept, on_progress), SampleComparison(samples=kept.samples)
        if source is not None:
            at = _compared(replace(selection, where=source), at, on_progress)
        yield VerifiedCache(
            kept=kept,
            damaged=damaged,
            compared=with_source,
            changed=at.changed,
            missing=at.missing,
        )


def _compared(
    selection: CacheSelection, at: SampleComparison, on_progress: OnProgress
) -> SampleComparison:
    """At the end of one source."""
    assert selection.where is not None
    pace = ProgressMeter(_VERIFYING, on_progress)
    with listing(_VERIFYING, on_progress) as found:
        steps = compare(selection.where, selection.cache, selection.asked, found)
    for at in steps:
        pace.at(at.samples, at.done, at.bytes)
    return at


def _checked(kept: CachedSource, on_progress: OnProgress) -> int:
    if kept.samples == 0:
        return 0
    pace = ProgressMeter(_VERIFYING, on_progress)
    with counted(lambda done: pace.at(kept.samples, done, 0)) as done:
        damaged = verify(kept, done)
    pace.at(kept.samples, kept.samples, 0)
    return damaged


def removable(selection: CacheSelection) -> tuple[CachedSource, ...]:
    """What `cleared` takes of it. Raises FeedError if nothing is there, or all is of others."""
    found = state(selection)
    ours = tuple(kept for kept in found if not kept.owner)
    if not ours:
        raise FeedError(
            f"cache folder {found[0].folder} belongs to {found[0].owner}, who alone can remove it"
        )
    return ours


def cleared(kept: CachedSource) -> int:
    """Remove a source's cache; returns the bytes freed. Raises FeedError if a process uses it."""
    return clear(kept)


_COUNTERS = {
    "source_bytes": "Bytes read from the source.",
    "cache_bytes": "Bytes read from the cache of this node.",
    "peer_bytes": "Bytes read from other nodes.",
    "source_samples": "Samples read from the source.",
    "cache_samples": "Samples read from the cache of this node.",
    "peer_samples": "Samples read from other nodes.",
    "batches": "Batches handed over.",
    "waits": "Batches that were not ready when they were asked for.",
    "waited_seconds": "How long the consumer waited for batches.",
    "skipped": "Samples that could not be had and were left out.",
    "replaced": "Samples that could not be had and were replaced.",
    "damaged": "Samples found damaged in the cache and fetched again.",
    "stolen": "Fetches taken over from processes that died.",
    "consumer_seconds": "How long the consumer did not wait for batches: it bound.",
}
_GAUGES = {
    "in_flight": "Reads of the source under way.",
    "depth": "Reads of the source at once that feedback allows.",
    "ready": "Batches that wait to be taken.",
}
_STAGE_COUNTERS = {
    "seconds": "How long the stage was busy, summed over the samples in it.",
    "queued_seconds": "How long samples waited before the stage, summed over them.",
    "samples": "Samples that are through the stage.",
    "bytes": "Bytes that are through the stage, as they came to it.",
    "binding_seconds": "For how long all else waited for the stage.",
}


def serve_metrics(at: str, *feeds: Feed, anywhere: bool = False) -> MetricsServer:
    """Serve the counters of these feeds for Prometheus, under /metrics at AT, until it is closed.

    at: HOST:PORT, on loopback unless `anywhere` is set. Port 0 takes a free one; see the result's
    `at`. Raises UsageError for an invalid address, FlowosError if it is in use or the package
    prometheus_client is missing.

    >>> np.save("tokens.npy", np.arange(12, dtype=np.int32))
    >>> feed = fo.Feed("tokens.npy", batch_size=2, length=3)
    >>> server = fo.serve_metrics("127.0.0.1:0", feed)
    >>> server.at.host
    '127.0.0.1'
    >>> server.close(), feed.close()
    (None, None)
    """
    return MetricsServer(at, FeedCollector(feeds), anywhere=anywhere)


class FeedCollector:
    """Collects the counters of feeds; of a closed feed, the last ones."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds = tuple(feeds)

    def collect(self) -> "Iterator[Metric]":
        """One metric family for each counter, with a sample for each feed."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        one_feed = ("source", "rank")
        counts = [((feed.source, str(feed.rank)), feed.stats()) for feed in self._feeds]
        for kind, numbers in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
            for name, about in numbers.items():
                family = kind(f"flowos_feed_{name}", about, labels=one_feed)
                for labels, stats in counts:
                    family.add_metric(labels, getattr(stats, name))
                yield family
        for name, about in _STAGE_COUNTERS.items():
            family = CounterMetricFamily(
                f"flowos_feed_stage_{name}", about, labels=(*one_feed, "stage")
            )
            for labels, stats in counts:
                for stage in stats.stages:
                    family.add_metric((*labels, stage.name), getattr(stage, name))
            yield family
