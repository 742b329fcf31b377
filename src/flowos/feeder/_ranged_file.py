"""A file object over reads by range."""

import io
from typing import TYPE_CHECKING

from flowos.feeder._interfaces import Entry, Storage

if TYPE_CHECKING:
    from typing_extensions import Buffer


class RangedFile(io.RawIOBase):
    """A file of a storage, for those that want one: reads by ranges, `window` bytes at least.

    What was read last stays, so that small steps forward cost nothing.
    """

    def __init__(self, storage: Storage, entry: Entry, window: int) -> None:
        self._storage, self._entry, self._window = storage, entry, window
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
        view = memoryview(into).cast("B")
        length = min(len(view), max(0, self._entry.size_bytes - self._at))
        if length == 0:
            return 0
        begin = self._at - self._kept_from
        if begin < 0 or begin + length > len(self._kept):
            self._fetch(length)
            begin = 0
        view[:length] = self._kept[begin : begin + length]
        self._at += length
        return length

    def _fetch(self, length: int) -> None:
        end = min(self._at + max(length, self._window), self._entry.size_bytes)
        self._kept = memoryview(self._storage.read(self._entry.key, self._at, end)).cast("B")
        self._kept_from = self._at
