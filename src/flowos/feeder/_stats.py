"""What a feed has done so far."""

from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass, fields
from flowos.feeder._data import Data
from flowos.feeder._stages import CONSUMER, Binding, FeedStage, Seconds, binding

if TYPE_CHECKING:
    from flowos._native import FeederStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts since the feed was created, of this process, with what it prefetched.

    source, cache, peer: where the samples came from. waits: batches that were not ready when they
    were asked for; waited_seconds: how long that took in all. skipped, replaced: samples that could
    not be had. damaged: found damaged in the cache, and fetched again. stolen: fetches taken over
    from processes that died. depth: reads of the source at once that are of use, as found by
    feedback; in_flight: now. ready: batches that wait to be taken. complaint: why something was not
    cached; empty where all was. stages: what each did, in their order. consumer_seconds: since the
    first request, while the consumer did not wait: it bound.
    """

    source_bytes: int
    cache_bytes: int
    peer_bytes: int
    source_samples: int
    cache_samples: int
    peer_samples: int
    batches: int
    waits: int
    waited_seconds: float
    skipped: int
    replaced: int
    damaged: int
    stolen: int
    in_flight: int
    depth: int
    ready: int
    complaint: str
    consumer_seconds: float
    stages: tuple[FeedStage, ...]

    def stage(self, name: str) -> FeedStage:
        """list, fetch, decode, cache_write or hand_over."""
        return next(stage for stage in self.stages if stage.name == name)

    def binding(self, since: "Stats | None" = None) -> Binding | None:
        """What all else waited for, and what part of the time: "fetch binds, 83 %".

        since: an earlier look; None: the feed's beginning. A consumer that waited for less than a
        twentieth of the time binds; else the stage does that it waited for longest. None: no time
        has passed.
        """
        return binding(self._binding_seconds(), since._binding_seconds() if since else None)

    def _binding_seconds(self) -> Seconds:
        found = {stage.name: stage.binding_seconds for stage in self.stages}
        return found | {CONSUMER: self.consumer_seconds}

    def __str__(self) -> str:
        plain = [(f.name, getattr(self, f.name)) for f in fields(self) if f.name != "stages"]
        words = [f"{name} {value}" for name, value in plain if value]
        words += [
            f"{stage.name} {stage.seconds:.3f} s ({stage.samples} samples)"
            for stage in self.stages
            if stage.samples
        ]
        return ", ".join(words + [str(one) for one in (self.binding(),) if one])


_OWN = ("stages", "consumer_seconds")


def stats_of(
    native: "FeederStats",
    skipped: int,
    replaced: int,
    data: Data,
    stages: tuple[FeedStage, ...],
    consumer_seconds: float,
) -> Stats:
    """skipped, replaced: in addition to the native ones. data: statistics of the open data set."""
    known = {f.name: getattr(native, f.name) for f in fields(Stats) if f.name not in _OWN}
    known["source_bytes"] += data.early_bytes
    known["source_samples"] += data.early_samples
    known["skipped"] += skipped
    known["replaced"] += replaced
    known["complaint"] = data.complaint or known["complaint"]
    return Stats(**known, stages=stages, consumer_seconds=consumer_seconds)
