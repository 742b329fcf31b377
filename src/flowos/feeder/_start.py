"""The native feeder over opened data."""

from typing import TYPE_CHECKING

from flowos.feeder._data import Data
from flowos.feeder._mounted import Mounted
from flowos.feeder._peers import Peers
from flowos.feeder._python_source_thread import serve
from flowos.feeder._ranks import Ranks
from flowos.feeder._settings import FeedSettings
from flowos.feeder._source_options import Record

if TYPE_CHECKING:
    from flowos._native import Decoder, Feeder


def record_of(data: Data) -> Record | None:
    """Where samples are equal as they come."""
    return data.source.record if isinstance(data.source, Mounted) else None


def started(
    data: Data,
    s: FeedSettings,
    ranks: Ranks,
    decoder: "Decoder | None" = None,
    peers: Peers | None = None,
) -> "Feeder":
    """Reads at once; where Python has to read, in a thread that ends when this is closed."""
    from flowos._native import Feeder

    record = record_of(data)
    feeder = Feeder(
        data.catalog,
        data.files,
        data.cache,
        decoder,
        batch_size=s.batch_size,
        rank=ranks.rank,
        world_size=ranks.world_size,
        last=s.last,
        seed=s.seed,
        shuffle=s.shuffle,
        record_bytes=record.size_bytes if record else 0,
        memory_bytes=s.memory_bytes,
        max_in_flight=s.max_in_flight,
        epochs_ahead=s.epochs_ahead,
        on_error=s.on_error,
        max_skipped=s.max_skipped,
        peers=peers.settings(ranks) if peers else None,
    )
    if not isinstance(data.source, Mounted):
        serve(data.source, feeder, data.catalog, data.cache)
    return feeder
