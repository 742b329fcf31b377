"""Somewhere with named bytes: a bucket, a server, a file system of fsspec.

What a place is asked for is small on purpose, so that tar shards and Parquet files are read from
all of them in one way.
"""

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from flowos.feeder._patience import Patience
from flowos.feeder._source import Tickets

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Counter

_COUNTING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or object below the root of its place. size_bytes: -1 is not known.

    tag: changes when the contents do; empty where the place does not tell.
    """

    key: str
    size_bytes: int
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes [start, end) of what is called key; end None: the whole of it, as it is now."""

    key: str
    start: int = 0
    end: int | None = None


Tell: TypeAlias = Callable[[Sequence[Entry]], None]


def nobody(_: Sequence[Entry]) -> None:
    """Is told in vain."""


class Place(Protocol):
    """Safe from many threads. Raises FeedError of one line, which names no secret."""

    patience: Patience
    """What fails in passing is tried again by it."""

    @property
    def name(self) -> str:
        """As a person wrote it, without secrets."""

    def entries(self, found: "Counter | None" = None, tell: Tell = nobody) -> list[Entry]:
        """All below the root, in byte order of the keys; `found` counts them.

        tell: is told of them as they are found, maybe more than once, and in any thread.
        """

    def glance(self) -> list[Entry]:
        """The first of them, at the cost of a request where that can be."""

    def entry(self, key: str) -> Entry:
        """One of them, with its size."""

    def read(self, key: str, start: int, end: int) -> "Buffer":
        """The bytes [start, end), all of them."""

    def serve(self, tickets: Tickets, piece_of: Callable[[int], Piece]) -> None:
        """Answers tickets until they are closed; piece_of: where a sample is."""


class Ranged(io.RawIOBase):
    """A file of a place, for those that want one: reads by ranges, `window` bytes at least.

    What was read last stays, so that small steps forward cost nothing.
    """

    def __init__(self, place: Place, entry: Entry, window: int) -> None:
        self._place, self._entry, self._window = place, entry, window
        self._at = 0
        self._kept_from = 0
        self._kept = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._entry.size_bytes}
        self._at = max(0, base[whence] + offset)
        return self._at

    def readinto(self, into: "Buffer") -> int:
        wanted = memoryview(into).cast("B")
        length = min(len(wanted), max(0, self._entry.size_bytes - self._at))
        if length == 0:
            return 0
        begin = self._at - self._kept_from
        if begin < 0 or begin + length > len(self._kept):
            self._fetch(length)
            begin = 0
        wanted[:length] = self._kept[begin : begin + length]
        self._at += length
        return length

    def _fetch(self, length: int) -> None:
        end = min(self._at + max(length, self._window), self._entry.size_bytes)
        self._kept = memoryview(self._place.read(self._entry.key, self._at, end)).cast("B")
        self._kept_from = self._at


def in_byte_order(entries: Sequence[Entry]) -> list[Entry]:
    """As the native listing of folders has them."""
    return sorted(entries, key=lambda entry: entry.key.encode(errors="surrogateescape"))


def add(found: "Counter | None", more: int) -> None:
    """From any thread."""
    if found is not None:
        with _COUNTING:
            found.value += more
