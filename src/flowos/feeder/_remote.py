"""A data set at a URL: objects or files as they lie there, or tar shards of them."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from flowos.feeder._endings import SHARD_COMPANIONS, TAR
from flowos.feeder._entries import add, digest
from flowos.feeder._interfaces import (
    Entry,
    Listing,
    Piece,
    PrefetchBudget,
    Storage,
    Tickets,
    ignore,
)
from flowos.feeder._listing_prefetch import ListingPrefetcher
from flowos.feeder._open_storage import open_storage
from flowos.feeder._tars import tar_catalog
from flowos.feeder._url import Url, read_url
from flowos.model import FeedError

if TYPE_CHECKING:
    from flowos._native import Catalog, Counter

_AT_ONCE = 32
_HASHED_AT_ONCE = 10_000


class RemoteSource:
    """Promises: see flowos.feeder._interfaces.Source."""

    def __init__(self, storage: Storage, url: Url, member: str = "") -> None:
        self.name = url.shown
        self._storage, self._url, self._member = storage, url, member

    def identity(self) -> str:
        """Of shards: which they are, their sizes and tags. Of single objects empty: to know these
        is to have listed them, and their catalog's key has it."""
        some = [self._url.pattern] if self._url.pattern else self._url.named
        names = some or [entry.key for entry in self._storage.glance()]
        if not _only_shards(names):
            return ""
        entries = self._entries()
        return digest(*(f"{entry.key} {entry.size_bytes} {entry.tag}" for entry in entries))

    def listing(self, budget: PrefetchBudget) -> Listing:
        early = ListingPrefetcher(self._storage, budget)
        return Listing(partial(self.catalog, early=early), early)

    def catalog(
        self, found: "Counter | None" = None, early: ListingPrefetcher | None = None
    ) -> "Catalog":
        """early: reads single objects meanwhile. Raises FeedError if nothing is found."""
        entries = self._entries(found, early)
        if not entries:
            raise FeedError(f"{self.name}: nothing is there{_called(self._url)}")
        if not _only_shards([entry.key for entry in entries]):
            if self._member:
                raise FeedError(
                    f"{self.name}: member={self._member!r} goes with tar shards; there are none"
                )
            return _catalog_of(entries)
        add(found, -len(entries))  # samples are counted, not shards
        shards = [entry for entry in entries if entry.key.endswith(TAR)]
        return tar_catalog(self._storage, shards, self._member, _AT_ONCE, found)

    def serve(self, tickets: Tickets, catalog: "Catalog") -> None:
        groups, group_of = catalog.groups(), catalog.group_of()
        offsets, sizes = catalog.offsets(), catalog.sizes()
        of_shards = offsets[0] > 0  # a member comes after its header

        def piece_of(sample: int) -> Piece:
            if not of_shards:
                return Piece(catalog.name(sample), listed_bytes=int(sizes[sample]))
            start = int(offsets[sample])
            return Piece(groups[group_of[sample]], start, start + int(sizes[sample]))

        self._storage.serve(tickets, piece_of)

    def _entries(
        self, found: "Counter | None" = None, early: ListingPrefetcher | None = None
    ) -> list[Entry]:
        """Those that the URL names, one by one or by a pattern; else all."""
        if self._url.named:
            entries = self._storage.patience.map(self._storage.entry, self._url.named, _AT_ONCE)
            add(found, len(entries))
            return entries
        on_entries = ignore if early is None else lambda some: early.found(self._selected(some))
        entries = self._storage.entries(found, on_entries)
        those = self._selected(entries)
        add(found, len(those) - len(entries))
        return those

    def _selected(self, entries: Sequence[Entry]) -> list[Entry]:
        return [entry for entry in entries if self._url.matches(entry.key)]


def open_url(text: str, *, member: str = "", timeout_seconds: float = 30.0) -> RemoteSource:
    """A source for a URL of any protocol that `open_storage` knows.

    text: a folder of objects (each a sample), a folder of tar shards, or the shards themselves:
    `s3://bucket/train-{000..099}.tar`, `s3://bucket/train/*.tar`.
    member: which member of a shard is the sample, such as "jpg"; empty: see `tar_catalog`.
    timeout_seconds: for a connection, and for the next bytes of an answer.
    Raises FeedError for an unknown protocol, a missing package, or an invalid URL.
    """
    url = read_url(text)
    return RemoteSource(open_storage(url, timeout_seconds), url, member)


def _only_shards(names: Sequence[str]) -> bool:
    """Whether there are only tar files and their index files."""
    others = [name for name in names if not name.endswith(SHARD_COMPANIONS)]
    return bool(others) and all(name.endswith(TAR) for name in others)


def _called(url: Url) -> str:
    return f" that is called {url.pattern}" if url.pattern else ""


def _catalog_of(entries: list[Entry]) -> "Catalog":
    from flowos._native import Catalog

    folders = [entry.key.rpartition("/")[0] for entry in entries]
    groups = sorted(set(folders), key=lambda folder: folder.encode(errors="surrogateescape"))
    numbers = {folder: number for number, folder in enumerate(groups)}
    names = [entry.key for entry in entries]
    sizes = [entry.size_bytes for entry in entries]
    in_groups = [numbers[folder] for folder in folders]
    return Catalog(groups, names, in_groups, sizes, state=_state_of(entries))


def _state_of(entries: Sequence[Entry]) -> str:
    """Another one when any of them was written anew. In parts: there may be millions."""
    state = hashlib.sha256()
    for first in range(0, len(entries), _HASHED_AT_ONCE):
        some = entries[first : first + _HASHED_AT_ONCE]
        words = [f"{entry.key}\0{entry.size_bytes}\0{entry.tag}\0" for entry in some]
        state.update("".join(words).encode(errors="surrogateescape"))
    return state.hexdigest()[:32]
