"""Catalogs of samples: listed, or read from the cache where that is still valid."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass
from flowos.feeder._cache_entry import CacheEntry, read_file, write_whole
from flowos.feeder._entries import digest
from flowos.feeder._extensions import SampleFilter, select_samples
from flowos.feeder._interfaces import EarlyReader, Listing, PrefetchBudget
from flowos.feeder._mounted import Mounted

if TYPE_CHECKING:
    from flowos._native import Cache, Catalog, Counter
    from flowos.feeder._interfaces import Source


@dataclass(slots=True, kw_only=True)
class Outdated:
    """A catalog from before of a folder here, when it was listed, and where the folder is.

    It stays in the cache until what was replaced since has been dropped: it is the only record.
    """

    catalog: "Catalog"
    listed_ns: int
    root: str
    is_dropped: bool = False

    def drop_from(self, cache: "Cache", now: "Catalog") -> bool:
        """Samples that may be others now, under their old names. False: they cannot be removed."""
        self.is_dropped = now.drop_replaced(self.catalog, self.listed_ns, self.root, cache)
        return self.is_dropped


@contextmanager
def catalog_of(
    source: "Mounted | Source",
    entry: CacheEntry,
    files: SampleFilter,
    found: "Counter | None" = None,
    budget: PrefetchBudget | None = None,
) -> "Iterator[tuple[Catalog, int, str, EarlyReader | None, Outdated | None]]":
    """The catalog of the samples among the files, a key, and what was left out, in words.

    And the one from before that is outdated: what was replaced since is to be dropped.

    What was cached under another key is not of these bytes.

    Cached in its entry, where one process lists for all: the others block until the `with` ends.
    early: what was read meanwhile; it is cached by then. Raises FeedError if there are no data.
    """
    before = entry.mark_of_catalog()
    identity = "" if isinstance(source, Mounted) else source.identity()
    with ExitStack() as while_listed:
        catalog, early, outdated = _kept(source, entry, identity), None, None
        is_new = False
        if catalog is None:
            while_listed.enter_context(entry.locked())
            listed_meanwhile = entry.mark_of_catalog() != before
            catalog = _kept(source, entry, identity, is_fresh=listed_meanwhile)
        if catalog is None:
            outdated = _outdated(source, entry)
            listing = _listing(source, entry, None if identity else budget)
            if listing.early is not None:
                while_listed.callback(listing.early.end)
            catalog, early, is_new = listing.catalog(found), listing.early, True
        some, left_out = select_samples(catalog, source.name, files)
        key = some.cache_key()
        key = int(digest(str(key), identity)[:16], 16) if identity else key
        yield some, key, left_out, early, outdated
        # Not before: a process that finds it does not wait.
        if is_new and (outdated is None or outdated.is_dropped):
            _keep(catalog, entry, identity)


def _kept(
    source: "Mounted | Source", entry: CacheEntry, identity: str, is_fresh: bool = False
) -> "Catalog | None":
    """is_fresh: another process of the node listed while we waited: that is as good as ours."""
    catalog = _read(entry, identity)
    if catalog is None or is_fresh:
        return catalog
    holds = source.still_holds(catalog) if isinstance(source, Mounted) else bool(identity)
    return catalog if holds else None


def _read(entry: CacheEntry, identity: str) -> "Catalog | None":
    from flowos._native import Catalog

    try:
        data = read_file(entry.catalog)
    except OSError:
        return None
    head, _, body = data.partition(b"\n")
    return Catalog.parse(body) if head == _head(identity) else None


def _outdated(source: "Mounted | Source", entry: CacheEntry) -> Outdated | None:
    if not isinstance(source, Mounted) or source.kind != "folder":
        return None
    _, listed_ns = entry.mark_of_catalog()
    catalog = _read(entry, "")
    if catalog is None:
        return None
    return Outdated(catalog=catalog, listed_ns=listed_ns, root=str(source.root))


def _listing(
    source: "Mounted | Source", entry: CacheEntry, budget: PrefetchBudget | None
) -> Listing:
    """With a cache already there, most samples are in it: nothing is read ahead."""
    if budget is None or entry.samples.exists():
        return Listing(source.catalog)
    return source.listing(budget)


def _keep(catalog: "Catalog", entry: CacheEntry, identity: str) -> None:
    """The identity is from before: it is another one, should the source have changed meanwhile."""
    with suppress(OSError):  # then it is listed again the next time
        write_whole(entry.catalog, _head(identity) + b"\n" + catalog.serialized())


def _head(identity: str) -> bytes:
    return f"flowos catalog 1 {identity}".encode()
