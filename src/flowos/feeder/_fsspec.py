"""Files of any other protocol that the package fsspec knows: memory, file, sftp, hdfs, hf, ...

Listed and read in threads. What fails by something that passes is tried again, for minutes;
whether a file that changes while it is read in pieces is not detected, as not all protocols can.
"""

from collections.abc import Callable
from json import JSONDecodeError
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from flowos.feeder._entries import add, in_byte_order
from flowos.feeder._interfaces import Entry, OnEntries, Piece, Tickets, ignore
from flowos.feeder._object_errors import DENIED_STATUS, status_passes
from flowos.feeder._one_line import one_line
from flowos.feeder._reader_threads import serve_in_threads
from flowos.feeder._retry import Retry
from flowos.feeder._url import Url, line_without_secrets
from flowos.model import FeedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Counter

T = TypeVar("T")

_THREADS = 32
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

# What changes with a file, as the protocols call it: of its bytes first, then of its time.
_TAGS = (
    *("ETag", "etag", "checksum", "content_hash", "md5Hash", "blob_id", "xet_hash", "lfs", "sha"),
    *("last_commit", "mtime", "LastModified", "last_modified", "updated", "modified", "modify"),
    *("modificationTime", "last_write_time", "created"),
)
_REMEDIES = {"hf": ": check HF_TOKEN"}


class FileSystem:
    """What lies below a URL. Promises: see flowos.feeder._interfaces.Storage."""

    def __init__(self, url: Url) -> None:
        self.name = url.shown
        self.patience = Retry(url.shown)
        self._scheme = url.scheme.rpartition("::")[2]
        self._files, self._root = _open(url)

    def entries(
        self, found: "Counter | None" = None, on_entries: OnEntries = ignore
    ) -> list[Entry]:
        del on_entries  # they come all at once, at the end
        find = self._files.find
        if _walks(find):
            listed = self._walked()
        else:
            listed = self._call(lambda: find(self._root, detail=True), self.name)
        entries = in_byte_order([self._entry(path, info) for path, info in listed.items()])
        if [entry.key for entry in entries] == [""]:
            raise FeedError(f"{self.name} is one file: give the folder that it is in")
        add(found, len(entries))
        return entries

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
                return self._call(lambda: self._all(piece), is_over=tickets.closed)
            start, end = piece.start, piece.end
            return self._call(lambda: self._cut(piece.key, start, end), is_over=tickets.closed)

        serve_in_threads(tickets, read, _THREADS)

    def _walked(self) -> dict[str, dict[str, Any]]:
        """As fsspec's own `find`, which leaves out folders that it cannot list."""
        listed: dict[str, dict[str, Any]] = {}
        folders = [str(self._files._strip_protocol(self._root))]
        while folders:
            some = [
                info for infos in self.patience.map(self._in_folder, folders, 1) for info in infos
            ]
            folders = [info["name"].rstrip("/") for info in some if _is_folder(info)]
            listed.update((info["name"], info) for info in some if not _is_folder(info))
        return listed

    def _in_folder(self, path: str) -> list[dict[str, Any]]:
        """What is in it; of some protocols it is in itself."""

        def infos() -> list[dict[str, Any]]:
            try:
                return list(self._files.ls(path, detail=True))
            except FileNotFoundError:
                if self._key(path):
                    raise
                return []  # that nothing is there, the source says

        found = self._call(infos, f"{self.name}/{self._key(path)}".rstrip("/"))
        return [info for info in found if not _is_folder(info) or info["name"].rstrip("/") != path]

    def _all(self, piece: Piece) -> "Buffer":
        path = self._path(piece.key)
        data: bytes = self._files.cat_file(path)
        if len(data) < piece.listed_bytes:
            self._files.invalidate_cache()
            if len(data) != self._files.info(path).get("size"):  # nor was it written anew
                raise ConnectionError(f"{len(data)} bytes came of {piece.listed_bytes}")
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

    def _key(self, path: str) -> str:
        return path.removeprefix(self._root).lstrip("/")

    def _entry(self, path: str, info: dict[str, Any]) -> Entry:
        size = info.get("size")
        tag = next((info[name] for name in _TAGS if info.get(name)), "")
        return Entry(self._key(path), -1 if size is None else int(size), str(tag))

    def _call(
        self, call: Callable[[], T], where: str = "", is_over: Callable[[], bool] = lambda: False
    ) -> T:
        try:
            return self.patience.again(call, _passes, is_over)
        except Exception as why:
            text = _reason(why, self._scheme)
            raise FeedError(f"{where}: {text}" if where else text) from None


def _passes(why: Exception) -> float:
    """For how many seconds it is retried: 0 for what is no system error."""
    if isinstance(why, _LASTING) and not isinstance(why, JSONDecodeError):  # half of an answer
        return 0
    status = _status(why)
    if status:
        return inf if status_passes(status) else 0
    return inf if isinstance(why, OSError) else _UNKNOWN_SECONDS


def _status(why: Exception) -> int:
    """What a server answered, where that is an error; else 0."""
    said = (
        getattr(getattr(why, "response", None), "status_code", None),
        getattr(why, "status_code", None),
        getattr(why, "status", None),
    )
    return next((status for status in said if isinstance(status, int) and status >= 400), 0)


def _is_folder(info: dict[str, Any]) -> bool:
    return bool(info["type"] == "directory")


def _walks(find: Any) -> bool:
    """Whether it is fsspec's own, folder by folder, and not one of the protocol's."""
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    inner = getattr(find, "__wrapped__", find)  # a coroutine's
    return getattr(inner, "__func__", None) in (AbstractFileSystem.find, AsyncFileSystem._find)


def _open(url: Url) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise FeedError(f"{url.shown} is read by the package fsspec: pip install fsspec") from None
    try:
        files, root = url_to_fs(url.root)
        files.invalidate_cache()  # one of this process may remember what was there
    except Exception as why:
        raise FeedError(f"{url.shown}: {_reason(why, url.scheme)}") from None
    return files, str(root).rstrip("/")


def _reason(why: Exception, scheme: str) -> str:
    if isinstance(why, FileNotFoundError):
        return "it is not there"
    if isinstance(why, ImportError):  # fsspec says which package to install
        return f"a package is missing: {one_line(why).partition(': ')[2]}"
    if isinstance(why, ValueError) and "rotocol not known" in str(why):
        return "no such protocol: s3, gs, az, http, https, or one of fsspec's"
    if _status(why) in DENIED_STATUS:
        return f"access denied{_REMEDIES.get(scheme, '')}"
    return line_without_secrets(one_line(why))
