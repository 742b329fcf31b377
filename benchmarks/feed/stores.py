"""The storages that samples are read from: remote files, remote objects, this machine's own disk.

Each is a context manager that yields a Source, and removes everything again: mounts, servers,
unnamed network namespaces. If this process is killed, they end as well.
"""

import http.client
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pictures import DataSet
from places import NotHere, program

READ_AHEAD_KIB = 4096
"""As of clients of remote storage, more than the kernel's 128: it helps loaders of shards."""
START_SECONDS, END_SECONDS, UNMOUNT_SECONDS = 10.0, 5.0, 2.0
WARM_SECONDS = 60.0
BULK_BYTES = 1 << 27
PORT = 9000
BURST, QUEUE = "128kb", "8mb"

_numbers = itertools.count(os.getpid() % 50 * 5)


@dataclass(frozen=True)
class Source:
    """`root`: of all formats of the data set: a folder, or s3://bucket. `variables`: environment
    variables to read it. `counts`: traffic of the link so far; None if unknown.
    """

    root: str
    variables: dict[str, str] = field(default_factory=dict)
    server: "Server | None" = None
    shaped_by: str = ""

    def bytes_sent(self) -> int | None:
        return self.server.counts()["bytes"] if self.server else None


class Server:
    """A program of ours that serves until its standard input ends."""

    def __init__(self, words: Sequence[str | Path]) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self._line()
        if not line:
            self.process.wait()
            said = self.process.stderr.read().strip() if self.process.stderr else ""
            raise NotHere(said.splitlines()[-1] if said else f"{words[0]} ended at once")
        self.said: dict[str, int] = json.loads(line)

    def _line(self) -> str:
        return self.process.stdout.readline() if self.process.stdout else ""

    def counts(self) -> dict[str, int]:
        if self.process.stdin is None:
            return {}
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        found: dict[str, int] = json.loads(self._line())
        return found

    def end(self) -> None:
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def far_files(
    data: DataSet, folder: Path, round_trip_ms: float, mbit: float, keep_pages: bool = False
) -> Iterator[Source]:
    """The data set's folder, mounted as if remote.

    keep_pages: data that was read stays in the page cache of this mount. Raises NotHere without
    FUSE.
    """
    mount = folder / "mounts" / str(os.getpid())  # always the same, as a source is its path
    mount.mkdir(parents=True)
    server = None
    try:
        link = ("--round-trip-ms", str(round_trip_ms), "--mbit", str(mbit))
        options = (*link, "--keep-pages", str(int(keep_pages)))
        server = Server((program("slowfs", folder), *options, data.folder, mount))
        _read_ahead(mount)
        yield Source(root=str(mount), server=server)
    finally:
        if server is not None:
            server.end()
            _wait_for_unmount(mount)
        with suppress(OSError):
            mount.rmdir()


def _wait_for_unmount(mount: Path) -> None:
    """fusermount3 unmounts when the server exits; if it was killed too, unmount here."""
    late = time.monotonic() + UNMOUNT_SECONDS
    while os.path.ismount(mount) and time.monotonic() < late:
        time.sleep(0.01)
    if os.path.ismount(mount):
        subprocess.run(["fusermount3", "-u", "-z", str(mount)], check=False)


def _read_ahead(mount: Path) -> None:
    """Set the read-ahead, which only root may do; it is equal for all contestants."""
    device = mount.stat().st_dev
    place = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    with suppress(OSError):
        place.write_text(str(READ_AHEAD_KIB))


@contextmanager
def far_objects(data: DataSet, folder: Path, delay_ms: float, mbit: float) -> Iterator[Source]:
    """An S3-style server, behind a link that the kernel shapes where we are root."""
    parent = Path(data.folder).parent
    bulk = parent / "link" / "bulk"
    bulk.parent.mkdir(exist_ok=True)
    with bulk.open("ab") as file:
        file.truncate(BULK_BYTES)
    words: list[str | Path] = [program("s3server", folder), "--delay-ms", str(delay_ms)]
    shaped = os.geteuid() == 0 and all(map(shutil.which, ("ip", "tc", "unshare", "nsenter")))
    if shaped:
        words = ["unshare", "--net", *words, parent, "0.0.0.0", str(PORT)]
    else:
        words += ["--mbit", str(mbit), parent, "127.0.0.1", "0"]
    server = Server(words)
    try:
        address = _shaped_way(server.process.pid, mbit) if shaped else "127.0.0.1"
        at = f"http://{address}:{server.said['port']}"
        by = "tbf on a veth pair" if shaped else "the server's own link"
        variables = {
            "AWS_ENDPOINT_URL": at,
            "AWS_ENDPOINT": at,
            "S3_ENDPOINT_URL": at,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "benchmark",
            "AWS_SECRET_ACCESS_KEY": "benchmark",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        bucket = Path(data.folder).name
        with _answer(at, f"/{bucket}") as page:
            page.read()  # lists the bucket in the server, as a real store has it listed
        yield Source(root=f"s3://{bucket}", variables=variables, server=server, shaped_by=by)
    finally:
        server.end()


def _shaped_way(pid: int, mbit: float) -> str:
    """A pair of interfaces to the server's network namespace; removed when the server exits."""
    number = next(_numbers) % 250
    here, there = f"feed{pid}", f"far{pid}"
    shape = ["root", "tbf", "rate", f"{mbit:g}mbit", "burst", BURST, "limit", QUEUE]
    inside = ["nsenter", "--target", str(pid), "--net"]
    for words in (
        ["ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", str(pid)],
        ["ip", "addr", "add", f"10.213.{number}.1/30", "dev", here],
        ["ip", "link", "set", here, "up"],
        [*inside, "ip", "addr", "add", f"10.213.{number}.2/30", "dev", there],
        [*inside, "ip", "link", "set", "lo", "up"],
        [*inside, "ip", "link", "set", there, "up"],
        [*inside, "tc", "qdisc", "add", "dev", there, *shape],
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotHere(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
    return f"10.213.{number}.2"


def link_rate(source: Source) -> float:
    """Bytes per second of reading one large object, without its first MiB."""
    with _answer(source.variables["AWS_ENDPOINT_URL"], "/link/bulk") as answer:
        buffer = bytearray(1 << 20)
        answer.readinto(buffer)
        read, began = 0, time.perf_counter()
        while got := answer.readinto(buffer):
            read += got
        return read / (time.perf_counter() - began)


@contextmanager
def _answer(at: str, path: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(at.removeprefix("http://"), timeout=START_SECONDS)
    try:
        connection.request("GET", path)
        yield connection.getresponse()
    finally:
        connection.close()


@contextmanager
def here(data: DataSet) -> Iterator[Source]:
    yield Source(root=data.folder)


_warmed: dict[Path, float] = {}


def warm(folder: Path) -> None:
    """Read every file below it into the page cache, unless done within the last minute."""
    if time.monotonic() - _warmed.get(folder, -WARM_SECONDS) < WARM_SECONDS:
        return
    buffer = bytearray(1 << 20)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
    _warmed[folder] = time.monotonic()


def cool(folder: Path) -> str:
    """Drop it from the page cache; returns how: root drops everything, others each file."""
    _warmed.clear()
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return "drop_caches"
    except OSError:
        for path in folder.rglob("*"):
            if path.is_file():
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)
        return "posix_fadvise"
