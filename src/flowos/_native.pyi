"""The compiled half of FlowOS."""

from collections.abc import Sequence
import os
from typing import Annotated

import numpy
import numpy.typing
from numpy.typing import NDArray


class CacheState:
    """What is known of a cache without attaching to it."""

    @property
    def samples(self) -> int:
        """Of the data set."""

    @property
    def cached(self) -> int:
        """Of these are here."""

    @property
    def bytes(self) -> int:
        """They take so much."""

    @property
    def unverified(self) -> int:
        """Written before the last start of the machine, not read since."""

    @property
    def processes(self) -> int:
        """Attached now."""

class Cache:
    """Samples on the storage of this node, shared by its processes."""

    def __init__(self, folder: str | os.PathLike, fingerprint: int, samples: int, most_bytes: int = 0, least_free_bytes: int = 1073741824, segment_bytes: int = 268435456) -> None:
        """
        Attaches, and makes it where it is not there. FeedError: it cannot be had here.
        """

    def has(self, sample: int) -> bool:
        """It is here."""

    def bytes_of(self, sample: int) -> bytes | None:
        """None: it is not here; it was damaged, and is forgotten now."""

    def drop(self, sample: int) -> None:
        """Forgets it."""

    def complaint(self) -> str:
        """The first reason for which something was not kept; empty: all was."""

    def damaged(self) -> int:
        """Reads that did not find what was published."""

    def stolen(self) -> int:
        """Claims taken over from dead processes."""

    @staticmethod
    def state_of(folder: str | os.PathLike) -> CacheState:
        """FeedError: there is no cache."""

    @staticmethod
    def verify(folder: str | os.PathLike) -> int:
        """Reads and checks every sample, forgets damaged ones: how many were."""

    @staticmethod
    def clear(folder: str | os.PathLike) -> int:
        """Removes it: bytes that were freed. FeedError: somebody uses it."""

class Counter:
    """What a listing has found so far; it can be stopped."""

    def __init__(self) -> None: ...

    @property
    def value(self) -> int:
        """Samples."""

    @value.setter
    def value(self, arg: int, /) -> None: ...

    def stop(self) -> None:
        """The listing ends with FeedError, from any thread."""

class Catalog:
    """
    What a data set holds: its samples in a fixed order. Names are str as of os.fsdecode.
    """

    def __init__(self, groups: Sequence[str], names: Sequence[str], group_of: Sequence[int], sizes: Sequence[int], labels: Sequence[int] | None = None, offsets: Sequence[int] | None = None) -> None:
        """
        What somebody else has listed. sizes: bytes, -1 is unknown. labels: -1 is none; None: the groups, counted without one that is called "". offsets: samples are pieces of files, which the groups name; a sample is then called GROUP:NAME. ValueError.
        """

    def __len__(self) -> int: ...

    def name(self, sample: int) -> str:
        """As a person calls it: PATH, SHARD:KEY or ARRAY[NUMBER]. IndexError."""

    def groups(self) -> list[str]:
        """Folders, shards or arrays, relative to the root."""

    def labels(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """(samples,); -1: none."""

    def group_of(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """(samples,), numbers of groups."""

    def sizes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """(samples,), bytes; -1: not known."""

    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """(samples,), bytes within the file."""

    def fingerprint(self) -> int:
        """
        Of all names, places and groups, not of sizes: the same samples in the same order.
        """

    def cache_key(self) -> int:
        """
        Of the fingerprint and the sizes and times of shards and arrays: what a cache is for.
        """

    def still_holds(self, root: str | os.PathLike, threads: int = 32) -> bool:
        """
        Nothing was added, removed or renamed in any folder, no shard and no array written. False also where that cannot be told.
        """

    def serialized(self) -> bytes:
        """To be kept, and given to parse()."""

    @staticmethod
    def list_folder(root: str | os.PathLike, threads: int = 32, found: Counter | None = None) -> Catalog:
        """
        Every file of every folder, in byte order of the paths; hidden ones left out. FeedError: no such folder, one that cannot be listed, no samples.
        """

    @staticmethod
    def list_tars(root: str | os.PathLike, shards: Sequence[str], member: str = '', threads: int = 8, found: Counter | None = None) -> Catalog:
        """
        The samples of tar shards of WebDataset's layout, by their headers. member: which is the sample, such as "jpg"; empty: the first that is no cls, json, txt. FeedError: a shard is no tar, compressed, truncated, damaged; no samples.
        """

    @staticmethod
    def list_records(root: str | os.PathLike, arrays: Sequence[str], header_bytes: int, record_bytes: int) -> Catalog:
        """
        Pieces of equal size, after a header, of arrays; what is left over is not used. FeedError: an array cannot be read, none holds a whole record.
        """

    @staticmethod
    def parse(data: bytes) -> Catalog | None:
        """
        The way back from serialized(); None: these bytes are not whole, or not ours.
        """

class Files:
    """The samples of a catalog below a root that is mounted here."""

    def __init__(self, root: str | os.PathLike, catalog: Catalog) -> None:
        """FeedError: no such folder."""

    def read(self, sample: int) -> bytes:
        """One sample, for a look at it. SampleError, IndexError."""

def instruction_sets() -> list[str]:
    """The vector instruction sets that CPU and system allow, narrow first."""

def compiler() -> str:
    """The compiler that built this module, with its version."""
