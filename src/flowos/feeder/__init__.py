"""The Python face of the feed."""

from flowos.feeder import decode
from flowos.feeder._cache_admin import (
    CachedSource,
    Prefill,
    PrefillStatus,
    SampleComparison,
    clear,
    compare,
    compared_with,
    kept_in,
    kept_of,
    opened,
    verify,
)
from flowos.feeder._data import CacheLimits
from flowos.feeder._extensions import sample_filter
from flowos.feeder._feed import Feed
from flowos.feeder._peers import Peers
from flowos.feeder._resolve_source import Where
from flowos.feeder._samples import Samples
from flowos.feeder._source_options import SourceOptions, asked
from flowos.feeder._stages import STAGES, Binding, FeedStage, Seconds, binding
from flowos.feeder._stats import Stats

__all__ = [
    "STAGES",
    "Binding",
    "CacheLimits",
    "CachedSource",
    "Feed",
    "FeedStage",
    "Peers",
    "Prefill",
    "PrefillStatus",
    "SampleComparison",
    "Samples",
    "Seconds",
    "SourceOptions",
    "Stats",
    "Where",
    "asked",
    "binding",
    "clear",
    "compare",
    "compared_with",
    "decode",
    "kept_in",
    "kept_of",
    "opened",
    "sample_filter",
    "verify",
]
