"""`fo.Feed`: minibatches of a data set, epoch by epoch."""

import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

from flowos._collected import when_collected
from flowos._dataclasses import replace
from flowos.feeder._arrays import Convert, check_type, converter, distributed_ranks, giving_arrays
from flowos.feeder._data import CacheLimits, open_data
from flowos.feeder._decoding import Ahead, Decoding, Policy, Way, chosen
from flowos.feeder._epoch import Epoch, Give, Giver, Take
from flowos.feeder._labels import How, Labels, labels_of
from flowos.feeder._peers import Peers, checked
from flowos.feeder._position import Position, position_in, state_of
from flowos.feeder._python_source_thread import close
from flowos.feeder._ranks import ranks_of
from flowos.feeder._resolve_source import Where
from flowos.feeder._settings import FeedSettings, sample_number, whole
from flowos.feeder._source_options import asked
from flowos.feeder._stages import CONSUMER, StageMeter
from flowos.feeder._start import record_of, started
from flowos.feeder._stats import Stats, stats_of
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Feeder

_LAST_EPOCH = (1 << 63) - 1
_CLOSED = "this Feed is closed"
_FORKED = "this Feed was made before a fork: its threads are in the other process; make one here"
_OVER = "another epoch of this Feed was begun, so that this one cannot go on"
_NO_DATASET = "a Feed gives whole batches by iteration: use it instead of a DataLoader, not in one"
_PICKLED = "a Feed has threads and cannot be pickled: make one in each process"


class Feed:
    """Minibatches of a data set in a seeded order, prefetched and cached on node-local storage.

    The order of an epoch is a function of seed and epoch alone: the same for any number of
    processes, each of which takes its share, the same number of batches as every other. An array's
    memory stays the batch's as long as anything refers to it, and is used again after that.
    Not to be used by several threads at once; `close` and `stats` may be called by any.

    Reading begins with the first epoch that is asked for; where a folder or a bucket is listed for
    a new cache, it begins with the listing.

    source: a folder, whose files are the samples; tar shards of WebDataset's layout, as a
    folder of them, a path or a pattern ("train-{000..099}.tar"); token arrays (.npy, .bin);
    Parquet files; a URL (s3://, gs://, az://, http://, any of fsspec).
    cache: a folder on storage of this node, shared by all its processes. What does not fit is
    read through.
    rank, world_size: of torch.distributed, or of torchrun, MPI or Slurm, by default.
    decode: None gives the bytes (`Samples`), `fo.decode.jpeg(...)` arrays of images, and a
    function of a sample's bytes what it returns, stacked where that can be.
    labels: "folders" (a class is a folder of the source, with all below it; of shards, what the
    .cls member says), the path of a CSV file with rows PATH,LABEL, a function of a sample's
    name, or None. classes: their names in the order of their numbers, or another feed, such as the
    training set's; None: all that there are, sorted.
    last: samples that fill no batch of every rank: "keep" (smaller batches), "drop", or "pad"
    (with samples from the epoch's beginning).
    on_error: of a sample that cannot be had: "error" raises SampleError, which ends the epoch
    (what is left of it, `state_dict` can resume), "skip" leaves it out, "replace" takes another
    of the batch; both count, up to `max_skipped`, and raise it where a batch has none that can be
    had. framework: what arrays are: "numpy", "torch" (page-locked, where it has a GPU) or "jax".
    extensions: of a folder's files those that are samples, as ("jpg", "png"), "pictures" or "all";
    None: "pictures" with `fo.decode.jpeg` and `fo.decode.image`, else all. member: which member of
    a shard is the sample, such as "jpg"; "": the first that is no cls, json or txt. dtype, length:
    of a token array; a sample is so many of its values. column, label_column: of Parquet files.
    cache_bytes: at most so many are cached (0: what there is); min_free_bytes stay free.
    memory_bytes: for batches that wait. max_in_flight: reads of the source at once, on this
    node. threads: for a decode function (default: one per processor). peers: other nodes of the
    run, whose caches are asked before the source is (`fo.Peers`).
    What fails in passing at a bucket or a server is tried again for 300 seconds, or for as many as
    the variable FLOWOS_FEED_RETRY_SECONDS says; the logger flowos.feed warns.
    Raises FeedError if the source does not exist or a keyword is invalid.

    >>> np.save("tokens.npy", np.arange(12, dtype=np.int32))
    >>> feed = fo.Feed("tokens.npy", batch_size=2, length=3, shuffle=False)
    >>> for batch, _ in feed.epoch(0):
    ...     print(batch.tolist())
    [[0, 1, 2], [3, 4, 5]]
    [[6, 7, 8], [9, 10, 11]]
    >>> len(feed), feed.samples, feed.name(1), feed.rank, feed.world_size, feed.source[-10:]
    (2, 4, 'tokens.npy[1]', 0, 1, 'tokens.npy')
    >>> feed.close()
    """

    _feeder: "Feeder | None"
    _ending: "weakref.finalize[Any, Any] | None" = None
    _last_stats: Stats | None = None
    _why_not = _CLOSED

    def __init__(  # noqa: PLR0913 - what a person may say of it, each by keyword
        self,
        source: Where,
        cache: str | PathLike[str] | None = None,
        *,
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        decode: object = None,
        labels: How = "folders",
        classes: "Iterable[str] | Feed | None" = None,
        last: str = "keep",
        on_error: str = "error",
        max_skipped: int = 1000,
        framework: str = "numpy",
        member: str = "",
        dtype: object = None,
        length: int | None = None,
        column: str = "",
        label_column: str = "",
        extensions: str | Iterable[str] | None = None,
        cache_bytes: int = 0,
        min_free_bytes: int = 1 << 30,
        memory_bytes: int = 1 << 30,
        max_in_flight: int = 256,
        threads: int | None = None,
        peers: Peers | None = None,
    ) -> None:
        self._settings = FeedSettings(
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            last=last,
            on_error=on_error,
            max_skipped=max_skipped,
            memory_bytes=memory_bytes,
            max_in_flight=max_in_flight,
            threads=threads,
        )
        self._ranks = ranks_of(rank, world_size, distributed_ranks(), os.environ)
        convert, way = converter(framework), chosen(decode, extensions)
        of_data = asked(member, dtype, length, column, label_column, way.files)
        budget = None if checked(peers) else self._settings.prefetch_budget
        limits = CacheLimits(max_bytes=cache_bytes, min_free_bytes=min_free_bytes)
        self._data = open_data(source, cache, of_data, limits, budget=budget)
        self._feeder = started(self._data, self._settings, self._ranks, way.native, peers)
        self._own(self._threads_for(way.function))
        self._begin(labels_of(self._data.catalog, labels, classes), way, convert)

    def _begin(self, found: Labels, way: Way, convert: Convert | None) -> None:
        self._warned = ""
        if self._data.left_out:
            warnings.warn(self._data.left_out, stacklevel=3)
        self._warn(self._data.complaint)
        self.classes = found.classes
        """The names that class numbers stand for; empty where there are none."""
        record = way.record or record_of(self._data)
        check_type(convert, record)
        self._giver = Giver(record, found.values, convert)
        self._ahead: Ahead | None = None
        self._current: Epoch | None = None
        self._at = Position()
        if len(self) == 0:
            s, ranks = self._settings, self._ranks
            warnings.warn(
                f"Feed: no epoch has a batch: {self.samples} samples do not fill one of "
                f"{s.batch_size} for each of {ranks.world_size} ranks, and last='drop'",
                stacklevel=3,
            )

    # -- epochs

    def epoch(self, epoch: int) -> Epoch:
        """The batches of an epoch for this rank, as pairs (samples or array, labels).

        labels: int64 (n,), or None where there are none. Where `load_state_dict` has put the feed
        into this epoch, what is left of it. Ends an epoch under way.
        """
        whole("epoch", epoch, 0, _LAST_EPOCH)
        feeder = self._live()
        resumes = self._current is None and self._at.epoch == epoch
        start = self._at.taken if resumes else 0
        self._stop(_OVER)
        feeder.seek(epoch, start)
        take: Take = feeder.next
        give: Give = self._giver.natively
        if self._decoding is not None:
            self._ahead = Ahead(self._decoding, take)
            take, give = self._ahead.take, self._giver.decoded
        self._current = Epoch(epoch, start, feeder.batches(start), take, give, self._ended)
        self._at = Position(epoch=epoch + 1)
        return self._current

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """The epoch after the one before, or what `set_epoch` and `load_state_dict` say."""
        return self.epoch(self.next_epoch)

    def __len__(self) -> int:
        """How many batches an epoch has for this rank, and for every other."""
        return self._live().batches(0)

    @property
    def next_epoch(self) -> int:
        """With which epoch iteration goes on."""
        at = self._at
        is_over = at.taken > 0 and self._live().batches(at.taken) == 0
        return at.epoch + 1 if is_over else at.epoch

    def set_epoch(self, epoch: int) -> None:
        """Iteration goes on with the beginning of this epoch.

        >>> np.save("tokens.npy", np.arange(12, dtype=np.int32))
        >>> with fo.Feed("tokens.npy", batch_size=2, length=3) as feed:
        ...     feed.set_epoch(7)
        ...     feed.next_epoch
        7
        """
        whole("epoch", epoch, 0, _LAST_EPOCH)
        self._stop(_OVER)
        self._at = Position(epoch=epoch)

    # -- checkpoints

    def state_dict(self) -> dict[str, object]:
        """Where the feed is, after the last batch that was taken: plain values for a checkpoint."""
        s = self._settings
        return state_of(self._position(), s.seed, s.shuffle, len(self._data.catalog))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on exactly there, also with another number of ranks, or another batch size.

        Raises FeedError if the state belongs to other data or another order.

        >>> np.save("tokens.npy", np.arange(12, dtype=np.int32))
        >>> with fo.Feed("tokens.npy", batch_size=2, length=3) as feed:
        ...     batch, _ = next(feed.epoch(0))
        ...     state = feed.state_dict()
        >>> with fo.Feed("tokens.npy", batch_size=2, length=3) as feed:
        ...     feed.load_state_dict(state)
        ...     len(feed.epoch(0))
        1
        """
        s = self._settings
        at = position_in(state, s.seed, s.shuffle, len(self._data.catalog))
        whole("epoch of load_state_dict", at.epoch, 0, _LAST_EPOCH)
        self._stop(_OVER)
        self._at = at

    def _position(self) -> Position:
        if (now := self._current) is None:
            return self._at
        taken = self._live().start_after(now.start, now.taken)
        return Position(epoch=now.number, taken=taken)

    # -- what is known of it

    @property
    def rank(self) -> int:
        """This process's number."""
        return self._ranks.rank

    @property
    def world_size(self) -> int:
        """How many processes share the data."""
        return self._ranks.world_size

    @property
    def source(self) -> str:
        """Where the data is, without secrets."""
        return self._data.source.name

    @property
    def samples(self) -> int:
        """How many the data set has."""
        return len(self._data.catalog)

    def name(self, sample: int) -> str:
        """What a person calls the sample: its path below the source, SHARD:KEY, ARRAY[NUMBER]."""
        return self._data.catalog.name(sample_number(sample, self.samples))

    def stats(self) -> Stats:
        """Samples and bytes by origin, times by stage; complete after `close`.

        What was read ahead counts, taken or not: as far as memory allows, up to the end of the
        epoch after the one that was asked for.

        >>> np.save("tokens.npy", np.arange(12, dtype=np.int32))
        >>> with fo.Feed("tokens.npy", batch_size=2, length=3) as feed:
        ...     batches = [batch for batch, _ in feed.epoch(0)]
        >>> stats = feed.stats()
        >>> stats.batches, stats.cache_samples, stats.stage("decode").samples
        (2, 0, 0)
        >>> 0 < stats.binding().share <= 1
        True
        """
        return self._last_stats or self._stats_of(self._live())

    def __repr__(self) -> str:
        return (
            f"<Feed of {self.source}: {self.samples} samples, "
            f"rank {self.rank} of {self.world_size}>"
        )

    # -- its end

    def close(self) -> None:
        """End all reading. What is in the cache stays. Batches that were taken stay valid."""
        if self._ending is None or not self._ending.alive:
            return
        feeder, self._at = self._live(), self._position()
        self._warn(feeder.stats().complaint)
        self._ending.detach()
        _end(feeder, self._decoding)
        self._stop(_CLOSED)
        self._last_stats = self._stats_of(feeder)
        self._feeder, self._data = None, replace(self._data, cache=None)

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise FeedError(_PICKLED)

    def __getitem__(self, _: object) -> NoReturn:
        raise FeedError(_NO_DATASET)

    # -- inside

    def _stats_of(self, feeder: "Feeder") -> Stats:
        by_function = self._decoding
        skipped, replaced = (by_function.skipped, by_function.replaced) if by_function else (0, 0)
        times = by_function.times if by_function else None
        native, stages, bound = self._meter.look(feeder.stats, times)
        return stats_of(native, skipped, replaced, self._data, stages, bound[CONSUMER])

    def _own(self, decoding: Decoding | None) -> None:
        """From here on the threads end with this object, or with the process."""
        assert self._feeder
        self._decoding = decoding
        self._meter = StageMeter(self._data.listing)
        self._ending = when_collected(self, partial(_end, self._feeder, self._decoding))
        _feeds.add(self)

    def _threads_for(self, function: "Callable[..., object] | None") -> Decoding | None:
        if function is None:
            return None
        s, name = self._settings, self._data.name_of  # not ours: threads must not keep this alive
        policy = Policy(on_error=s.on_error, max_skipped=s.max_skipped, name=name)
        return Decoding(giving_arrays(function), s.decode_threads, s.batches_ahead, policy)

    def _live(self) -> "Feeder":
        if self._feeder is None or self._ending is None or not self._ending.alive:
            raise FeedError(self._why_not)
        return self._feeder

    def _stop(self, why: str) -> None:
        now, ahead = self._current, self._ahead
        self._current = self._ahead = None
        if now is not None:
            now.refuse(why)
        if ahead is not None:
            ahead.stop(why)

    def _ended(self) -> None:
        """An epoch has come to its end, or was cut off by `close` in another thread."""
        self._warn(self._live().stats().complaint)
        self._stop(_OVER)

    def _warn(self, complaint: str) -> None:
        if complaint and not self._warned:
            self._warned = complaint
            about = "" if complaint.startswith("peer ") else "not all is kept in the cache: "
            warnings.warn(f"Feed: {about}{complaint}", stacklevel=4)

    def _forked(self) -> None:
        """In a child: the threads are not here, and nothing may wait for them."""
        if self._ending is not None:
            self._ending.detach()
        self._why_not, self._ahead = _FORKED, None
        self._stop(_FORKED)


def _end(feeder: "Feeder", decoding: Decoding | None) -> None:
    """A read under way is waited for, and so comes last."""
    if decoding is not None:
        decoding.close()
    close(feeder)


_feeds: "weakref.WeakSet[Feed]" = weakref.WeakSet()


def _in_child() -> None:
    for feed in list(_feeds):
        feed._forked()


os.register_at_fork(after_in_child=_in_child)
