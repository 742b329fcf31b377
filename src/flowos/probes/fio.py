"""Storage, by fio: the set of figures 9 and 10 of Sato and Ogawa, Linux containers on AI clouds.

128 KiB sequential read and write; 4 KiB random read, write and 70:30 at depths 1 and 16.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean, median
from typing import Literal

from flowos.model import Case, Chart, Facts, Outcome, Reading, Unmeasured, Wanted
from flowos.probes._base import Program, read_answer
from flowos.probes._suspect import suspected

SETTINGS = {
    "quick": (512 << 20, 1.0),
    "normal": (2 << 30, 1.5),
    "full": (8 << 30, 10.0),
}
"""Bytes of the file and seconds of each job."""

JOBS = 8
OVERHEAD_SECONDS = 0.8
SLOWEST_LAYOUT = 50e6
USUAL_LAYOUT = 1e9

MEMORY = ("tmpfs", "ramfs")
LEAST_DEVICE_SECONDS = 5e-6
WRITES_OVER_READS = 1.3
HALVES_APART = 1.4
MOST_APART = 1000.0


@dataclass(frozen=True, slots=True)
class Fio:
    """Metrics bandwidth (byte/s), iops (1/s), latency_p50, latency_p99 (second).

    The program runs the whole set over one file, and sweeps the axes workload, iodepth, engine and
    direct itself: numbers that another engine gave are another case, and are never compared.
    """

    name: str = "fio"
    title: str = "Storage"
    charts: tuple[Chart, ...] = (
        Chart(
            title="Storage throughput, 128 KiB sequential",
            kind="bars",
            x="workload",
            metrics=("bandwidth",),
            series=("engine", "direct"),
            y_label="byte/s",
            ceilings=False,
        ),
        Chart(
            title="Storage operations, 4 KiB random",
            kind="bars",
            x="workload",
            metrics=("iops",),
            series=("iodepth", "engine", "direct"),
            y_label="1/s",
            ceilings=False,
            about="Mixed is 70 % reads and 30 % writes at the same time.",
        ),
        Chart(
            title="Storage latency",
            kind="bars",
            x="workload",
            metrics=("latency_p50", "latency_p99"),
            series=("iodepth", "engine", "direct"),
            y_label="second",
            log_y=True,
            ceilings=False,
            about="From asking to completion: half of the requests, and all but one in a hundred.",
        ),
    )
    build: Literal["once", "each"] = "once"
    rounds: int = 1

    def cases(self, facts: Facts, wanted: Wanted) -> tuple[Case, ...] | Unmeasured:
        fio = facts.tool("fio")
        if fio is None:
            return Unmeasured(reason="fio was not found", remedy="apt install fio")
        size, seconds = SETTINGS[wanted.effort]
        details = (
            ("fio", str(fio.path)),
            ("bytes", str(size)),
            ("seconds", str(seconds)),
            ("engine", "auto"),
        )
        return (Case(self.name, details=details),)

    def seconds(self, case: Case) -> float:
        jobs = JOBS * (float(case.detail("seconds")) + OVERHEAD_SECONDS)
        return 1.0 + jobs + int(case.detail("bytes")) / USUAL_LAYOUT

    def program(self, case: Case) -> Program:
        script = files("flowos.probes").joinpath("programs", "fio_run.py")
        words = ("fio", "bytes", "seconds", "engine")
        options = (word for name in words for word in (f"--{name}", case.detail(name)))
        return Program(
            argv=("python3", str(script), "--folder", "{scratch}", *options),
            limit_seconds=60 + 2 * self.seconds(case) + int(case.detail("bytes")) / SLOWEST_LAYOUT,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:  # noqa: ARG002
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured):
            return readings
        return tuple(
            noted
            for reading, reasons in zip(readings, suspicions(readings), strict=True)
            for noted in suspected([reading], reasons)
        )

    def ceiling(self, case: Case) -> Case | None:  # noqa: ARG002
        return None


def suspicions(readings: Sequence[Reading]) -> tuple[tuple[str, ...], ...]:
    """For each reading why a cache, and not the device, may have answered; mostly nothing."""
    typical = {_key(r): median(r.values) for r in readings}
    return tuple(
        tuple(
            reason
            for reason in (
                _in_memory(r),
                _synchronous(r),
                _too_quick(r, typical),
                _write_cache(r, typical),
                _changed(r),
            )
            if reason
        )
        for r in readings
    )


def _key(r: Reading) -> tuple[str, str, str]:
    levels = dict(r.levels)
    return r.metric, levels.get("workload", ""), levels.get("iodepth", "")


def _in_memory(r: Reading) -> str:
    kind = dict(r.notes).get("file_system", "")
    if kind in MEMORY:
        return f"the file lies in memory ({kind})"
    if dict(r.levels).get("direct") == "no":
        return f"direct I/O is refused by {kind or 'the file system'}: the page cache answers"
    return ""


def _synchronous(r: Reading) -> str:
    levels = dict(r.levels)
    if levels.get("engine") == "psync" and levels.get("iodepth") != "1":
        return "only synchronous I/O works here: the depth was 1"
    return ""


def _too_quick(r: Reading, typical: Mapping[tuple[str, str, str], float]) -> str:
    """No device answers a request of its own in less than some microseconds."""
    workload = _key(r)[1].replace("sequential", "random")
    seconds = typical.get(("latency_p50", workload, "1"), LEAST_DEVICE_SECONDS)
    if seconds < LEAST_DEVICE_SECONDS:
        return f"answers come after {seconds * 1e6:.1f} us: a cache answers, not a device"
    return ""


def _write_cache(r: Reading, typical: Mapping[tuple[str, str, str], float]) -> str:
    metric, workload, depth = _key(r)
    if metric not in ("bandwidth", "iops") or not workload.endswith(" write"):
        return ""
    if workload.startswith("mixed"):
        return ""
    read = typical.get((metric, workload.replace("write", "read"), depth), 0.0)
    rate = typical[_key(r)]
    if read and rate > WRITES_OVER_READS * read:
        return f"writes are {rate / read:.1f} times as fast as reads: a write cache answers"
    return ""


def _changed(r: Reading) -> str:
    """A cache that fills or warms up shows as two halves that differ."""
    if len(r.values) < 4:
        return ""
    half = len(r.values) // 2
    before, after = fmean(r.values[:half]), fmean(r.values[-half:])
    ratio = after / before if before else MOST_APART
    if 1 / HALVES_APART < ratio < HALVES_APART:
        return ""
    return f"the second half went at {ratio:.2f} times the first: a cache filled or warmed up"
