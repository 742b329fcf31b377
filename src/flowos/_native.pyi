"""The compiled half of FlowOS."""

from collections.abc import Callable, Sequence
import os
from typing import Annotated, Any

import numpy
import numpy.typing
from numpy.typing import NDArray
from typing_extensions import Buffer


class CacheState:
    """State of a cache, read without attaching to it."""

    @property
    def samples(self) -> int:
        """Samples of the data set."""

    @property
    def cached(self) -> int:
        """How many of them are cached here."""

    @property
    def bytes(self) -> int:
        """Bytes that they take."""

    @property
    def unverified(self) -> int:
        """Written before the last start of the machine, not read since."""

    @property
    def processes(self) -> int:
        """Processes that are attached now."""

class Cache:
    """Samples on the storage of this node, shared by its processes."""

    def __init__(self, folder: str | os.PathLike, fingerprint: int, samples: int, max_bytes: int = 0, min_free_bytes: int = 1073741824, segment_bytes: int = 268435456, neighbours: str | os.PathLike = '') -> None:
        """
        Attaches to a cache, creating it if there is none. neighbours: a folder of other caches; unused ones are removed if there is no room. Raises FeedError if it cannot be attached or created.
        """

    def has(self, sample: int) -> bool:
        """Whether the sample is cached."""

    def bytes_of(self, sample: int) -> bytes | None:
        """The bytes of a sample; None if it is not cached, or was damaged and is dropped now."""

    def offer(self, sample: int, data: Buffer) -> bool:
        """
        Stores the bytes of a sample; False if there is no room for more.
        """

    def drop(self, sample: int) -> None:
        """Removes a sample."""

    def complaint(self) -> str:
        """Why the first sample that is not stored was not; empty if all were."""

    def damaged(self) -> int:
        """Reads that found other bytes than were stored."""

    def stolen(self) -> int:
        """Claims taken over from dead processes."""

    def evicted_bytes(self) -> int:
        """Bytes of other data sets that were removed to make room for this one."""

    def replaced(self) -> int:
        """Samples of another list that were removed when this process attached."""

    @staticmethod
    def evict_oldest(neighbours: str, mine: str) -> int:
        """Removes the neighbour unused for longest; the bytes freed, 0 if there is none."""

    @staticmethod
    def state_of(folder: str | os.PathLike) -> CacheState:
        """Raises FeedError if there is no cache."""

    @staticmethod
    def verify(folder: str | os.PathLike, done: Counter | None = None) -> int:
        """
        Reads and checks every sample, removes damaged ones, and returns their number. done counts the checked samples meanwhile.
        """

    @staticmethod
    def clear(folder: str | os.PathLike) -> int:
        """Removes a cache and returns the freed bytes. Raises FeedError if a process uses it."""

class Counter:
    """What a listing has found so far; it can be stopped."""

    def __init__(self) -> None: ...

    @property
    def value(self) -> int:
        """Samples."""

    @value.setter
    def value(self, arg: int, /) -> None: ...

    def stop(self) -> None:
        """Ends the listing with FeedError; may be called from any thread."""

class FolderPrefetcher:
    """Reads files while the folder that they lie in is still being listed."""

    def __init__(self, root: str | os.PathLike, threads: int, max_bytes: int) -> None:
        """Holds at most so many bytes in memory. Raises FeedError if there is no such folder."""

    def keep(self, catalog: Catalog, cache: Cache) -> None:
        """
        Writes what was read into the cache of this catalog's samples; nothing more is read.
        """

    def end(self) -> None:
        """Stops reading and frees what was read."""

    @property
    def bytes(self) -> int:
        """Read from the source, in all."""

    @property
    def samples(self) -> int:
        """Read from the source, in all."""

class Catalog:
    """
    What a data set holds: its samples in a fixed order. Names are str as of os.fsdecode.
    """

    def __init__(self, groups: Sequence[str], names: Sequence[str], group_of: Sequence[int], sizes: Sequence[int], labels: Sequence[int] | None = None, offsets: Sequence[int] | None = None, classes: Sequence[str] = [], state: str = '') -> None:
        """
        A catalog of given samples. sizes: bytes, -1 is unknown. labels: NO_LABEL is none. classes: the names of labels. offsets: samples are pieces of the files that the groups name, and called GROUP:NAME. state: another one when bytes of any of them are; it goes into the cache key. Raises ValueError if lengths or numbers do not fit.
        """

    def __len__(self) -> int: ...

    def name(self, sample: int) -> str:
        """Its name: PATH, SHARD:KEY or ARRAY[NUMBER]. Raises IndexError."""

    @property
    def kind(self) -> str:
        """folder, tars, arrays or named."""

    def groups(self) -> list[str]:
        """Folders, shards or arrays, relative to the root."""

    def folders(self) -> list[str]:
        """Of a folder: itself and all below it, also those without samples."""

    def labels(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))] | None:
        """(samples,), NO_LABEL for a sample without one; None if no labels were given."""

    def classes(self) -> list[str]:
        """The names of the classes that labels number; empty if labels are plain numbers."""

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
        Of the fingerprint and the sizes and times of shards and arrays.
        """

    def drop_replaced(self, before: Catalog, listed_ns: int, root: str | os.PathLike, cache: Cache, threads: int = 32) -> bool:
        """
        Removes from its cache what may be another sample than in a catalog of the same folder from before, listed then. False: some of it cannot be removed.
        """

    def still_holds(self, root: str | os.PathLike, threads: int = 32) -> bool:
        """
        Nothing was added, removed or renamed in any folder, no shard and no array written. False also if that cannot be determined.
        """

    def serialized(self) -> bytes:
        """As bytes, for parse()."""

    NO_LABEL: int = -9223372036854775808

    @staticmethod
    def list_folder(root: str | os.PathLike, threads: int = 32, found: Counter | None = None, prefetcher: FolderPrefetcher | None = None) -> Catalog:
        """
        Every file of every folder, in byte order of the paths; hidden ones left out. prefetcher: reads them meanwhile. Raises FeedError if a folder does not exist or cannot be listed, or if there are no samples.
        """

    @staticmethod
    def list_tars(root: str | os.PathLike, shards: Sequence[str], member: str = '', threads: int = 8, found: Counter | None = None) -> Catalog:
        """
        The samples of tar shards of WebDataset's layout, by their headers. member: which is the sample, such as "jpg"; empty: the first that is no cls, json, txt. Raises FeedError if a shard is no tar, compressed, truncated or damaged, or if there are no samples.
        """

    @staticmethod
    def list_arrays(root: str | os.PathLike, arrays: Sequence[str], header_bytes: int, record_bytes: int) -> Catalog:
        """
        Pieces of equal size, after a header, of arrays; what is left over is not used. Raises FeedError if an array cannot be read, or none holds a whole record.
        """

    @staticmethod
    def parse(data: bytes) -> Catalog | None:
        """
        Inverse of serialized(); None if these bytes are incomplete or no catalog.
        """

class Files:
    """The samples of a catalog below a root that is mounted here."""

    def __init__(self, root: str | os.PathLike, catalog: Catalog) -> None:
        """Raises FeedError if there is no such folder."""

    def read(self, sample: int) -> bytes:
        """Its bytes. Raises SampleError if it cannot be read, IndexError if there is none."""

def instruction_sets() -> list[str]:
    """The vector instruction sets that CPU and system allow, narrow first."""

def compiler() -> str:
    """The compiler that built this module, with its version."""

class ImageSettings:
    """Crop, size and scaling of decoded pictures."""

    def __init__(self, *, height: int, width: int, crop: str, centre_share: float, area: Sequence[float], aspect: Sequence[float], flip: bool, channels_first: bool, normalised: bool, mean: Sequence[float], deviation: Sequence[float], seed: int) -> None:
        """As of decoder.h; crop: centre, random, none."""

class Decoder:
    """Decodes the bytes of samples into arrays of one size."""

    @property
    def size(self) -> int:
        """Bytes of a decoded sample."""

    def decode(self, data: Buffer, epoch: int, sample: int, into: numpy.typing.NDArray[numpy.uint8]) -> None:
        """Raises SampleError if these bytes are damaged."""

def jpeg_decoder(settings: ImageSettings) -> Decoder:
    """Raises FeedError if this build has no libjpeg-turbo."""

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
        """Number of this rank's batch since the last seek."""

    @property
    def samples(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', writable=False)]:
        """Numbers of the samples: int64, (n,)."""

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
        """int64 or float64, (samples,). Raises ValueError for other arrays."""

    def of(self, batch: Batch) -> numpy.typing.NDArray[Any]:
        """Labels of the samples of a batch: a new array of the same dtype, (n,)."""

class PeerSettings:
    """How the nodes of a run send each other cached samples."""

    def __init__(self, nodes: Sequence[str], node: int, secret: str, node_of_rank: Sequence[int] = [], timeout_seconds: float = 2.0, rest_seconds: float = 10.0) -> None:
        """
        nodes: HOST:PORT where each listens. node: number of this one. node_of_rank: empty for one rank on each node.
        """

class StageStats:
    """What one stage of a feeder did."""

    @property
    def seconds(self) -> float:
        """Of its samples, summed; those that are under way included."""

    @property
    def working_seconds(self) -> float:
        """Of these, that it kept a thread at work."""

    @property
    def queued_seconds(self) -> float:
        """That samples waited before it, summed."""

    @property
    def samples(self) -> int: ...

    @property
    def bytes(self) -> int:
        """As they came to it."""

class FeederStats:
    """Counters and current state of a feeder."""

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
        """Batches returned by next()."""

    @property
    def waits(self) -> int:
        """Batches that were not ready when next() was called."""

    @property
    def waited_seconds(self) -> float:
        """Seconds that next() waited, in all."""

    @property
    def waited_for_reads_seconds(self) -> float:
        """Of these, while a thread had nothing to do."""

    @property
    def consumer_seconds(self) -> float:
        """Seconds since the first request, but for those that next() waited."""

    @property
    def fetch(self) -> StageStats: ...

    @property
    def decode(self) -> StageStats: ...

    @property
    def cache_write(self) -> StageStats: ...

    @property
    def hand_over(self) -> StageStats: ...

    @property
    def skipped(self) -> int: ...

    @property
    def replaced(self) -> int: ...

    @property
    def damaged(self) -> int:
        """Cached samples that were damaged."""

    @property
    def stolen(self) -> int:
        """Claims taken over from dead processes."""

    @property
    def in_flight(self) -> int:
        """Reads of the source under way now."""

    @property
    def depth(self) -> int:
        """Reads of the source that may be under way at once."""

    @property
    def ready(self) -> int:
        """Batches that are ready."""

    @property
    def complaint(self) -> str:
        """Complaint of the cache; empty if there is none."""

class Feeder:
    """Prefetches batches in sampling order on background threads."""

    def __init__(self, catalog: Catalog, files: Files | None, cache: Cache | None, decoder: Decoder | None, *, batch_size: int, rank: int = 0, world_size: int = 1, last: str = 'keep', seed: int = 0, shuffle: bool = True, record_bytes: int = 0, memory_bytes: int = 1073741824, max_in_flight: int = 256, epochs_ahead: int = 1, on_error: str = 'error', max_skipped: int = 1000, peers: PeerSettings | None = None) -> None:
        """
        files: None if the caller pulls tickets and pushes bytes. epochs_ahead: so many epochs are prefetched after the current one.
        """

    def seek(self, epoch: int, start: int) -> None:
        """
        Sets the position of the next batch. Free if it is the next one anyway.
        """

    def next(self) -> Batch | None:
        """
        Waits for the next batch; None at the end of the epoch, or when closed. Raises SampleError or FeedError if a sample cannot be had.
        """

    def close(self) -> None:
        """Ends all threads and all waiting calls."""

    def closed(self) -> bool:
        """Whether pull() returns nothing any more."""

    def stats(self) -> FeederStats: ...

    def batches(self, start: int) -> int:
        """How many batches an epoch has from this position on."""

    def start_after(self, start: int, batches: int) -> int:
        """
        The position where an epoch goes on after so many batches of all ranks.
        """

    def pull(self, max_tickets: int) -> list[tuple[int, int]]:
        """
        Waits for samples to fetch: (id, sample); empty when closed.
        """

    def push(self, id: int, data: Buffer) -> None:
        """Delivers the bytes of a pulled sample."""

    def fail(self, id: int, why: str) -> None:
        """Reports that a pulled sample cannot be fetched."""

native_call_arguments: int = 32

def native_call(entry: int, inputs: str, equal: Sequence[tuple[tuple[int, int], tuple[int, int]]], lengths: Sequence[tuple[int, int]], outputs: Sequence[tuple[object, Sequence[tuple[int, int]]]], refuse: object, failed: object) -> Any:
    """
    A function that calls what lies at the address `entry` with the values of its inputs, and returns its outputs. inputs: of each a letter, i(nteger), d(ouble), f(loat), a(rray). An extent is (input, axis), (input, -1) for its value, or (-1, size). equal: pairs of extents; where two differ or are below 0, refuse(values) is called, which raises. lengths: extents that are passed. outputs: dtype and shape of each, () for a scalar. failed(code) is called where it does not return 0, and raises.
    """

class SolverInfo:
    """Result of an iteration."""

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

    @property
    def residuals(self) -> tuple[float, ...]:
        """As estimated after each iteration."""

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
    def flops_per_iteration(self) -> int: ...

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
    """Options; see solver.h."""

    def __init__(self, *, block_rows: int = 0, colours: int = 0, relax: float = -1.0, precision: str = 'auto', coarse: str = 'auto', nullspace: str = 'none', threads: int = 0) -> None: ...

class Solver:
    """A factored matrix; its arrays are not copied."""

    def __init__(self, starts: NDArray[numpy.int32] | NDArray[numpy.int64], columns: NDArray[numpy.int32] | NDArray[numpy.int64], values: NDArray[numpy.float64], settings: SolverSettings) -> None:
        """Raises SolveError if the matrix is not suitable."""

    @property
    def setup(self) -> SolverSetup: ...

    def solve(self, b: NDArray[numpy.float64], x: NDArray[numpy.float64], rtol: float, atol: float, max_iterations: int, callback: Callable[[int, float], object] | None) -> SolverInfo:
        """x: initial guess, overwritten by the solution. Not for several threads at once."""

    def precondition(self, r: NDArray[numpy.float64], z: NDArray[numpy.float64]) -> None:
        """z = M^-1 r."""

class Matrix:
    """Compressed sparse rows; its arrays keep it alive."""

    @property
    def starts(self) -> NDArray[numpy.int32]: ...

    @property
    def columns(self) -> NDArray[numpy.int32]: ...

    @property
    def values(self) -> NDArray[numpy.float64]: ...

def parse_matrix_market(text: Buffer, threads: int = 0) -> Matrix:
    """
    Reads an uncompressed Matrix Market file. Raises SolveError with the line if it is invalid.
    """

def from_lower(starts: NDArray[numpy.int32] | NDArray[numpy.int64], columns: NDArray[numpy.int32] | NDArray[numpy.int64], values: NDArray[numpy.float64]) -> Matrix:
    """The symmetric matrix of this lower triangle. Raises SolveError if it is no matrix."""

def symmetrized(starts: NDArray[numpy.int32] | NDArray[numpy.int64], columns: NDArray[numpy.int32] | NDArray[numpy.int64], values: NDArray[numpy.float64]) -> Matrix:
    """(A + A') / 2. Raises SolveError if it is no matrix."""

def poisson(x: int, y: int, z: int) -> Matrix:
    """The 7-point Laplacian, 6 and -1, with zero Dirichlet boundary; x varies fastest."""

def g3like(seed: int) -> Matrix:
    """A power grid of 1 585 478 nodes; the same for the same seed."""
