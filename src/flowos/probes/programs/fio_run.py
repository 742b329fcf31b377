"""Drives fio over one file that was fully written before, and prints readings as JSON.

usage: python3 fio_run.py --folder DIR --bytes N --seconds S [--fio PATH] [--engine NAME]

Sequential read and write in 128 KiB at depth 16; random read, write and 70:30 in 4 KiB at depths
1 and 16 (the set of Sato and Ogawa, Linux containers on AI clouds). Direct I/O where the file
system has it. The engine is the first of libaio, io_uring, psync that works here: a container
that forbids io_uring then does as the host does. Metrics bandwidth (byte/s), iops (1/s),
latency_p50 and latency_p99 (second). Exit 0; 1: fio failed; 77: cannot be measured here. The file
is removed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

LEAST_BYTES = 256 << 20
STEP_BYTES = 1 << 20
RAMP_SECONDS = 0.3
WINDOW_SECONDS = 0.15
PATIENCE = 4
ENGINES = ("libaio", "io_uring", "psync")
IN_MEMORY = ("tmpfs", "ramfs")
NO_ROOM = (28, 122)  # ENOSPC, EDQUOT
PERCENTILES = (("latency_p50", "50.000000"), ("latency_p99", "99.000000"))


class Job(NamedTuple):
    rw: str
    block_bytes: int
    depth: int
    workloads: tuple[tuple[str, str], ...]  # (direction as fio names it, our level)


READ, WRITE = "read", "write"
JOBS = (
    Job("read", 128 << 10, 16, ((READ, "sequential read"),)),
    Job("write", 128 << 10, 16, ((WRITE, "sequential write"),)),
    *(
        job
        for depth in (1, 16)
        for job in (
            Job("randread", 4 << 10, depth, ((READ, "random read"),)),
            Job("randwrite", 4 << 10, depth, ((WRITE, "random write"),)),
            Job("randrw", 4 << 10, depth, ((READ, "mixed read"), (WRITE, "mixed write"))),
        )
    ),
)


class Way(NamedTuple):
    """How the file is reached."""

    engine: str
    direct: bool


class FioFailed(Exception):  # noqa: N818 - reads as what happened
    """fio could not do it; `code` is its own errno, or 0."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Fio:
    """One fio and the folder with its file; ended with us."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.file = folder / "data"
        self.log = folder / "log_iops.log"
        self.child: subprocess.Popen[bytes] | None = None

    def run(self, way: Way, **options: object) -> dict[str, Any]:
        """The answer about its only job; raises FioFailed unless fio says that all went well."""
        answer = self.folder / "answer.json"
        for old in (answer, self.log):
            old.unlink(missing_ok=True)
        words = {
            "name": "job",
            "filename": self.file,
            "ioengine": way.engine,
            "direct": int(way.direct),
            "fallocate": "none",
            "randrepeat": 0,
            "lat_percentiles": 1,
            "clat_percentiles": 0,
            "output-format": "json",
            "output": answer,
            **options,
        }
        argv = [self.program, "--thread", *(f"--{name}={value}" for name, value in words.items())]
        self.child = subprocess.Popen(
            argv, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = self.child.communicate()
        return job_of(answer, self.child.returncode, said.decode("utf-8", "replace"))

    def end(self) -> None:
        if self.child is not None and self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(5)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def job_of(answer: Path, code: int, said: str) -> dict[str, Any]:
    """fio may print JSON full of zeros after an error: exit code, error and count must agree."""
    complaint = f"fio ended with {code}: {last_line(said)}"
    try:
        text = answer.read_text()
        job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
        error, done = int(job["error"]), job[READ]["total_ios"] + job[WRITE]["total_ios"]
    except (OSError, ValueError, LookupError, TypeError) as unreadable:
        raise FioFailed(complaint) from unreadable
    if code != 0 or error != 0:
        raise FioFailed(complaint, error)
    if done <= 0:
        raise FioFailed("fio did no I/O at all")
    return job


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def cannot(reason: str, remedy: str = "") -> NoReturn:
    print(json.dumps({"cannot": reason, "remedy": remedy}))
    sys.exit(77)


def file_system(folder: Path) -> str:
    """The type of the file system that holds the folder, such as ext4."""
    found = ("", "unknown")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        at = before.split()[4].encode().decode("unicode_escape")
        inside = folder == Path(at) or Path(at) in folder.parents
        if inside and len(at) >= len(found[0]):
            found = (at, after.split()[0])
    return found[1]


def available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def file_bytes(folder: Path, wanted: int, kind: str) -> int:
    """At most half of what is free; a file system in memory gets a quarter of the memory."""
    room = shutil.disk_usage(folder).free // 2
    if kind in IN_MEMORY:
        room = min(room, available_memory() // 4)
    size = min(wanted, room) // STEP_BYTES * STEP_BYTES
    if size < min(wanted, LEAST_BYTES):
        cannot(
            f"{folder} has room for a file of {room >> 20} MiB; {LEAST_BYTES >> 20} MiB are needed",
            "free some space, or choose another folder with --scratch",
        )
    return size


def first_way(fio: Fio, engines: tuple[str, ...]) -> Way:
    """The first engine that works here, with direct I/O if any does."""
    complaints: list[str] = []
    for direct in (True, False):
        for engine in engines:
            try:
                fio.run(
                    Way(engine, direct),
                    rw="randwrite",
                    bs=4096,
                    size=STEP_BYTES,
                    iodepth=4,
                    number_ios=64,
                )
            except FioFailed as error:
                complaints.append(f"{engine}: {error}")
                continue
            return Way(engine, direct)
    return cannot(f"no I/O engine works in {fio.folder.parent}: {'; '.join(complaints[-3:])}")


def lay_out(fio: Fio, way: Way, size: int) -> str:
    """Writes the whole file with data that no file system can shrink; a doubt, or nothing."""
    try:
        fio.run(
            way,
            rw="write",
            bs=STEP_BYTES,
            iodepth=16,
            size=size,
            end_fsync=1,
            refill_buffers=1,
        )
    except FioFailed as error:
        if error.code in NO_ROOM:
            cannot(
                f"no room for {size >> 20} MiB in {fio.folder.parent}: {error}",
                "choose another folder with --scratch",
            )
        raise
    held = fio.file.stat().st_blocks * 512
    return "" if held >= 0.9 * size else "the file system stores fewer bytes than were written"


def measure(fio: Fio, way: Way, job: Job, size: int, seconds: float) -> dict[str, Any]:
    """Storage that stalls may do nothing in the time given: then once more, for longer."""
    for time in (seconds, PATIENCE * seconds):
        answer = fio.run(
            way,
            rw=job.rw,
            rwmixread=70,
            bs=job.block_bytes,
            iodepth=job.depth,
            size=size,
            time_based=1,
            runtime=f"{int(time * 1000)}ms",
            ramp_time=f"{int(RAMP_SECONDS * 1000)}ms",
            end_fsync=1,  # what one job leaves in caches must not burden the next
            write_iops_log=fio.folder / "log",
            log_avg_msec=int(WINDOW_SECONDS * 1000),
            per_job_logs=0,
        )
        idle = [w for direction, w in job.workloads if answer[direction]["total_ios"] <= 0]
        if not idle:
            return answer
    raise FioFailed(f"{idle[0]}: nothing was done in {PATIENCE * seconds:g} s")


def windows(fio: Fio, direction: str, mean: float) -> list[float]:
    """I/Os per second in each window. Stalls leave no line: then the mean alone stands."""
    wanted = (READ, WRITE).index(direction)
    lines = (line.split(",") for line in fio.log.read_text().splitlines())
    rates = [float(words[1]) for words in lines if int(words[2]) == wanted]
    if len(rates) < 2 or abs(statistics.fmean(rates) / mean - 1) > 0.1:
        return [mean]
    return rates


def readings_of(
    fio: Fio, way: Way, job: Job, answer: dict[str, Any], notes: dict[str, str]
) -> list[dict[str, Any]]:
    found = []
    for direction, workload in job.workloads:
        levels = {
            "workload": workload,
            "iodepth": str(job.depth),
            "engine": way.engine,
            "direct": "yes" if way.direct else "no",
        }
        told = answer[direction]
        rates = windows(fio, direction, told["iops"])
        values = {"iops": ("1/s", rates)}
        if workload.startswith("sequential"):
            values = {"bandwidth": ("byte/s", [rate * job.block_bytes for rate in rates])}
        for metric, rank in PERCENTILES:
            values[metric] = ("second", [told["lat_ns"]["percentile"][rank] * 1e-9])
        found += [
            {"metric": metric, "unit": unit, "values": v, "levels": levels, "notes": notes}
            for metric, (unit, v) in values.items()
        ]
    return found


def measure_all(fio: Fio, wanted: int, seconds: float, engines: tuple[str, ...]) -> None:
    kind = file_system(fio.folder)
    size = file_bytes(fio.folder.parent, wanted, kind)
    way = first_way(fio, engines)
    doubt = lay_out(fio, way, size)
    notes = {"file_system": kind, "file_bytes": str(size)}
    if doubt:
        notes["suspect"] = doubt
    readings: list[dict[str, Any]] = []
    for job in JOBS:
        answer = measure(fio, way, job, size, seconds)
        readings += readings_of(fio, way, job, answer, notes)
    print(json.dumps({"readings": readings}, indent=1))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure storage with fio.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--fio", default="fio")
    parser.add_argument("--engine", choices=("auto", *ENGINES), default="auto")
    return parser.parse_args()


def main() -> None:
    args = parse()
    if shutil.which(args.fio) is None:
        cannot(f"{args.fio} was not found", "apt install fio")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    engines = ENGINES if args.engine == "auto" else (args.engine,)
    try:
        with tempfile.TemporaryDirectory(dir=args.folder, prefix="flowos-fio-") as folder:
            fio = Fio(args.fio, Path(folder).resolve())
            try:
                measure_all(fio, args.bytes, args.seconds, engines)
            finally:
                fio.end()
    except FioFailed as error:
        sys.exit(f"fio_run: {error}")
    except OSError as error:
        cannot(f"cannot write in {args.folder}: {error.strerror}", "choose another with --scratch")


if __name__ == "__main__":
    main()
