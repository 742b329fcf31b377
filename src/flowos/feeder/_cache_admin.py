"""A cache filled beforehand, looked at, checked and removed."""

import pwd
import time
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass, replace
from flowos.feeder._cache_entry import OURS, CacheEntry, cache_entries, cache_folder
from flowos.feeder._data import CacheLimits, Data, open_data
from flowos.feeder._named_entries import named_entries, source_of
from flowos.feeder._python_source_thread import close
from flowos.feeder._ranks import Ranks
from flowos.feeder._resolve_source import Where, refuse_inside, source_at
from flowos.feeder._settings import FeedSettings
from flowos.feeder._source_options import SourceOptions
from flowos.feeder._stages import FeedStage, Seconds, StageMeter
from flowos.feeder._start import started
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Batch, Cache, CacheState, Counter, Feeder

UNKNOWN = "(unknown: its file `source` is lost)"
HIDDEN = "(unknown: another user's)"
_BATCH = 64
_IN_FLIGHT = 256
_LOOK_AGAIN_SECONDS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSource:
    """What a cache folder has of a source. samples: of the data set; cached: how many are here.

    unverified: written before the machine's last start, and not read since. processes: attached.
    used: when a process last began or ended to use it, seconds since 1970; 0: never. damaged: what
    of its samples is here cannot be read; bytes is what that takes on the disk. owner: another
    user, the only one to look into it and remove it; empty: it is ours.
    """

    source: str
    folder: Path
    samples: int = 0
    cached: int = 0
    bytes: int = 0
    unverified: int = 0
    processes: int = 0
    used: float = 0.0
    damaged: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillStatus:
    """How far the filling of a cache is. done: samples seen, of `samples`.

    full: no more fits; `complaint` says why. missing: samples that could not be read.
    """

    samples: int
    done: int = 0
    source_bytes: int = 0
    cache_bytes: int = 0
    missing: int = 0
    full: bool = False
    complaint: str = ""


class Prefill:
    """Brings a data set into a cache. To be closed; what is there by then stays there."""

    def __init__(
        self,
        where: Where,
        cache: str | PathLike[str],
        of_data: SourceOptions,
        limits: CacheLimits,
        found: "Counter | None" = None,
    ) -> None:
        """Raises FeedError if there are no such data, or nothing can be cached there."""
        data = open_data(where, cache, of_data, limits, found, _through().prefetch_budget)
        if data.complaint:
            raise FeedError(data.complaint)
        assert data.entry is not None
        self._entry = data.entry
        self._samples, self._early_bytes = len(data.catalog), data.early_bytes
        before = _before(data)
        self.already_cached = before.cached if before else 0
        """Samples that were here before this began."""
        self.is_complete = (
            before is not None and before.cached == self._samples and not before.unverified
        )
        """All of them, and none was written before the last start of the machine."""
        self._feeder = started(data, _through(), Ranks(0, 1))
        self._meter = StageMeter(data.listing)

    def kept(self) -> CachedSource:
        """What is there now."""
        return _kept(self._entry)

    def stages(self) -> tuple[FeedStage, ...]:
        """What each did so far; complete after `close`."""
        return self._meter.look(self._feeder.stats)[1]

    def binding_seconds(self) -> Seconds:
        """For so long each stage, or what goes through the steps, bound."""
        return self._meter.look(self._feeder.stats)[2]

    def steps(self) -> Iterator[PrefillStatus]:
        """Goes through all samples, those that are here already too: they are checked.

        Where all were here before, there is nothing to do.
        """
        if self.is_complete:
            yield PrefillStatus(samples=self._samples, done=self._samples)
            return
        yield PrefillStatus(samples=self._samples)
        for batch, done, missing in _once(self._feeder, self._samples):
            del batch
            s = self._feeder.stats()
            yield PrefillStatus(
                samples=self._samples,
                done=done,
                source_bytes=self._early_bytes + s.source_bytes,
                cache_bytes=s.cache_bytes,
                missing=missing,
                full=bool(s.complaint),
                complaint=s.complaint,
            )
            if s.complaint:
                return
        while self._feeder.stats().in_flight:  # samples that no thread has begun to write
            time.sleep(_LOOK_AGAIN_SECONDS)

    def close(self) -> None:
        """Waits for what is being written."""
        close(self._feeder)


def _before(data: Data) -> "CacheState | None":
    """Of the cache as it was before its source was listed; None: it had nothing."""
    from flowos._native import Cache

    if data.entry is None or data.early_samples:  # of which only a new cache has any
        return None
    return Cache.state_of(str(data.entry.samples))


def _once(feeder: "Feeder", samples: int) -> "Iterator[tuple[Batch, int, int]]":
    """The batches of one epoch, and how many samples are done by then, and could not be had."""
    feeder.seek(0, 0)
    had = done = 0
    while (batch := feeder.next()) is not None:
        had += len(batch.samples)
        done = min(samples, done + _BATCH)
        yield batch, done, done - had


def _through() -> FeedSettings:
    """One epoch, as it lies there; what cannot be read is counted."""
    return FeedSettings(
        batch_size=_BATCH,
        shuffle=False,
        seed=0,
        last="keep",
        on_error="skip",
        max_skipped=1 << 62,
        memory_bytes=256 << 20,
        max_in_flight=_IN_FLIGHT,
        threads=None,
        epochs_ahead=0,
    )


def kept_in(
    cache: str | PathLike[str], where: Where | None, of_data: SourceOptions
) -> tuple[CachedSource, ...]:
    """What the cache folder has, of all sources or of those that `named_entries` says.

    Raises FeedError if nothing is cached.
    """
    folder = cache_folder(cache)
    entries = cache_entries(folder)
    if where is not None:
        entries = named_entries(where, of_data, entries, folder)
    if not entries:
        raise FeedError(f"cache folder {folder}: there is nothing cached in it")
    return tuple(map(_kept, entries))


def kept_of(
    cache: str | PathLike[str], where: Where, of_data: SourceOptions
) -> CachedSource | None:
    """What the cache folder has of this very data set. Raises FeedError if it is no source."""
    entry = CacheEntry(cache_folder(cache) / source_at(where, of_data)[1])
    return _kept(entry) if entry.is_ours() and not entry.folder.is_symlink() else None


def opened(
    where: Where, cache: str | PathLike[str], of_data: SourceOptions, found: "Counter | None" = None
) -> Data:
    """Lists the data set. Raises FeedError if it does not exist, or the cache lies inside it."""
    refuse_inside(where, of_data, cache_folder(cache))
    return open_data(where, None, of_data, CacheLimits(), found)


def _kept(entry: CacheEntry) -> CachedSource:
    from flowos._native import Cache

    if (user := entry.other_user()) is not None:
        return CachedSource(
            source=entry.source() or HIDDEN, folder=entry.folder, owner=_name_of(user)
        )
    source = entry.source() or UNKNOWN
    with suppress(FeedError):  # listed, but nothing was cached yet
        s = Cache.state_of(str(entry.samples))
        return CachedSource(
            source=source,
            folder=entry.folder,
            samples=s.samples,
            cached=s.cached,
            bytes=s.bytes,
            unverified=s.unverified,
            processes=s.processes,
            used=entry.used(),
        )
    return CachedSource(
        source=source,
        folder=entry.folder,
        bytes=entry.disk_bytes(),
        used=entry.used(),
        damaged=any(entry.samples.glob("index")) or any(entry.samples.glob("*.seg")),
    )


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def verify(kept: CachedSource, done: "Counter | None" = None) -> int:
    """Every cached sample is read and checked, damaged ones are forgotten: how many were.

    done: counts samples of the data set meanwhile. Raises FeedError if nothing was cached yet.
    """
    from flowos._native import Cache

    return Cache.verify(str(CacheEntry(kept.folder).samples), done)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleComparison:
    """How far the comparison of a cache with its source is.

    changed: the names of those that differ now. missing: how many cannot be read at the source.
    """

    samples: int
    done: int = 0
    bytes: int = 0
    changed: tuple[str, ...] = ()
    missing: int = 0


def compared_with(kept: CachedSource, where: Where, of_data: SourceOptions) -> Where:
    """What of `where` it is to be compared with. Raises FeedError if that is not there any more."""
    return source_of(CacheEntry(kept.folder), where, of_data)


def compare(
    where: Where, cache: str | PathLike[str], of_data: SourceOptions, found: "Counter | None" = None
) -> Iterator[SampleComparison]:
    """Lists one source, then reads all of it; what differs from what is cached is forgotten."""
    data = open_data(where, cache, of_data, CacheLimits(), found)
    if data.cache is None:
        raise FeedError(data.complaint)
    return _compared(data, data.cache)


def _compared(data: Data, kept: "Cache") -> Iterator[SampleComparison]:
    feeder = started(replace(data, cache=None), _through(), Ranks(0, 1))
    try:
        yield from _differences(data, kept, feeder)
    finally:
        close(feeder)


def _differences(data: Data, kept: "Cache", feeder: "Feeder") -> Iterator[SampleComparison]:
    samples = len(data.catalog)
    changed: list[str] = []
    for batch, done, missing in _once(feeder, samples):
        for sample in _differing(batch, kept):
            changed.append(data.catalog.name(sample))
            kept.drop(sample)
        yield SampleComparison(
            samples=samples,
            done=done,
            bytes=feeder.stats().source_bytes,
            changed=tuple(changed),
            missing=missing,
        )


def _differing(batch: "Batch", kept: "Cache") -> Iterator[int]:
    view = batch.data.data
    starts, lengths = batch.offsets.tolist(), batch.lengths.tolist()
    for sample, start, length in zip(batch.samples.tolist(), starts, lengths, strict=True):
        if kept.has(sample):
            cached = kept.bytes_of(sample)
            if cached is not None and cached != view[start : start + length]:
                yield sample


def clear(kept: CachedSource) -> int:
    """Remove it, and only our files; the bytes freed. Raises FeedError if a process uses it."""
    from flowos._native import Cache

    entry = CacheEntry(kept.folder)
    freed = 0
    if entry.samples.exists():
        freed = Cache.clear(str(entry.samples))
    try:
        for name in sorted(OURS):
            (entry.folder / name).unlink(missing_ok=True)
        for left in entry.folder.glob(".*.*.*"):
            left.unlink()
        entry.folder.rmdir()
    except OSError as why:
        raise FeedError(
            f"cache folder {entry.folder}: {why.strerror}; what is left in it is not ours"
        ) from why
    return freed
