"""Parquet files here or elsewhere: their footers, and single row groups of one column."""

import threading
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from flowos.feeder._arrow_rows import Rows
from flowos.feeder._endings import PARQUET
from flowos.feeder._entries import in_byte_order
from flowos.feeder._interfaces import Entry
from flowos.feeder._one_line import one_line
from flowos.feeder._open_storage import open_storage
from flowos.feeder._ranged_file import RangedFile
from flowos.feeder._retry import Retry
from flowos.feeder._url import Url, read_url, without_secrets
from flowos.model import FeedError

_WINDOW = 256 << 10  # footers and small columns come with one request


class ParquetFiles:
    """The files of one data set. Safe from many threads: each reading opens its file anew."""

    def __init__(
        self,
        name: str,
        entries: Callable[[], list[Entry]],
        open_: Callable[[Entry], Any],
        patience: Retry,
    ) -> None:
        self.name, self.patience = name, patience
        self._list, self._open = entries, open_
        self._entries: dict[str, Entry] = {}
        self._footers: dict[str, Any] = {}
        self._ends: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def entries(self) -> list[Entry]:
        """In byte order of their names. Raises FeedError if there are none."""
        entries = self._list()
        if not entries:
            raise FeedError(f"{self.name}: no {PARQUET} files are there")
        with self._lock:
            self._entries = {entry.key: entry for entry in entries}
        return entries

    def where(self, key: str) -> str:
        """What a person calls a file."""
        return self.name if f"/{self.name}".endswith(f"/{key}") else f"{self.name}/{key}"

    def footer(self, key: str) -> Any:
        """What pyarrow knows of a file without its data: pyarrow.parquet.FileMetaData."""
        with self._lock:
            known = self._footers.get(key)
        if known is None:
            with self._opened(key) as file:
                known = file.metadata
            ends = accumulate(known.row_group(i).num_rows for i in range(known.num_row_groups))
            with self._lock:
                self._footers[key], self._ends[key] = known, list(ends)
        return known

    def schema(self, key: str) -> Any:
        """pyarrow.Schema of a file."""
        return self.footer(key).schema.to_arrow_schema()

    def find(self, key: str, row: int) -> tuple[int, int]:
        """The row group of a row, and which row of it. Raises FeedError if it has fewer rows."""
        self.footer(key)
        ends = self._ends[key]
        group = bisect_right(ends, row)
        if group == len(ends):
            raise FeedError("the file has changed since it was indexed: index it anew")
        return group, row - (ends[group - 1] if group else 0)

    def rows(self, key: str, group: int, column: str) -> Rows:
        """One column of a row group."""
        with self._opened(key) as file:
            try:
                table = file.read_row_group(group, columns=[column], use_threads=False)
            except (OSError, ValueError) as why:  # pyarrow's errors are of these
                raise FeedError(f"row group {group}: {one_line(why)}") from None
        return Rows(_inside(table, column))

    def column(self, key: str, column: str) -> Any:
        """A whole column: pyarrow.ChunkedArray."""
        with self._opened(key) as file:
            try:
                table = file.read(columns=[column], use_threads=False)
            except (OSError, ValueError) as why:
                raise FeedError(f"{self.where(key)}: {column}: {one_line(why)}") from None
        return _inside(table, column)

    def _opened(self, key: str) -> Any:
        import pyarrow.parquet as pq

        if not self._entries:  # the catalog was cached
            self.entries()
        entry = self._entries.get(key)
        if entry is None:
            raise FeedError(f"{self.where(key)}: it is not there")
        try:
            return pq.ParquetFile(self._open(entry), metadata=self._footers.get(key))
        except FileNotFoundError:
            raise FeedError(f"{self.where(key)}: it is not there") from None
        except (OSError, ValueError) as why:
            raise FeedError(f"{self.where(key)}: {one_line(why)}") from None


def open_files(where: str | Path) -> ParquetFiles:
    """where: a file, a folder of them, or a URL of such. Raises FeedError if nothing is found."""
    text = str(where)
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        shown = without_secrets(text) if "://" in text else text
        raise FeedError(f"{shown} is read by the package pyarrow: pip install pyarrow") from None
    if "://" in text:
        return _files_at(read_url(text))
    path = Path(text)
    try:
        root = path if S_ISDIR(path.stat().st_mode) else path.parent
    except (FileNotFoundError, NotADirectoryError):
        raise FeedError(f"{text}: it is not there") from None
    except (OSError, ValueError) as why:
        raise FeedError(f"{text}: it cannot be looked at: {_reason(why)}") from None
    return ParquetFiles(
        text, lambda: _here(path, root), lambda entry: root / entry.key, Retry(text)
    )


def _here(path: Path, root: Path) -> list[Entry]:
    found = sorted(path.rglob(f"*{PARQUET}")) if path.is_dir() else [path]
    return in_byte_order([_entry(file, root) for file in found])


def _entry(file: Path, root: Path) -> Entry:
    try:
        state = file.stat()
    except OSError as why:
        raise FeedError(
            f"{file}: it cannot be read: {_reason(why)}; mend what it links to, or take it out"
        ) from None
    return Entry(str(file.relative_to(root)), state.st_size, str(state.st_mtime_ns))


def _reason(why: Exception) -> str:
    return (isinstance(why, OSError) and why.strerror) or one_line(why)


def _files_at(url: Url) -> ParquetFiles:
    storage = open_storage(url)

    def entries() -> list[Entry]:
        if url.named:
            return in_byte_order([storage.entry(key) for key in url.named])
        return [entry for entry in storage.entries() if _is_ours(url, entry.key)]

    return ParquetFiles(
        url.shown, entries, lambda entry: RangedFile(storage, entry, _WINDOW), storage.patience
    )


def _is_ours(url: Url, key: str) -> bool:
    return url.matches(key) and key.endswith(PARQUET)


def _inside(table: Any, column: str) -> Any:
    """The column, or what is inside it after the dots of its name."""
    import pyarrow.compute as pc

    if column in table.column_names:
        return table.column(column)
    outer, *inner = column.split(".")
    found = table.column(outer)
    for name in inner:
        found = pc.struct_field(found, name)
    return found
