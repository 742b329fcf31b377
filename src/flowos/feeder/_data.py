"""An open data set: its catalog, its storage, and its cache on this node."""

import errno
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from shutil import disk_usage
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass, replace
from flowos.feeder._cache_entry import CacheEntry, cache_folder
from flowos.feeder._catalogs import Outdated, catalog_of
from flowos.feeder._extensions import select_samples
from flowos.feeder._interfaces import PrefetchBudget
from flowos.feeder._mounted import Mounted
from flowos.feeder._resolve_source import Where, places_of, refuse_inside, source_at
from flowos.feeder._settings import whole
from flowos.feeder._source_options import SourceOptions
from flowos.feeder._stages import FeedStage
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Cache, Catalog, Counter, Files
    from flowos.feeder._interfaces import Source

_LOG = logging.getLogger("flowos.feed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLimits:
    """How much of a file system a cache may take. max_bytes: 0 is what there is."""

    max_bytes: int = 0
    min_free_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        """Raises FeedError for an invalid value."""
        whole("cache_bytes", self.max_bytes, 0)
        whole("min_free_bytes", self.min_free_bytes, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """complaint: why there is no cache though one was requested; else empty.

    entry: where it is cached; None: nowhere.
    left_out: one line on files that are no samples; empty: all are, or a person said which.
    early_samples, early_bytes: read of the source while it was listed. opened_seconds: what all
    that took.
    """

    source: "Mounted | Source"
    catalog: "Catalog"
    cache: "Cache | None"
    complaint: str
    entry: CacheEntry | None = None
    left_out: str = ""
    early_samples: int = 0
    early_bytes: int = 0
    opened_seconds: float = 0.0

    @property
    def listing(self) -> FeedStage:
        """The stage of a feed that is over when there is one."""
        return FeedStage(
            name="list",
            seconds=self.opened_seconds,
            samples=len(self.catalog),
            bytes=self.early_bytes,
            binding_seconds=self.opened_seconds,
        )

    @property
    def name_of(self) -> Callable[[int], str]:
        """What errors call a sample: where it is mounted here, its whole path. Holds no cache."""
        name, source = self.catalog.name, self.source
        if not isinstance(source, Mounted):
            return name
        root = source.root
        return lambda sample: str(root / name(sample))

    @property
    def files(self) -> "Files | None":
        """None: native code cannot read it, so that `source.serve` has to."""
        from flowos._native import Files

        if isinstance(self.source, Mounted):
            return Files(str(self.source.root), self.catalog)
        return None


def open_data(
    where: Where,
    cache: str | PathLike[str] | None,
    asked: SourceOptions,
    limits: CacheLimits,
    found: "Counter | None" = None,
    budget: PrefetchBudget | None = None,
) -> Data:
    """Raises FeedError if there are no such data, or the cache lies inside them.

    Where nothing can be cached, it only warns.
    budget: samples may be read while they are listed, for a cache that is new.
    """
    began = time.monotonic()
    data = _opened(where, cache, asked, limits, found, budget)
    return replace(data, opened_seconds=time.monotonic() - began)


def _opened(
    where: Where,
    cache: str | PathLike[str] | None,
    asked: SourceOptions,
    limits: CacheLimits,
    found: "Counter | None",
    budget: PrefetchBudget | None,
) -> Data:
    where = places_of(where)  # of what can be gone through once only, too
    source, key = source_at(where, asked)
    if cache is not None:
        refuse_inside(where, asked, cache_folder(cache))
    entry, complaint = (None, "") if cache is None else _entry_of(cache, key, source.name)
    if entry is None:
        catalog, left_out = select_samples(source.catalog(found), source.name, asked.files)
        return Data(
            source=source, catalog=catalog, cache=None, complaint=complaint, left_out=left_out
        )
    within = None if complaint else _within(budget, limits, entry)
    try:
        listing = catalog_of(source, entry, asked.files, found, within)
        with listing as (catalog, cache_key, left_out, early, outdated):
            attached = None
            try:
                attached = _attached(entry, catalog, cache_key, limits, outdated)
                _say_replaced(source.name, entry, attached.replaced())
            except FeedError as why:
                complaint = str(why)
            if early and attached:
                early.keep(catalog, attached)
    except FeedError:
        entry.forget_if_empty()
        raise
    return Data(
        source=source,
        catalog=catalog,
        cache=attached,
        complaint=complaint,
        entry=entry,
        left_out=left_out,
        early_samples=early.samples if early else 0,
        early_bytes=early.bytes if early else 0,
    )


def _within(
    budget: PrefetchBudget | None, limits: CacheLimits, entry: CacheEntry
) -> PrefetchBudget | None:
    """No more than the cache has room for."""
    if budget is None:
        return None
    most = min(budget.max_bytes, limits.max_bytes or budget.max_bytes)
    with suppress(OSError):
        most = min(most, disk_usage(entry.folder).free - limits.min_free_bytes)
    return replace(budget, max_bytes=most) if most > 0 else None


def _entry_of(cache: str | PathLike[str], key: str, name: str) -> tuple[CacheEntry | None, str]:
    """The entry, and why nothing can be cached there; None: nothing is there either."""
    entry = CacheEntry(cache_folder(cache) / key)
    while True:
        try:
            entry.make(name)
        except FeedError as why:
            if _is_full(why) and entry.make_room():
                continue
            entry.forget_if_bare()
            is_there = entry.source() and not entry.folder.is_symlink()
            return (entry if is_there else None), str(why)
        return entry, ""


def _is_full(why: FeedError) -> bool:
    cause = why.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _say_replaced(name: str, entry: CacheEntry, samples: int) -> None:
    if samples:
        _LOG.warning(
            "Feed: %s: the list of its samples is another one now (files came, went or changed, "
            "or extensions= is another): the %d samples cached in %s by the one before are dropped",
            name,
            samples,
            entry.folder,
        )


def _attached(
    entry: CacheEntry,
    catalog: "Catalog",
    cache_key: int,
    limits: CacheLimits,
    outdated: Outdated | None,
) -> "Cache":
    from flowos._native import Cache

    cache = Cache(
        str(entry.samples),
        cache_key,
        len(catalog),
        max_bytes=limits.max_bytes,
        min_free_bytes=limits.min_free_bytes,
        neighbours=str(entry.folder.parent),
    )
    if outdated is not None and not outdated.drop_from(cache, catalog):
        raise FeedError(
            f"cache folder {entry.folder}: files of the source were replaced since it was filled, "
            "and nothing can be removed from it"
        )
    return cache
