"""The compiled half of FlowOS."""

from collections.abc import Callable, Sequence
import os
from typing import Annotated, Any

import numpy
import numpy.typing
from numpy.typing import NDArray
from typing_extensions import Buffer


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

    def __init__(self, folder: str | os.PathLike, fingerprint: int, samples: int, max_bytes: int = 0, min_free_bytes: int = 1073741824, segment_bytes: int = 268435456, neighbours: str | os.PathLike = '') -> None:
        """
        Attaches, and makes it where it is not there. neighbours: a folder of other caches, of which unused ones are removed where there is no room. Raises FeedError if it cannot be had here.
        """

    def has(self, sample: int) -> bool:
        """It is here."""

    def bytes_of(self, sample: int) -> bytes | None:
        """None: it is not here; it was damaged, and is forgotten now."""

    def offer(self, sample: int, data: Buffer) -> bool:
        """
        Bytes of it that were at hand anyway. False: there is no room for more.
        """

    def drop(self, sample: int) -> None:
        """Forgets it."""

    def complaint(self) -> str:
        """The first reason for which something was not kept; empty: all was."""

    def damaged(self) -> int:
        """Reads that did not find what was published."""

    def stolen(self) -> int:
        """Claims taken over from dead processes."""

    def evicted_bytes(self) -> int:
        """Of other data sets, removed to make room for this one."""

    @staticmethod
    def state_of(folder: str | os.PathLike) -> CacheState:
        """FeedError: there is no cache."""

    @staticmethod
    def verify(folder: str | os.PathLike, done: Counter | None = None) -> int:
        """
        Reads and checks every sample, forgets damaged ones: how many were. done counts samples of the data set meanwhile.
        """

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

class Early:
    """Reads files while the folder that they lie in is still being listed."""

    def __init__(self, root: str | os.PathLike, threads: int, max_bytes: int) -> None:
        """Holds at most so many bytes, in memory. FeedError: no such folder."""

    def keep(self, catalog: Catalog, cache: Cache) -> None:
        """
        What was read goes into the cache of this catalog's samples; nothing more is read.
        """

    def end(self) -> None:
        """Nothing more is read; what was is forgotten."""

    @property
    def bytes(self) -> int:
        """Read of the source, in all."""

    @property
    def samples(self) -> int:
        """Read of the source, in all."""

class Catalog:
    """
    What a data set holds: its samples in a fixed order. Names are str as of os.fsdecode.
    """

    def __init__(self, groups: Sequence[str], names: Sequence[str], group_of: Sequence[int], sizes: Sequence[int], labels: Sequence[int] | None = None, offsets: Sequence[int] | None = None, classes: Sequence[str] = []) -> None:
        """
        What somebody else has listed. sizes: bytes, -1 is unknown. labels: NO_LABEL is none. classes: the names that labels number, if they have any. offsets: samples are pieces of files, which the groups name; a sample is then called GROUP:NAME. ValueError.
        """

    def __len__(self) -> int: ...

    def name(self, sample: int) -> str:
        """As a person calls it: PATH, SHARD:KEY or ARRAY[NUMBER]. IndexError."""

    @property
    def kind(self) -> str:
        """folder, tars, records or named."""

    def groups(self) -> list[str]:
        """Folders, shards or arrays, relative to the root."""

    def folders(self) -> list[str]:
        """Of a folder, all below it and itself, also such without samples."""

    def labels(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))] | None:
        """(samples,), NO_LABEL: none; None: nobody gave any."""

    def classes(self) -> list[str]:
        """The names that labels number; empty: they are numbers by themselves."""

    def ends_in(self, endings: Sequence[str]) -> NDArray[numpy.bool_]:
        """
        (samples,), whether each name ends in a dot and one of these, which are lower case.
        """

    def only(self, samples: NDArray[numpy.bool_]) -> Catalog:
        """A catalog of those where this (samples,) is true."""

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

    NO_LABEL: int = -9223372036854775808

    @staticmethod
    def list_folder(root: str | os.PathLike, threads: int = 32, found: Counter | None = None, early: Early | None = None) -> Catalog:
        """
        Every file of every folder, in byte order of the paths; hidden ones left out. early: reads them meanwhile. FeedError: no such folder, one that cannot be listed, no samples.
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

class ImageSettings:
    """Which part of a picture becomes which array."""

    def __init__(self, *, height: int, width: int, crop: str, centre_share: float, area: Sequence[float], aspect: Sequence[float], flip: bool, channels_first: bool, normalised: bool, mean: Sequence[float], deviation: Sequence[float], seed: int) -> None:
        """As of decoder.h; crop: centre, random, none."""

class Decoder:
    """Turns the bytes of samples into arrays of one size."""

    @property
    def size(self) -> int:
        """Bytes that every decoded sample takes."""

    def decode(self, data: Buffer, epoch: int, sample: int, into: numpy.typing.NDArray[numpy.uint8]) -> None:
        """SampleError: what is wrong with these bytes."""

def jpeg_decoder(settings: ImageSettings) -> Decoder:
    """FeedError: this build has no libjpeg-turbo."""

def fit_pixels(settings: ImageSettings, pixels: numpy.typing.NDArray[numpy.uint8], epoch: int, sample: int, into: numpy.typing.NDArray[numpy.uint8]) -> None:
    """
    Crops and resizes a picture (height, width, 3) that something else decoded.
    """

class Batch:
    """
    A minibatch. Its memory is used again when it and all arrays of it are gone.
    """

    @property
    def epoch(self) -> int: ...

    @property
    def number(self) -> int:
        """Of this rank, since the last seek."""

    @property
    def samples(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)]:
        """Which they are: int64, (n,)."""

    @property
    def offsets(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)]:
        """Where each begins in the data, in bytes: int64, (n,)."""

    @property
    def lengths(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)]:
        """Bytes of each: int64, (n,)."""

    @property
    def data(self) -> numpy.typing.NDArray[numpy.uint8]:
        """
        The used bytes, without a copy: uint8, (bytes,). Read-only where the cache may still be filled from it.
        """

class Labels:
    """Of all samples of a data set."""

    def __init__(self, values: numpy.typing.NDArray[Any]) -> None:
        """int64 or float64, (samples,). ValueError."""

    def of(self, batch: Batch) -> numpy.typing.NDArray[Any]:
        """Those of its samples: an array of its own, of the same dtype, (n,)."""

class PeerSettings:
    """How the nodes of a run give each other what they have cached."""

    def __init__(self, nodes: Sequence[str], node: int, secret: str, node_of_rank: Sequence[int] = [], timeout_seconds: float = 2.0, rest_seconds: float = 10.0) -> None:
        """
        nodes: HOST:PORT of each, where it listens. node: which is ours. node_of_rank: empty is rank by rank.
        """

class FeederStats:
    """What a feeder has done, and what it does now."""

    @property
    def source_bytes(self) -> int: ...

    @property
    def cache_bytes(self) -> int: ...

    @property
    def peer_bytes(self) -> int: ...

    @property
    def source_samples(self) -> int: ...

    @property
    def cache_samples(self) -> int: ...

    @property
    def peer_samples(self) -> int: ...

    @property
    def batches(self) -> int:
        """Handed over."""

    @property
    def waits(self) -> int:
        """Batches that were not ready when asked for."""

    @property
    def waited_seconds(self) -> float:
        """By the consumer, in all."""

    @property
    def skipped(self) -> int: ...

    @property
    def replaced(self) -> int: ...

    @property
    def damaged(self) -> int:
        """Cached samples that were not what was published."""

    @property
    def stolen(self) -> int:
        """Claims taken over from dead processes."""

    @property
    def in_flight(self) -> int:
        """Reads of the source under way now."""

    @property
    def depth(self) -> int:
        """How many of these feedback allows."""

    @property
    def ready(self) -> int:
        """Batches that wait to be taken."""

    @property
    def complaint(self) -> str:
        """Of the cache; empty: none."""

class Feeder:
    """Batches in the order's order, read ahead in threads of its own."""

    def __init__(self, catalog: Catalog, files: Files | None, cache: Cache | None, decoder: Decoder | None, *, batch_size: int, rank: int = 0, world_size: int = 1, last: str = 'keep', seed: int = 0, shuffle: bool = True, record_bytes: int = 0, memory_bytes: int = 1073741824, max_in_flight: int = 256, epochs_ahead: int = 1, on_error: str = 'error', max_skipped: int = 1000, peers: PeerSettings | None = None) -> None:
        """
        files: None where others pull tickets and push bytes. epochs_ahead: so many are read ahead after the one that was sought.
        """

    def seek(self, epoch: int, start: int) -> None:
        """
        What next() gives from here on. It is free where that comes next anyway.
        """

    def next(self) -> Batch | None:
        """
        Waits. None: the epoch is at its end, or this is closed. SampleError, FeedError.
        """

    def close(self) -> None:
        """Ends all threads, and the waits of others."""

    def closed(self) -> bool:
        """Whether pull() would give nothing any more."""

    def stats(self) -> FeederStats: ...

    def batches(self, start: int) -> int:
        """How many batches an epoch has from this position on."""

    def start_after(self, start: int, batches: int) -> int:
        """
        The position where an epoch goes on after so many batches of all ranks.
        """

    def pull(self, most: int) -> list[tuple[int, int]]:
        """
        Waits for samples that are to be fetched: (id, sample). Empty: this is closed.
        """

    def push(self, id: int, data: Buffer) -> None:
        """The bytes of what was pulled."""

    def fail(self, id: int, why: str) -> None:
        """What was pulled cannot be had."""

class SolverInfo:
    """How an iteration went."""

    @property
    def reason(self) -> str: ...

    @property
    def iterations(self) -> int: ...

    @property
    def residual(self) -> float:
        """||b - A x|| / ||b|| in fp64."""

    @property
    def solved_residual(self) -> float:
        """That of b less its mean, where a nullspace is taken out."""

    @property
    def precision(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    @property
    def fp64_updates(self) -> int: ...

class SolverSetup:
    """Statistics of the set-up; see solver.h."""

    @property
    def blocks(self) -> str: ...

    @property
    def block_rows(self) -> int: ...

    @property
    def colours(self) -> int: ...

    @property
    def levels(self) -> int: ...

    @property
    def relax(self) -> float: ...

    @property
    def shift(self) -> float: ...

    @property
    def eisenstat(self) -> bool: ...

    @property
    def fill(self) -> float: ...

    @property
    def bytes_per_iteration(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def order_seconds(self) -> float: ...

    @property
    def factor_seconds(self) -> float: ...

    @property
    def store_seconds(self) -> float: ...

    @property
    def coarse_seconds(self) -> float: ...

class SolverSettings:
    """What may be chosen; see solver.h."""

    def __init__(self, *, block_rows: int = 0, colours: int = 0, relax: float = -1.0, precision: str = 'auto', coarse: str = 'auto', nullspace: str = 'none', threads: int = 0) -> None: ...

class Solver:
    """A factored matrix, whose arrays are looked at where they lie."""

    def __init__(self, starts: NDArray[numpy.int32] | NDArray[numpy.int64], columns: NDArray[numpy.int32] | NDArray[numpy.int64], values: NDArray[numpy.float64], settings: SolverSettings) -> None:
        """SolveError: the matrix cannot be solved with."""

    @property
    def setup(self) -> SolverSetup: ...

    def solve(self, b: NDArray[numpy.float64], x: NDArray[numpy.float64], rtol: float, atol: float, max_iterations: int, callback: Callable[[int, float], object] | None) -> SolverInfo:
        """x: where to begin, and the answer. Not by several threads at once."""

    def precondition(self, r: NDArray[numpy.float64], z: NDArray[numpy.float64]) -> None:
        """z = M^-1 r."""

class Matrix:
    """Compressed sparse rows; its arrays keep it."""

    @property
    def starts(self) -> NDArray[numpy.int32]: ...

    @property
    def columns(self) -> NDArray[numpy.int32]: ...

    @property
    def values(self) -> NDArray[numpy.float64]: ...

def parse_matrix_market(text: Buffer, threads: int = 0) -> Matrix:
    """
    Of a Matrix Market file that is not compressed. SolveError: "line N: what is wrong".
    """

def from_lower(starts: NDArray[numpy.int32] | NDArray[numpy.int64], columns: NDArray[numpy.int32] | NDArray[numpy.int64], values: NDArray[numpy.float64]) -> Matrix:
    """The matrix whose lower triangle this is. SolveError: it is no matrix."""

def symmetrized(starts: NDArray[numpy.int32] | NDArray[numpy.int64], columns: NDArray[numpy.int32] | NDArray[numpy.int64], values: NDArray[numpy.float64]) -> Matrix:
    """(A + A') / 2. SolveError: it is no matrix."""

def poisson(x: int, y: int, z: int) -> Matrix:
    """-div grad by 7 points, 6 and -1, zero around; x moves fastest."""

def g3like(seed: int) -> Matrix:
    """A power grid of 1 585 478 nodes; the same for the same seed."""
