"""What a feed has done so far."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from flowos.feeder._data import Data

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
    cached; empty where all was.
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

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items() if value)


def stats_of(native: "FeederStats", skipped: int, replaced: int, data: Data) -> Stats:
    """skipped, replaced: in addition to the native ones. data: statistics of the open data set."""
    known = {field.name: getattr(native, field.name) for field in fields(Stats)}
    known["source_bytes"] += data.early_bytes
    known["source_samples"] += data.early_samples
    known["skipped"] += skipped
    known["replaced"] += replaced
    known["complaint"] = data.complaint or known["complaint"]
    return Stats(**known)
