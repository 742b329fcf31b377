"""Objects in a bucket or on a web server (s3, gs, az, http, https), by the package obstore.

Each request waits in a thread of its own, without the GIL, and what it brings goes to the feeder
as it is. (On two cores, obstore's blocking calls in 32 threads brought three times as many objects
per second as its coroutines on one event loop, at a third of the CPU time.)

A request that fails by something that passes (5xx, a cut connection, no answer in time) is tried
again, for minutes: after pauses of our own, as obstore does not tell a server's `Retry-After`.
Credentials are found by obstore in the environment, and never shown.
"""

import os
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from flowos.feeder._endings import SHARDS
from flowos.feeder._entries import add, in_byte_order
from flowos.feeder._interfaces import Entry, OnEntries, Piece, Tickets, ignore
from flowos.feeder._object_clouds import CLOUD_OF, PREFIXES, WEB
from flowos.feeder._object_errors import CHANGED, passes, reason
from flowos.feeder._reader_threads import serve_in_threads
from flowos.feeder._retry import Retry
from flowos.feeder._url import Url, line_without_secrets, user_info
from flowos.model import FeedError

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore
    from typing_extensions import Buffer

    from flowos._native import Counter

T = TypeVar("T")

_MAX_AT_ONCE = 256
_LISTINGS_AT_ONCE = 32
_PAGE = 1000  # keys: as many as S3 lists in one answer
# With more folders than this, one listing of all of them costs fewer requests than one of each.
_MAX_LISTED_APART = 1024


class Bucket:
    """What lies below a URL. Promises: see flowos.feeder._interfaces.Storage."""

    def __init__(self, url: Url, timeout_seconds: float = 30.0) -> None:
        self.name = url.shown
        self._url = url
        self._timeout_seconds = timeout_seconds
        self.patience = Retry(url.shown)
        self._store = _open(url, timeout_seconds)
        self._listed_as: dict[str, ObjectMeta] = {}  # what is read in pieces

    def entries(
        self, found: "Counter | None" = None, on_entries: OnEntries = ignore
    ) -> list[Entry]:
        entries = self._listed(found, on_entries)
        if not entries:
            self._refuse_one_object()
        folders = {entry.key.rpartition("/")[0] for entry in entries}
        # A folder created by hand in a bucket's console is an object without bytes.
        files = [entry for entry in entries if entry.size_bytes or entry.key not in folders]
        return in_byte_order(files)

    def glance(self) -> list[Entry]:
        import obstore

        page = self._call(lambda: next(iter(obstore.list(self._store, chunk_size=_PAGE)), []))
        return self._entries_of(page)

    def entry(self, key: str) -> Entry:
        import obstore

        head = self._call(lambda: obstore.head(self._store, key), f"{self.name}/{key}")
        return self._entries_of([head])[0]

    def read(self, key: str, start: int, end: int) -> "Buffer":
        piece = Piece(key, start, end)
        return self._call(lambda: self._get(piece), f"{self.name}/{key}")

    def serve(self, tickets: Tickets, piece_of: Callable[[int], Piece]) -> None:
        def read(sample: int) -> "Buffer":
            piece = piece_of(sample)
            return self._call(lambda: self._get(piece), "", tickets.closed)

        serve_in_threads(tickets, read, _MAX_AT_ONCE)

    def _get(self, piece: Piece) -> "Buffer":
        import obstore

        if piece.end is None:
            return self._not_cut(obstore.get(self._store, piece.key).bytes(), piece)
        if piece.end == piece.start:  # no range says so
            return b""
        options: GetOptions = {"range": (piece.start, piece.end)}
        got = obstore.get(self._store, piece.key, options=options)
        self._check_unchanged(piece, got.meta)
        return _whole(got.bytes(), piece.end - piece.start)

    def _not_cut(self, data: "Buffer", piece: Piece) -> "Buffer":
        """What is shorter than it was listed has to be so long now: it was written anew."""
        import obstore

        if memoryview(data).nbytes >= piece.listed_bytes:
            return data
        return _whole(data, obstore.head(self._store, piece.key)["size"])

    def _refuse_one_object(self) -> None:
        import obstore

        is_bucket = "/" not in self._url.root.partition("://")[2]
        if is_bucket or self._url.scheme in WEB:
            return
        size = 0  # as of an empty folder, in some stores
        with suppress(Exception):
            size = obstore.head(self._store, "")["size"]
        if size:
            raise FeedError(f"{self.name} is one object: give the folder that it is in")

    def _check_unchanged(self, piece: Piece, meta: "ObjectMeta") -> None:
        listed = self._listed_as.setdefault(piece.key, meta)
        assert piece.end is not None
        if meta["size"] < piece.end or _differ(listed, meta):
            raise FeedError(CHANGED)

    def _entries_of(self, metas: "Sequence[ObjectMeta]") -> list[Entry]:
        """What they are now is what they have to be when they are read in pieces."""
        self._listed_as.update(
            {meta["path"]: meta for meta in metas if meta["path"].endswith(SHARDS)}
        )
        return [Entry(meta["path"], meta["size"], _tag(meta)) for meta in metas]

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
        if len(folders) > _MAX_LISTED_APART:
            return self._below(None, found, on_entries)
        entries = self._entries_of(level["objects"])
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
                    some = self._entries_of(page)
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
        began = time.monotonic()
        try:
            return self.patience.again(call, lambda why: inf if passes(why) else 0, is_over)
        except Exception as why:
            tried = time.monotonic() - began if self.patience.for_seconds else 0.0
            text = reason(why, self._url.scheme, self._timeout_seconds, tried)
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
    _check_addresses(url)
    if _without_tls(url):
        options["allow_http"] = True
    root, user = url.root, user_info(url.root)
    if user and url.scheme in WEB:  # obstore would not send it
        word = b64encode(unquote(user).encode()).decode()
        root, options["default_headers"] = url.shown, {"authorization": f"Basic {word}"}
    try:
        # We try again ourselves: obstore would not when the body of an answer is cut.
        return from_url(root, client_options=options, retry_config={"max_retries": 0})
    except (BaseError, ValueError) as why:
        raise FeedError(f"{url.shown}: {reason(why, url.scheme, timeout_seconds, 0)}") from None


def _check_addresses(url: Url) -> None:
    """obstore panics at what is no address. Raises FeedError if one of this cloud's is none."""
    cloud = CLOUD_OF[url.scheme]
    for name in cloud.addresses if cloud else ():
        value = os.environ.get(name)
        if value is None or _is_address(value):
            continue
        said = f"{name}={line_without_secrets(value)!r}"
        raise FeedError(f"{url.shown}: {said} is no address such as https://host:9000; mend it")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_whole = text.split() == [text] and bool(parts.hostname) and parts.port != 0
        return is_whole and parts.scheme in WEB
    except ValueError:  # of a port
        return False


def _without_tls(url: Url) -> bool:
    """Whether a person asked for plain HTTP, by the URL or by the address of his own store."""
    named = [
        value
        for name, value in os.environ.items()
        if name.startswith(PREFIXES) and ("ENDPOINT" in name or "BASE_URL" in name)
    ]
    return any(address.startswith("http://") for address in (url.root, *named))


def _tag(meta: "ObjectMeta") -> str:
    return meta["e_tag"] or f"{meta['size']} {meta['last_modified']}"


def _differ(one: "ObjectMeta", other: "ObjectMeta") -> bool:
    """Whether they are of other bytes. Listings of some stores have tags without their quotes."""
    if one["size"] != other["size"]:
        return True
    tags = [(meta["e_tag"] or "").removeprefix("W/").strip('"') for meta in (one, other)]
    if all(tags):
        return tags[0] != tags[1]
    seconds = [int(meta["last_modified"].timestamp()) for meta in (one, other)]
    return all(seconds) and seconds[0] != seconds[1]  # 0: it was not said


def _whole(data: "Buffer", size_bytes: int) -> "Buffer":
    got = memoryview(data).nbytes
    if got != size_bytes:
        raise ConnectionError(f"{got} bytes came of {size_bytes}")
    return data
