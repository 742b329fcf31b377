"""What the parts of a feed are to each other.

A `Storage` has named bytes; a `Source` makes samples of them; a `Listing` is a source's catalog, of
which an `EarlyReader` may read samples while it runs. The native feeder says which samples it wants
by `Tickets`: the source pushes their bytes, or says in one line why it cannot.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from flowos._dataclasses import dataclass
from flowos.feeder._retry import Retry

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Cache, Catalog, Counter


class Tickets(Protocol):
    """The side of the native feeder that a source sees; safe from many threads."""

    def pull(self, max_tickets: int) -> list[tuple[int, int]]:
        """(id, sample) of 1 to `max_tickets` requested samples; blocks. [] once closed."""

    def push(self, id: int, data: "Buffer") -> None:
        """The whole sample. The buffer is free again afterwards."""

    def fail(self, id: int, why: str) -> None:
        """Why it cannot be had, without its name."""

    def closed(self) -> bool:
        """True once no sample is requested any more: retries may end."""

    def offer(self, sample: int, data: "Buffer") -> bool:
        """Bytes that were at hand anyway, for the cache. False: there is none, or it is full."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or object below the root of its storage. size_bytes: -1 is not known.

    tag: changes when the contents do; empty where the storage has none.
    """

    key: str
    size_bytes: int
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes [start, end) of what is called key; end None: the whole of it, as it is now.

    listed_bytes: what the whole had when it was listed; -1 is not known.
    """

    key: str
    start: int = 0
    end: int | None = None
    listed_bytes: int = -1


OnEntries: TypeAlias = Callable[[Sequence[Entry]], None]


def ignore(_: Sequence[Entry]) -> None:
    """Default callback: does nothing."""


class Storage(Protocol):
    """Safe from many threads. Raises FeedError if it cannot be read: one line without a secret."""

    patience: Retry
    """What fails in passing is tried again by it."""

    @property
    def name(self) -> str:
        """As a person wrote it, without secrets."""

    def entries(
        self, found: "Counter | None" = None, on_entries: OnEntries = ignore
    ) -> list[Entry]:
        """All below the root, in byte order of the keys; `found` counts them.

        on_entries: called with them as they are found, maybe more than once, and in any thread.
        """

    def glance(self) -> list[Entry]:
        """The first of them, at the cost of a request where that can be."""

    def entry(self, key: str) -> Entry:
        """One of them, with its size."""

    def read(self, key: str, start: int, end: int) -> "Buffer":
        """The bytes [start, end), all of them."""

    def serve(self, tickets: Tickets, piece_of: Callable[[int], Piece]) -> None:
        """Answers tickets until they are closed; piece_of: where a sample is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchBudget:
    """What may be read while a source is listed: so many at once, held in so many bytes."""

    in_flight: int
    max_bytes: int


class EarlyReader(Protocol):
    """Reads what a listing finds. To be ended."""

    @property
    def samples(self) -> int:
        """Read of the source, in all."""

    @property
    def bytes(self) -> int:
        """Read of the source, in all."""

    def keep(self, catalog: "Catalog", cache: "Cache") -> None:
        """What was read goes into the cache of this catalog's samples; nothing more is read."""

    def end(self) -> None:
        """Nothing more is read; what was is forgotten."""


@dataclass(frozen=True, slots=True)
class Listing:
    """catalog: as the source's; early: what reads while that is called, if anything does."""

    catalog: "Callable[[Counter | None], Catalog]"
    early: EarlyReader | None = None


class Source(Protocol):
    """Where samples come from."""

    @property
    def name(self) -> str:
        """As a person wrote it, without secrets."""

    def identity(self) -> str:
        """Changes when a cached catalog is outdated; costs a listing of shards.

        Empty: no cheaper check than a new catalog. Raises FeedError if it cannot be read.
        """

    def catalog(self, found: "Counter | None" = None) -> "Catalog":
        """What there is; `found` counts while it runs. Raises FeedError if nothing is found."""

    def listing(self, budget: "PrefetchBudget") -> "Listing":
        """The catalog of single objects, which are read while they are listed."""

    def serve(self, tickets: Tickets, catalog: "Catalog") -> None:
        """Answers tickets until it is closed. What goes wrong with a sample fails its ticket."""
