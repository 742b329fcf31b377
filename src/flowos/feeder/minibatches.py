"""A program that times minibatches: `python -m flowos.feeder.minibatches FOLDER STORAGE READS N`.

FOLDER: where its files and caches are made; they stay there for the next call. STORAGE: `source`
reads the files without a cache, `empty cache` fills one as it reads, `full cache` reads one that is
full. READS: of the source at once. N: minibatches, of 32 files each.
What is read is not in the page cache at the start, where the kernel lets go of it. Prints readings
as measuring programs do, after checking that every byte was delivered, from where it should be:
the time to the first minibatch, to all, and to some between (`elapsed`).
"""

import json
import os
import random
import shutil
import sys
import time
from pathlib import Path

from flowos.feeder._feed import Feed
from flowos.model import FeedError

BATCH_SIZE = 32
MEAN_BYTES = 42_926
"""1.31 MiB a minibatch, as Serizawa and Tatebe assume of ImageNet."""
PAPER_BATCHES = 1000
POINTS = (1, 2, 5, 10, 20, 35, 50, 100, 200, 500, 1000)
"""So many minibatches loaded; in the paper its method is the faster one after the 35th."""


def main(words: list[str]) -> int:
    """Exit code: 1 if what was read is not what was written."""
    folder, storage, reads, batches = words
    source = Path(folder, "flowos-feed")
    try:
        total = _made(source, int(batches) * BATCH_SIZE)
        cache = _cache(Path(folder), source, storage)
        cold = _dropped(source) and (cache is None or _dropped(cache))
        times = _timed(source, cache, int(reads), total, storage)
    except (FeedError, OSError) as error:
        sys.stderr.write(f"minibatches: {error}\n")
        return 1
    notes = {"page_cache": "cold" if cold else "may be warm", "minibatches": batches}
    readings = [
        _reading("first_minibatch", times[0], notes),
        _reading("thousand_minibatches", times[-1] * PAPER_BATCHES / int(batches), notes),
        *(
            {**_reading("elapsed", seconds, notes), "levels": {"loaded": str(loaded)}}
            for loaded, seconds in enumerate(times, 1)
            if loaded in (*POINTS, len(times))
        ),
    ]
    sys.stdout.write(json.dumps({"readings": readings}) + "\n")
    return 0


def _reading(metric: str, seconds: float, notes: dict[str, str]) -> dict[str, object]:
    return {"metric": metric, "unit": "second", "values": [seconds], "notes": notes}


def _made(source: Path, count: int) -> int:
    """The bytes of all files, which are made, of different sizes, if they are not there."""
    sizes = random.Random(0)
    lengths = [sizes.randint(MEAN_BYTES // 2, 3 * MEAN_BYTES // 2) for _ in range(count)]
    complete = source.with_suffix(".complete")
    if not complete.exists() or complete.read_text() != str(count):
        shutil.rmtree(source, ignore_errors=True)
        content = os.urandom(2 * MEAN_BYTES)
        for number, length in enumerate(lengths):
            file = source / f"{number % 100:02d}" / f"{number:06d}"
            file.parent.mkdir(parents=True, exist_ok=True)
            start = number % (2 * MEAN_BYTES - length)
            file.write_bytes(content[start : start + length])
        os.sync()
        complete.write_text(str(count))
    return sum(lengths)


def _cache(folder: Path, source: Path, storage: str) -> Path | None:
    if storage == "source":
        return None
    cache = folder / f"flowos-{storage.replace(' ', '-')}"
    if storage == "empty cache":
        shutil.rmtree(cache, ignore_errors=True)
    elif not cache.exists():
        with Feed(source, cache, batch_size=BATCH_SIZE, labels=None) as feed:
            for _ in feed.epoch(0):
                pass
        os.sync()
    return cache


def _dropped(folder: Path) -> bool:
    """Let go of the files' pages in memory; False if the kernel refuses."""
    try:
        for file in folder.rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        return False
    return True


def _timed(source: Path, cache: Path | None, reads: int, total: int, storage: str) -> list[float]:
    """Seconds to each minibatch. Raises FeedError if not all were read."""
    seen, times = 0, list[float]()
    began = time.perf_counter()
    with Feed(source, cache, batch_size=BATCH_SIZE, labels=None, max_in_flight=reads) as feed:
        for samples, _ in feed.epoch(0):
            seen += int(samples.lengths.sum())
            times.append(time.perf_counter() - began)
        times[-1:] = [time.perf_counter() - began]  # with the end of the epoch
        stats = feed.stats()
    if seen != total:
        raise FeedError(f"{seen} bytes were read of {total}")
    if stats.complaint or (storage == "full cache" and stats.source_samples):
        raise FeedError(stats.complaint or f"{stats.source_samples} samples were not in the cache")
    return times


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
