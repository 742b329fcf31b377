"""Files of any other protocol that the package fsspec knows: memory, file, sftp, hdfs, hf, ...

Read in threads. A read that fails by something that passes is tried again, for minutes; whether a
file that changes while it is read in pieces is not detected, as not all protocols can.
"""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from flowos.feeder._entries import add, in_byte_order
from flowos.feeder._interfaces import Entry, OnEntries, Piece, Tickets, ignore
from flowos.feeder._one_line import one_line
from flowos.feeder._reader_threads import serve_in_threads
from flowos.feeder._retry import Retry
from flowos.feeder._url import Url
from flowos.model import FeedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Counter

T = TypeVar("T")

_UNKNOWN_SECONDS = 3.0

# They will not go well the next time either.
_LASTING = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    NotImplementedError,
    ImportError,
    ValueError,
    TypeError,
    FeedError,
)


class FileSystem:
    """What lies below a URL. Promises: see flowos.feeder._interfaces.Storage."""

    def __init__(self, url: Url, threads: int = 32) -> None:
        self.name = url.shown
        self.patience = Retry(url.shown)
        self._threads = threads
        self._files, self._root = _open(url)

    def entries(
        self, found: "Counter | None" = None, on_entries: OnEntries = ignore
    ) -> list[Entry]:
        del on_entries  # they come all at once, at the end
        listed = self._call(lambda: self._files.find(self._root, detail=True), self.name)
        add(found, len(listed))
        return in_byte_order([self._entry(path, info) for path, info in listed.items()])

    def glance(self) -> list[Entry]:
        return self.entries()

    def entry(self, key: str) -> Entry:
        path = self._path(key)
        return self._call(lambda: self._entry(path, self._files.info(path)), f"{self.name}/{key}")

    def read(self, key: str, start: int, end: int) -> "Buffer":
        return self._call(lambda: self._cut(key, start, end), f"{self.name}/{key}")

    def serve(self, tickets: Tickets, piece_of: Callable[[int], Piece]) -> None:
        def read(sample: int) -> "Buffer":
            piece = piece_of(sample)
            if piece.end is None:
                return self._call(lambda: self._all(piece.key), is_over=tickets.closed)
            start, end = piece.start, piece.end
            return self._call(lambda: self._cut(piece.key, start, end), is_over=tickets.closed)

        serve_in_threads(tickets, read, self._threads)

    def _all(self, key: str) -> "Buffer":
        data: bytes = self._files.cat_file(self._path(key))
        return data

    def _cut(self, key: str, start: int, end: int) -> "Buffer":
        if start == end:
            return b""
        data: bytes = self._files.cat_file(self._path(key), start=start, end=end)
        if len(data) != end - start:
            raise ConnectionError(f"{len(data)} bytes came of {end - start}")
        return data

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}" if self._root else key

    def _entry(self, path: str, info: dict[str, Any]) -> Entry:
        size = info.get("size")
        tag = info.get("ETag") or info.get("mtime") or info.get("created") or ""
        key = path.removeprefix(self._root).lstrip("/")
        return Entry(key, -1 if size is None else int(size), str(tag))

    def _call(
        self, call: Callable[[], T], where: str = "", is_over: Callable[[], bool] = lambda: False
    ) -> T:
        try:
            return self.patience.again(call, _passes, is_over)
        except Exception as why:
            text = _reason(why)
            raise FeedError(f"{where}: {text}" if where else text) from None


def _passes(why: Exception) -> float:
    """For how many seconds it is retried: 0 for what is no system error."""
    if isinstance(why, _LASTING):
        return 0
    return inf if isinstance(why, OSError) else _UNKNOWN_SECONDS


def _open(url: Url) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise FeedError(f"{url.shown} is read by the package fsspec: pip install fsspec") from None
    try:
        files, root = url_to_fs(url.root)
    except Exception as why:
        raise FeedError(f"{url.shown}: {_reason(why)}") from None
    return files, str(root).rstrip("/")


def _reason(why: Exception) -> str:
    if isinstance(why, FileNotFoundError):
        return "it is not there"
    if isinstance(why, ImportError):  # fsspec says which package to install
        return f"a package is missing: {one_line(why).partition(': ')[2]}"
    if isinstance(why, ValueError) and "rotocol not known" in str(why):
        return "no such protocol: s3, gs, az, http, https, or one of fsspec's"
    return one_line(why)
