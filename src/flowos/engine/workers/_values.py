"""How values cross between processes. Each worker is sent this file.

Buffers of `OUT_OF_BAND` bytes or more (arrays, and all else that gives pickle protocol 5 a buffer)
are written once into an anonymous memory file, whose descriptor goes along with the message. The
receiver maps it privately, copy on write: a task may write to its array, and no other task sees
that. The file is written again only when every mapping of it is gone.

Each file and each mapping takes descriptors as long as its values are kept, and a process has few:
beyond a share of them values are copied instead.
"""

import mmap
import os
import pickle
import resource
import sys
from collections import deque
from collections.abc import Callable, Sequence
from errno import ENOMEM
from typing import Any, cast

from flowos.engine.workers._functions import dumps_by_value

OUT_OF_BAND = 64 * 1024
ALIGNMENT = 64
PLAIN = frozenset((int, float, bool, type(None)))
SHORT = frozenset((str, bytes))
SHORT_BYTES = 4096
_FILES_SHARE = 16

Span = tuple[int, int]
Wired = Any
"""A value in a message: itself if plain or short, else a tuple (body, spans, ...)."""

Limit = tuple[int, str]
"""(bytes, of what): the largest value that crosses."""
NO_LIMIT: Limit = sys.maxsize, ""

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(before=_count_fork)


def forks() -> int:
    """How often this process forked: a child may read what was mapped then."""
    return _forks


def max_files() -> int:
    """How many memory files a process may lend, keep idle, and map: each takes up to two
    descriptors of those that it may have open."""
    return max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _FILES_SHARE)


class TooLarge(Exception):  # noqa: N818 - reads as what it is
    """A value that the other end cannot hold, or this one not twice; in words."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; give parts of it, or write it to a file and give that (fo.File)")


class Mapping(mmap.mmap):
    """A private, copy-on-write view of a memory file; `held` is let go when the last array is."""

    held: object = None
    alive = 0

    def __init__(self, *_: object, **__: object) -> None:
        type(self).alive += 1

    def __del__(self) -> None:
        type(self).alive -= 1  # by its type: at exit this module has no names any more


class Slab:
    """A memory file of ours, and our own shared mapping of it, through which we fill it.

    Raises MemoryError, OSError if there is none to be had.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.fd = os.memfd_create("flowos")
        try:
            os.ftruncate(self.fd, size)
            self.memory = mmap.mmap(self.fd, size)
        except OSError as error:
            os.close(self.fd)
            if error.errno == ENOMEM:
                raise MemoryError(f"no memory for {size} bytes") from error
            raise

    def close(self) -> None:
        self.memory.close()
        os.close(self.fd)


class SlabPool:
    """Memory files that this process fills. Fresh pages are dear, so files given back are kept.

    first: files are numbered from here. keep_bytes bounds what is kept idle, max_lent how many are
    lent, and how many idle, limit the bytes of a value. When the last mapping of a file is gone,
    its number is appended to `returned`, negated where the file must not be written again (a forked
    child may read it).
    """

    def __init__(self, first: int, keep_bytes: int, max_lent: int, limit: Limit = NO_LIMIT) -> None:
        self.returned: deque[int] = deque()
        self.lent: dict[int, Slab] = {}
        self._next = first
        self._keep_bytes = keep_bytes
        self._max_lent = max_lent
        self._limit = limit
        self._idle: list[Slab] = []  # the longest idle first

    def parcel(self) -> "Parcel":
        """For the values of one message: in a file if one more may be lent, else in the message."""
        self._collect()
        return Parcel(OUT_OF_BAND if len(self.lent) < self._max_lent else sys.maxsize, self._limit)

    def take(self, size: int) -> tuple[int, Slab]:
        """A slab of at least `size` bytes, and its number for this once."""
        self._collect()
        capacity = max(OUT_OF_BAND, 1 << (size - 1).bit_length())  # untouched pages cost nothing
        slab = next((s for s in reversed(self._idle) if s.size == capacity), None)
        if slab is None:
            slab = Slab(capacity)
        else:
            self._idle.remove(slab)
        number = self.number()
        self.lent[number] = slab
        return number, slab

    def number(self) -> int:
        """For memory that is read while a message is sent, and not lent."""
        self._next += 1
        return self._next

    def lay(
        self, parcel: "Parcel", stays: bool, by_descriptor: bool
    ) -> tuple[int, list[tuple[Any, int]]]:
        """The number of the file for a parcel's values, and what is sent of it.

        stays: the values may be asked for again. by_descriptor: where it is sent shares our memory;
        else what does not stay is sent from where the values are, as number 0.
        """
        if not parcel.size:
            return 0, []
        if not stays and not by_descriptor:
            return 0, [(parcel.views(), parcel.size)]
        number, slab = self.take(parcel.size)
        parcel.fill(slab)
        return number, [(slab.fd if by_descriptor else slab.memory, parcel.size)]

    def _collect(self) -> None:
        if not self.returned:
            return
        while self.returned:
            number = self.returned.popleft()
            slab = self.lent.pop(abs(number), None)
            if slab is not None and number > 0:
                self._idle.append(slab)
            elif slab is not None:
                slab.close()
        while (
            len(self._idle) > self._max_lent or sum(s.size for s in self._idle) > self._keep_bytes
        ):
            self._idle.pop(0).close()

    def close(self) -> None:
        for slab in (*self.lent.values(), *self._idle):
            slab.close()
        self.lent.clear()
        self._idle.clear()


class Parcel:
    """The values of one message. Their large buffers go together into one memory file."""

    def __init__(self, out_of_band: int = OUT_OF_BAND, limit: Limit = NO_LIMIT) -> None:
        self.size = 0
        self._limit = limit
        self._large = out_of_band
        self._buffers: list[tuple[int, memoryview]] = []

    def add(self, value: object) -> Wired:
        """What stands for the value in the message: itself if plain or short, else (body, spans).

        A span is (start, end) in the message's memory file; an empty body is in the first one.
        Raises TooLarge if it does not fit, and what pickle raises; the parcel stays as it was.
        """
        kind = type(value)
        if kind in PLAIN or (kind in SHORT and len(cast(bytes, value)) < SHORT_BYTES):
            return value
        mark = self.size, len(self._buffers)
        try:
            body, spans = self._pickle(value, pickle.dumps)
        except MemoryError:
            self._go_back(*mark)
            raise TooLarge("there is no memory for a copy of it") from None
        except Exception:
            body, spans = b"__main__", []
        if b"__main__" in body:  # has the same name on both sides, and is not the same
            self._go_back(*mark)
            body, spans = self._pickle(value, dumps_by_value)
        size = len(body) + sum(end - start for start, end in spans)
        if size > self._limit[0]:
            self._go_back(*mark)
            most, whose = self._limit
            raise TooLarge(f"its {size} bytes are more than {whose} of {most} bytes")
        if len(body) >= self._large:
            return b"", (self._lay(memoryview(body)), *spans)
        return body, tuple(spans)

    def _go_back(self, size: int, buffers: int) -> None:
        self.size = size
        del self._buffers[buffers:]

    def _pickle(self, value: object, dumps: Callable[..., bytes]) -> tuple[bytes, list[Span]]:
        spans: list[Span] = []

        def keep(buffer: pickle.PickleBuffer) -> bool:
            view = buffer.raw()
            if view.nbytes < self._large:
                return True
            spans.append(self._lay(view))
            return False

        return dumps(value, 5, buffer_callback=keep), spans

    def _lay(self, view: memoryview) -> Span:
        start = -(-self.size // ALIGNMENT) * ALIGNMENT
        self.size = start + view.nbytes
        self._buffers.append((start, view))
        return start, self.size

    def views(self) -> list[memoryview]:
        """All bytes of the file, where they lie now."""
        views, end = [], 0
        for start, view in self._buffers:
            views += [memoryview(bytes(start - end)), view] if start > end else [view]
            end = start + view.nbytes
        return views

    def fill(self, slab: Slab) -> None:
        for start, view in self._buffers:
            slab.memory[start : start + view.nbytes] = view


def unpack(
    body: bytes, spans: Sequence[Span], fd: Any = -1, size: int = 0, held: object = None
) -> Any:
    """The value again, over its own mapping of the memory file `fd` that the spans are of.

    fd: or memory that came from another node, of which no other value has these spans.
    """
    if not spans:
        return pickle.loads(body)
    if type(fd) is not int:
        views = [memoryview(fd)[start:end] for start, end in spans]
    elif Mapping.alive < max_files():
        mapping = Mapping(fd, size, access=mmap.ACCESS_COPY)
        mapping.held = held
        views = [memoryview(mapping)[start:end] for start, end in spans]
    else:
        views = [_copied(fd, start, end) for start, end in spans]
    return pickle.loads(body or views.pop(0), buffers=views)


def _copied(fd: int, start: int, end: int) -> memoryview:
    copy = memoryview(bytearray(end - start))
    while start < end:  # one call reads at most 2 GiB
        start += os.preadv(fd, [copy[len(copy) - (end - start) :]], start)
    return copy


class MappingGone:
    """Appends a mapping's number once it is gone, negated if a forked child may still read it."""

    def __init__(self, number: int, gone: list[int]) -> None:
        self._number, self._gone, self._forks = number, gone, _forks

    def __del__(self) -> None:
        self._gone.append(self._number if self._forks == _forks else -self._number)
