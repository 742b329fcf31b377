"""One turn of one contestant: its parameters, timing and checks.

Imported by the loaders of all contestants, each with its own Python: standard library only. turn.py
runs it.
"""

import importlib
import json
import os
import random
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

FINE_MARKS, MARK_EVERY = (1, 2, 5, 10, 20), 50


@dataclass(frozen=True, kw_only=True)
class Job:
    """`root`: the folder or s3:// address of the data in the contestant's format. `cache`: an empty
    folder for contestants that cache samples on this node; "": none. `seconds`: maximum time after
    the first batch. `check`: every sample is checked, so the times are not used.
    """

    loader: str
    root: str
    listed: str
    decoded: bool = False
    workers: int = 1
    options: dict[str, str] = field(default_factory=dict)
    batches: int = 1000
    batch_size: int = 32
    seconds: float = 180.0
    cache: str = ""
    seed: int = 0
    check: bool = False

    def names(self) -> list[str]:
        """Names of all files in the list, which is read before the clock starts."""
        return [line.partition("\t")[0] for line in Path(self.listed).read_text().splitlines()]

    def paths(self) -> list[str]:
        return [f"{self.root}/{name}" for name in self.names()]

    def endless_order(self, count: int) -> Iterator[int]:
        """Every number below `count`, shuffled anew for each epoch."""
        shuffles = random.Random(self.seed)
        order = list(range(count))
        while True:
            shuffles.shuffle(order)
            yield from order


class Loader(Protocol):
    """A contestant's module. `open_batches` is called before the clock starts, to import and read
    lists; the function that it returns is called after, and yields batches without end."""

    def open_batches(self, job: Job) -> Callable[[], Iterator[Any]]: ...


@dataclass(frozen=True)
class Packed:
    """A batch as one buffer, its samples one after another."""

    data: Any
    lengths: Any


def length_of(batch: Any) -> int:
    """Number of samples in a batch."""
    return len(batch.lengths if isinstance(batch, Packed) else batch)


def pieces_of(batch: Any) -> Iterable[Any]:
    """The bytes of each sample: a batch is a sequence of them, or one buffer and their lengths."""
    if not isinstance(batch, Packed):
        yield from batch
        return
    view, start = memoryview(batch.data), 0
    for length in batch.lengths:
        yield view[start : start + int(length)]
        start += int(length)


class Checks:
    """Compares delivered samples with the list: same bytes, in any order."""

    def __init__(self, job: Job) -> None:
        lines = (line.split("\t") for line in Path(job.listed).read_text().splitlines())
        self.known = {(int(size), int(crc, 16)) for _, size, crc in lines}
        self.seen: set[tuple[int, int]] = set()
        self.repeated_early = self.unknown = self.delivered = 0
        self.level = 0.0
        self.decoded = job.decoded

    def take(self, batch: Any) -> None:
        if self.decoded:
            self._take_pixels(batch)
            return
        for piece in pieces_of(batch):
            found = len(piece), zlib.crc32(piece)
            self.delivered += 1
            if found not in self.known:
                self.unknown += 1
            elif found in self.seen:
                self.repeated_early += len(self.seen) < len(self.known)
            self.seen.add(found)

    def _take_pixels(self, batch: Any) -> None:
        import numpy

        pixels = numpy.asarray(batch)
        height_and_width = pixels.shape[1:3] if pixels.shape[3] == 3 else pixels.shape[2:4]
        if pixels.dtype != numpy.uint8 or height_and_width != (224, 224):
            raise SystemExit(f"pictures of {pixels.dtype} {pixels.shape[1:]}, not 224 x 224 uint8")
        self.delivered += len(pixels)
        self.level += float(pixels.mean(dtype=numpy.float64)) * len(pixels)

    def summary(self) -> dict[str, Any]:
        if self.decoded:
            return {"delivered": self.delivered, "mean_level": self.level / self.delivered}
        return {
            "delivered": self.delivered,
            "distinct": len(self.seen),
            "of": len(self.known),
            "unknown": self.unknown,
            "repeated_within_epoch": self.repeated_early,
            "checksum": sum(crc for _, crc in self.seen),
        }


def run(job: Job) -> dict[str, Any]:
    """Run the turn. Time includes creating the contestant's own objects."""
    loader: Loader = importlib.import_module(f"loader_{job.loader}")
    start = loader.open_batches(job)
    checks = Checks(job) if job.check else None
    marks: list[tuple[int, float]] = []
    batches = samples = 0
    cpu_before = _cpu_seconds()
    own_cpu = 0.0
    began = now = time.perf_counter()
    for batch in start():
        now = time.perf_counter()
        batches += 1
        samples += length_of(batch)
        if batches in FINE_MARKS or batches % MARK_EVERY == 0:
            marks.append((batches, now - began))
        if batches == 1:
            own_cpu = time.thread_time()
        if checks is not None:
            checks.take(batch)
        if batches == job.batches or now - began - marks[0][1] > job.seconds:
            break
    own_cpu = time.thread_time() - own_cpu
    if batches == 0:
        raise SystemExit("it gave no batch")
    if marks[-1][0] != batches:
        marks.append((batches, now - began))
    return {
        "batches": batches,
        "samples": samples,
        "seconds": now - began,
        "marks": marks,
        "cpu_seconds": _cpu_seconds() - cpu_before,
        "consumer_cpu_seconds": own_cpu,
        "checks": None if checks is None else checks.summary(),
        "more": getattr(loader, "summary", dict)(),
    }


def _cpu_seconds() -> float:
    """CPU time of all processes of this session, which is the contestant's, ended ones included."""
    session, ticks = os.getsid(0), 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def described(job: Job) -> str:
    return json.dumps(asdict(job))
