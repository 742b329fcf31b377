"""Stress test of the feed: reads training data for long, while everything that can fail does.

`python tools/soak.py [--seconds 600] [--folder DIR] [--seed N] [--processes 3]`
Processes feed a folder, tar shards and a token array over one cache that holds half of each, epoch
after epoch, and compare every byte. Meanwhile they are killed (SIGKILL) at random moments and
restarted, files are changed, removed, restored and added, shards and the array are rewritten, and
bytes of the cache are flipped. One process is never killed: its memory, descriptors and threads
when no feed is open must not grow. The caches must stay within their limits, and at the end all
samples read from them must be correct. Progress goes to stderr, one JSON object to stdout; exit 1
if a check failed.
"""

import argparse
import contextlib
import gc
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import flowos as fo

FOLDERS, EACH = 10, 100
SHARDS, MEMBERS = 4, 100
ROWS, LENGTH, STRIDE = 2000, 256, 1 << 16
SOURCES = ("folder", "shards", "tokens.npy")
CACHE_BYTES = {"folder": 5 << 20, "shards": 2 << 20, "tokens.npy": 4 << 20}
GROWTH_BYTES = 6 << 20
ENDING_THREADS = 2  # those that decoded may take a moment
LOOKS_SECONDS = 5.0
STATS = ("source_samples", "cache_samples", "skipped", "damaged", "stolen")
COUNTED = ("epochs", "samples", *STATS)
NAMES = re.compile(r"\S*/\S+|\d+")  # what differs from line to line


# -- the data: every sample says by itself whether it is whole


def content(name: str, version: int) -> bytes:
    """Up to 20 KB that say which sample they are, and of which version."""
    digest = hashlib.sha256(f"{name} {version}".encode()).digest()
    body = (digest * 640)[: int.from_bytes(digest[:2], "little") % 20_000]
    return f"{name}\n{version}\n".encode() + body


def is_whole(data: bytes, name: str) -> bool:
    """name: as it should be; empty: any."""
    its_name, version, _ = data.split(b"\n", 2)
    return data == content(its_name.decode(), int(version)) and name in ("", its_name.decode())


def rows_of(version: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    begins = (np.arange(ROWS, dtype=np.int64) + version * ROWS) * STRIDE
    return begins[:, None] + np.arange(LENGTH)


def put(path: Path, data: bytes) -> None:
    """At once, as whoever changes data that others read should."""
    part = path.with_name(f".{path.name}")
    part.write_bytes(data)
    part.rename(path)


@dataclass
class World:
    """The sources, and what is done to them."""

    root: Path
    chance: random.Random
    version: int = 0
    gone: list[Path] = field(default_factory=list)

    def make(self) -> None:
        for number in range(FOLDERS):
            (self.root / "folder" / f"c{number}").mkdir(parents=True)
            for each in range(EACH):
                self._write(self.root / "folder" / f"c{number}" / f"{each:04}.bin")
        (self.root / "shards").mkdir()
        for number in range(SHARDS):
            self._write_shard(number)
        self._write_tokens()

    def change(self) -> str:
        """Something happens to the data; what."""
        self.version += 1
        actions = {
            "rewritten": (self._rewrite, 20),
            "removed": (self._remove, 4),
            "restored": (self.restore, 4),
            "added": (self._add, 1),
            "shard": (lambda: self._write_shard(self.chance.randrange(SHARDS)), 1),
            "tokens": (self._write_tokens, 1),
        }
        weights = [weight for _, weight in actions.values()]
        (action,) = self.chance.choices(list(actions), weights)
        actions[action][0]()
        return action

    def restore(self) -> None:
        while self.gone:
            self._write(self.gone.pop())

    def _write(self, path: Path) -> None:
        put(path, content(str(path.relative_to(self.root / "folder")), self.version))

    def _some_file(self) -> Path:
        return self.chance.choice(sorted((self.root / "folder").rglob("*.bin")))

    def _rewrite(self) -> None:
        self._write(self._some_file())

    def _remove(self) -> None:
        if len(self.gone) < 20:
            self.gone.append(self._some_file())
            self.gone[-1].unlink()

    def _add(self) -> None:
        self._write(self.root / "folder" / "c0" / f"new{self.version}.bin")

    def _write_shard(self, number: int) -> None:
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w") as tar:
            for member in range(MEMBERS):
                info = tarfile.TarInfo(f"{member:04}.bin")
                data = content(f"{number}.tar:{member:04}", self.version)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        put(self.root / "shards" / f"{number}.tar", held.getvalue())

    def _write_tokens(self) -> None:
        held = io.BytesIO()
        np.save(held, rows_of(self.version))
        put(self.root / "tokens.npy", held.getvalue())


def flip_a_byte(cache: Path, chance: random.Random) -> None:
    segments = sorted(cache.glob("*/samples/*.seg"))
    with contextlib.suppress(OSError, IndexError):
        segment = chance.choice(segments)
        with segment.open("r+b", buffering=0) as file:
            at = chance.randrange(max(1, segment.stat().st_size))
            byte = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([byte[0] ^ 0x10]), at)


# -- a process that feeds


def feed_on(root: Path, seed: int) -> None:
    """Until it is killed: a line of JSON after each feed that was made, used and closed."""
    warnings.simplefilter("ignore")  # that not all is kept is what the small cache is for
    chance, parent = random.Random(seed), os.getppid()
    while os.getppid() == parent:
        source = chance.choice(SOURCES)
        report: dict[str, object] = {"source": source}
        try:
            report |= visit(root, source, chance)
        except fo.FeedError as why:
            report["refused"] = str(why)
        gc.collect()
        print(json.dumps(report | held_now()), flush=True)


def visit(root: Path, source: str, chance: random.Random) -> dict[str, object]:
    """Some epochs. Raises AssertionError if a sample is not what it should be."""
    decode = chance.choice([None, bytes]) if source != "tokens.npy" else None
    samples, epochs = 0, chance.randint(1, 4)
    with fo.Feed(
        root / source,
        root / "cache",
        batch_size=chance.choice([8, 32, 100]),
        seed=chance.randrange(3),
        decode=decode,
        on_error="skip",
        max_skipped=1 << 40,
        cache_bytes=CACHE_BYTES[source],
        memory_bytes=4 << 20,
    ) as feed:
        for epoch in range(epochs):
            had: list[int] = []
            for batch, _ in feed.epoch(epoch):
                samples += len(batch)
                had += check(feed, source, batch, decode)
            assert len(had) == len(set(had)), f"samples came twice in epoch {epoch}"
    stats = feed.stats()
    counts = {name: getattr(stats, name) for name in STATS}
    return {"epochs": epochs, "samples": samples, "complaint": stats.complaint} | counts


def check(feed: fo.Feed, source: str, batch: Any, decode: object) -> list[int]:
    """Which samples they are, where that can be known. Raises AssertionError if one is wrong."""
    if source == "tokens.npy":
        assert (batch == batch[:, :1] + np.arange(LENGTH)).all(), "rows of the array are torn"
        return [begin // STRIDE % ROWS for begin in batch[:, 0].tolist()]
    indices = [] if decode else batch.indices.tolist()
    names = [""] * len(batch) if decode else [feed.name(index) for index in indices]
    for name, data in zip(names, batch, strict=True):
        assert is_whole(bytes(data), name), f"{name} is not whole: {bytes(data[:60])!r}"
    return indices


def held_now() -> dict[str, int]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "rss_bytes": int(status["VmRSS"].split()[0]) << 10,
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - counted, not used
        "threads": int(status["Threads"]),
    }


# -- what watches them


class Feeding:
    """A process that feeds, and what it has printed."""

    def __init__(self, root: Path, seed: int) -> None:
        words = [sys.executable, __file__, "--feed", str(root), "--seed", str(seed)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.report: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # a line that a kill has cut
                self.report.append(json.loads(line))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stdout:
            self.process.stdout.close()


@dataclass
class Seen:
    """What came of it. counts: of all feeds, and of the harm that was done to them."""

    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    max_cached_bytes: dict[str, int] = field(default_factory=dict)
    held: dict[str, list[int]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def add(self, report: dict[str, Any]) -> None:
        self.counts["feeds"] += 1
        self.counts.update({name: report.get(name, 0) for name in COUNTED})
        for kind in ("refused", "complaint"):
            if report.get(kind):
                line = NAMES.sub("X", report[kind])
                self.said[f"{kind}: {line}"] += 1


def soak(root: Path, seconds: float, processes: int, seed: int) -> Seen:
    chance, seen = random.Random(seed), Seen()
    world = World(root, chance)
    world.make()
    began = time.monotonic()
    numbers = iter(range(seed * 1000, sys.maxsize))
    elder = Feeding(root, next(numbers))
    others = [Feeding(root, next(numbers)) for _ in range(processes)]
    next_look = 0.0
    while seen.seconds < seconds and not seen.broken:
        time.sleep(chance.uniform(0.02, 0.6))
        seen.seconds = time.monotonic() - began
        harm(world, seen)
        if chance.random() < 0.6:
            at = chance.randrange(processes)
            seen.broken += end_of(others[at], seen)
            others[at] = Feeding(root, next(numbers))
        if elder.process.poll() is not None:
            seen.broken.append("the process that nobody killed has ended")
        if seen.seconds >= next_look:
            next_look = seen.seconds + LOOKS_SECONDS
            seen.broken += look_at_caches(root / "cache", seen)
            print(progress(seen, elder), file=sys.stderr, flush=True)
    for one in (*others, elder):
        seen.broken += end_of(one, seen)
    seen.broken += growth(elder, seen)
    world.restore()
    seen.broken += final_check(root, seen)
    return seen


def harm(world: World, seen: Seen) -> None:
    seen.counts[world.change()] += 1
    if world.chance.random() < 0.2:
        seen.counts["flips"] += 1
        flip_a_byte(world.root / "cache", world.chance)


def end_of(feeding: Feeding, seen: Seen) -> list[str]:
    """Killed, unless it has ended by itself, which is wrong."""
    code = feeding.process.poll()
    seen.counts["kills"] += code is None
    feeding.kill()
    for report in feeding.report:
        seen.add(report)
    return [] if code is None else [f"a process ended with {code}; see above"]


def look_at_caches(cache: Path, seen: Seen) -> list[str]:
    too_large = []
    for at in cache.glob("*/source"):
        name, held = Path(at.read_text().strip()).name, 0
        for segment in at.parent.glob("samples/*.seg"):
            with contextlib.suppress(OSError):
                held += segment.stat().st_blocks * 512
        seen.max_cached_bytes[name] = max(held, seen.max_cached_bytes.get(name, 0))
        if held > CACHE_BYTES[name]:
            too_large.append(f"the cache of {name} holds {held} bytes of {CACHE_BYTES[name]}")
    return too_large


def growth(elder: Feeding, seen: Seen) -> list[str]:
    """Of what it held between feeds: the last quarter against the second."""
    quarter = len(elder.report) // 4
    grown = []
    for name, most in (
        ("rss_bytes", GROWTH_BYTES),
        ("descriptors", 0),
        ("threads", ENDING_THREADS),
    ):
        values = [report[name] for report in elder.report]
        begins = range(0, 4 * quarter, quarter or 1)
        seen.held[name] = [max(values[begin : begin + quarter]) for begin in begins]
        if quarter and seen.held[name][3] > seen.held[name][1] + most:
            grown.append(f"{name} grew: {seen.held[name]} by quarters")
    return grown if quarter else ["too short to tell whether anything grows"]


def final_check(root: Path, seen: Seen) -> list[str]:
    """What is damaged is forgotten by one check, and then all is read right, without a loss."""
    words = [sys.executable, "-m", "flowos", "feed", "verify", "--cache", str(root / "cache")]
    subprocess.run(words, capture_output=True, check=False)
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    wrong = [] if again.returncode == 0 else [f"verify: {again.stdout}{again.stderr}"]
    seen.counts["stray_files"] = len(list((root / "cache").glob("*/.*")))
    for source in SOURCES:
        with (
            warnings.catch_warnings(),
            fo.Feed(
                root / source, root / "cache", batch_size=32, cache_bytes=CACHE_BYTES[source]
            ) as feed,
        ):
            warnings.simplefilter("ignore")
            for batch, _ in feed.epoch(0):
                check(feed, source, batch, None)
    return wrong


def progress(seen: Seen, elder: Feeding) -> str:
    held, counts = elder.report[-1] if elder.report else {}, seen.counts
    return (
        f"{seen.seconds:5.0f} s  {counts['kills']} kills, {counts['flips']} flips, "
        f"{sum(t.get('samples', 0) for t in elder.report)} samples by the one that lives, "
        f"{held.get('rss_bytes', 0) >> 20} MiB, {held.get('descriptors', 0)} descriptors, "
        f"{held.get('threads', 0)} threads"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--folder", type=Path, help="where data and cache go (default: TMPDIR)")
    parser.add_argument("--processes", type=int, default=3, help="that are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--feed", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.feed:
        feed_on(args.feed, args.seed)
        return 0
    with tempfile.TemporaryDirectory(prefix="flowos-soak-", dir=args.folder) as folder:
        seen = soak(Path(folder), args.seconds, args.processes, args.seed)
    print(json.dumps({"seed": args.seed, "ok": not seen.broken} | vars(seen)))
    return 1 if seen.broken else 0


if __name__ == "__main__":
    sys.exit(main())
