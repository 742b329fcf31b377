"""Objects in a bucket or on a web server (s3, gs, az, http, https), by the package obstore.

Each request waits in a thread of its own, without the GIL, and what it brings goes to the feeder
as it is. (On two cores, obstore's blocking calls in 32 threads brought three times as many objects
per second as its coroutines on one event loop, at a third of the CPU time.)

A request that fails by something that passes (5xx, a cut connection, no answer in time) is tried
again, for minutes. Credentials are found by obstore in the environment, and never shown.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, TypeVar

from flowos.feeder._entries import add, in_byte_order
from flowos.feeder._interfaces import Entry, OnEntries, Piece, Tickets, ignore
from flowos.feeder._object_errors import passes, reason
from flowos.feeder._reader_threads import serve_in_threads
from flowos.feeder._retry import Retry
from flowos.feeder._url import Url
from flowos.model import FeedError

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore
    from typing_extensions import Buffer

    from flowos._native import Counter

T = TypeVar("T")

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https")

_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_")
_MOST_AT_ONCE = 256
_LISTINGS_AT_ONCE = 32
_PAGE = 1000  # keys: as many as S3 lists in one answer
# With more folders than this, one listing of all of them costs fewer requests than one of each.
_MOST_LISTED_APART = 1024


class Bucket:
    """What lies below a URL. Promises: see flowos.feeder._interfaces.Storage."""

    def __init__(self, url: Url, timeout_seconds: float = 30.0) -> None:
        self.name = url.shown
        self._scheme = url.scheme
        self._timeout_seconds = timeout_seconds
        self.patience = Retry(url.shown)
        self._store = _open(url, timeout_seconds)
        self._tags: dict[str, str] = {}  # of what is read in pieces

    def entries(
        self, found: "Counter | None" = None, on_entries: OnEntries = ignore
    ) -> list[Entry]:
        entries = self._listed(found, on_entries)
        folders = {entry.key.rpartition("/")[0] for entry in entries}
        # A folder created by hand in a bucket's console is an object without bytes.
        files = [entry for entry in entries if entry.size_bytes or entry.key not in folders]
        return in_byte_order(files)

    def glance(self) -> list[Entry]:
        import obstore

        page = self._call(lambda: next(iter(obstore.list(self._store, chunk_size=_PAGE)), []))
        return [_entry(meta) for meta in page]

    def entry(self, key: str) -> Entry:
        import obstore

        return self._call(lambda: _entry(obstore.head(self._store, key)), f"{self.name}/{key}")

    def read(self, key: str, start: int, end: int) -> "Buffer":
        piece = Piece(key, start, end)
        return self._call(lambda: self._get(piece), f"{self.name}/{key}")

    def serve(self, tickets: Tickets, piece_of: Callable[[int], Piece]) -> None:
        def read(sample: int) -> "Buffer":
            piece = piece_of(sample)
            return self._call(lambda: self._get(piece), "", tickets.closed)

        serve_in_threads(tickets, read, _MOST_AT_ONCE)

    def _get(self, piece: Piece) -> "Buffer":
        import obstore

        if piece.end is None:
            return obstore.get(self._store, piece.key).bytes()
        if piece.end == piece.start:  # no range says so
            return b""
        options: GetOptions = {"range": (piece.start, piece.end)}
        got = obstore.get(self._store, piece.key, options=options)
        self._check_unchanged(piece.key, piece.end, got)
        return _whole(got.bytes(), piece.end - piece.start)

    def _check_unchanged(self, key: str, end: int, got: "GetResult") -> None:
        meta = got.meta
        tag = _tag(meta)
        if self._tags.setdefault(key, tag) != tag or meta["size"] < end:
            raise FeedError("it has changed since it was indexed: index it anew")

    def _listed(self, found: "Counter | None", on_entries: OnEntries) -> list[Entry]:
        """All objects: with folders, these in parallel; without, page by page."""
        import obstore

        first = self.glance()
        on_entries(first)
        if len(first) < _PAGE:
            add(found, len(first))
            return first
        if all("/" not in entry.key for entry in first):
            return self._below(None, found, on_entries)
        level = self._call(lambda: obstore.list_with_delimiter(self._store))
        folders = level["common_prefixes"]
        if len(folders) > _MOST_LISTED_APART:
            return self._below(None, found, on_entries)
        entries = [_entry(meta) for meta in level["objects"]]
        on_entries(entries)
        add(found, len(entries))
        below = self.patience.map(
            lambda folder: self._below(folder, found, on_entries), folders, _LISTINGS_AT_ONCE
        )
        return entries + [entry for some in below for entry in some]

    def _below(
        self, prefix: str | None, found: "Counter | None", on_entries: OnEntries
    ) -> list[Entry]:
        import obstore

        def once() -> list[Entry]:
            entries: list[Entry] = []
            try:
                for page in obstore.list(self._store, prefix, chunk_size=_PAGE):
                    some = [_entry(meta) for meta in page]
                    on_entries(some)
                    add(found, len(some))
                    entries += some
            except Exception:
                add(found, -len(entries))  # they are listed again, or not at all
                raise
            return entries

        return self._call(once)

    def _call(
        self,
        call: Callable[[], T],
        where: str | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> T:
        """where: what a complaint begins with; None: our name."""
        try:
            return self.patience.again(call, lambda why: inf if passes(why) else 0, is_over)
        except Exception as why:
            tried = self.patience.for_seconds
            text = reason(why, self._scheme, self._timeout_seconds, tried)
            begin = self.name if where is None else where
            raise FeedError(f"{begin}: {text}" if begin else text) from None


def _open(url: Url, timeout_seconds: float) -> "ObjectStore":
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise FeedError(
            f"{url.shown} is read by the package obstore: pip install obstore"
        ) from None
    limit = timedelta(seconds=timeout_seconds)
    # A large object may take longer in all; what counts is that bytes keep coming.
    options: ClientConfig = {
        "connect_timeout": limit,
        "read_timeout": limit,
        "timeout": timedelta(hours=1),
    }
    if _without_tls(url):
        options["allow_http"] = True
    try:
        # We try again ourselves: obstore would not when the body of an answer is cut.
        return from_url(url.root, client_options=options, retry_config={"max_retries": 0})
    except (BaseError, ValueError) as why:
        raise FeedError(f"{url.shown}: {reason(why, url.scheme, timeout_seconds, 0)}") from None


def _without_tls(url: Url) -> bool:
    """Whether a person asked for plain HTTP, by the URL or by the address of his own store."""
    named = [
        value
        for name, value in os.environ.items()
        if name.startswith(_CLOUDS) and ("ENDPOINT" in name or "BASE_URL" in name)
    ]
    return any(address.startswith("http://") for address in (url.root, *named))


def _entry(meta: "ObjectMeta") -> Entry:
    # Only what is read in pieces needs its tag, and there may be millions of others.
    return Entry(meta["path"], meta["size"], _tag(meta) if meta["path"].endswith(".tar") else "")


def _tag(meta: "ObjectMeta") -> str:
    return meta["e_tag"] or f"{meta['size']} {meta['last_modified']}"


def _whole(data: "Buffer", size_bytes: int) -> "Buffer":
    got = memoryview(data).nbytes
    if got != size_bytes:
        raise ConnectionError(f"{got} bytes came of {size_bytes}")
    return data
