"""The Python face of the feed."""

from flowos.feeder import decode
from flowos.feeder._asked import Asked, asked
from flowos.feeder._care import (
    Compared,
    Kept,
    Warming,
    Warmth,
    clear,
    compare,
    kept_in,
    opened,
    verify,
)
from flowos.feeder._data import Room
from flowos.feeder._extensions import meant
from flowos.feeder._feed import Feed
from flowos.feeder._peers import Peers
from flowos.feeder._places import Where
from flowos.feeder._samples import Samples
from flowos.feeder._stats import Stats

__all__ = [
    "Asked",
    "Compared",
    "Feed",
    "Kept",
    "Peers",
    "Room",
    "Samples",
    "Stats",
    "Warming",
    "Warmth",
    "Where",
    "asked",
    "clear",
    "compare",
    "decode",
    "kept_in",
    "meant",
    "opened",
    "verify",
]
