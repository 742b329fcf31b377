"""Parses the output of a fio command to readings, or the reason why it measured nothing.

With --status-interval fio prints one cumulative JSON document for each interval and one at the end.
After an error it prints valid JSON full of zeros.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from flowos.model import Case, Exited, MeasureError, Outcome, Reading, Unmeasured
from flowos.probes._storage import MORE_ROOM, in_memory
from flowos.probes._suspicious import with_suspicion

MIX = ("mix", "70:30")
"""The level of a case that reads and writes at the same time."""

NO_ROOM = (28, 122)
BLOCKED = (1, 38)
"""ENOSPC, EDQUOT; EPERM, ENOSYS."""

HALVES_APART = 1.4
MAX_APART = 1000.0
PERCENTILES = (("latency_p50", "50.000000"), ("latency_p99", "99.000000"))

Document = Mapping[str, Any]


def read_answer_of_fio(
    case: Case, outcome: Outcome, block_bytes: int, window_seconds: float
) -> tuple[Reading, ...] | Unmeasured:
    """Each direction's rate in each window, and its latencies. Raises MeasureError if not JSON."""
    if not isinstance(outcome.end, Exited):
        return Unmeasured(reason=f"fio ended by {outcome.end}")
    try:
        documents = list(_documents(outcome.stdout))
        jobs = [document["jobs"][0] for document in documents]
        error = next((int(job["error"]) for job in jobs if job["error"]), 0)
        if outcome.end.code or error:
            return _refused(case, error, outcome)
        done = {way: jobs[-1][way]["total_ios"] for way in _workloads(case)}
        if idle := [way for way, count in done.items() if count <= 0]:
            return Unmeasured(
                reason=f"not one {idle[0]} ended in the time given",
                remedy="give more time: without --quick, or with --full",
            )
        return tuple(_readings(case, documents, block_bytes, window_seconds))
    except (ValueError, LookupError, TypeError, AttributeError) as wrong:
        raise MeasureError(f"fio's answer cannot be read: {outcome.stdout[-200:]!r}") from wrong


def _documents(stdout: bytes) -> Iterator[Any]:
    """The JSON documents; fio may print lines of text between them."""
    text = stdout.decode(errors="replace")
    start = re.compile(r"^\{", re.MULTILINE)
    at = start.search(text)
    while at:
        document, end = json.JSONDecoder().raw_decode(text, at.start())
        yield document
        at = start.search(text, end)


def _workloads(case: Case) -> dict[str, str]:
    """Direction, as fio names it -> our level."""
    if MIX in case.levels:
        return {"read": "mixed read", "write": "mixed write"}
    workload = case.level("workload")
    return {workload.split()[-1]: workload}


def _readings(
    case: Case, documents: Sequence[Document], block_bytes: int, window_seconds: float
) -> Iterator[Reading]:
    for way, workload in _workloads(case).items():
        job = documents[-1]["jobs"][0][way]
        levels = (("workload", workload),) if MIX in case.levels else ()
        rates = _rates(documents, way, window_seconds)
        if not any(rates):  # none is whole, or what ended did so in a part of one
            rates = (float(job["iops"]),)
        rate = Reading(metric="iops", unit="1/s", values=rates, levels=levels)
        if workload.startswith("sequential"):
            moved = tuple(each * block_bytes for each in rates)
            rate = Reading(metric="bandwidth", unit="byte/s", values=moved, levels=levels)
        latencies = [
            Reading(
                metric=metric,
                unit="second",
                values=(job["lat_ns"]["percentile"][rank] * 1e-9,),
                levels=levels,
            )
            for metric, rank in PERCENTILES
        ]
        yield from with_suspicion([rate], [_cached(case), _changed(rates)])
        yield from with_suspicion(latencies, [_cached(case)])


def _rates(documents: Sequence[Document], way: str, window_seconds: float) -> tuple[float, ...]:
    """Requests per second in each window.

    After its ramp time fio restarts its counts of time (ms) and requests: its time then lags the
    clock's, and only what follows counts. A window that is much too short, such as the remainder at
    the end, is left out.
    """
    least = 500 * window_seconds
    clock = [int(each["timestamp_ms"]) for each in documents]
    jobs = [each["jobs"][0][way] for each in documents]
    marks = [(int(each["runtime"]), int(each["total_ios"])) for each in jobs]
    steps = enumerate(pairwise(zip(clock, marks, strict=True)), start=1)
    anew = [i for i, ((c, a), (d, b)) in steps if b[0] - a[0] < d - c - least]
    if anew:
        marks = [(0, 0), *marks[anew[-1] :]]
    return tuple(
        1000 * (ios - ios_before) / (time - before)
        for (before, ios_before), (time, ios) in pairwise(marks)
        if time - before >= least
    )


def _refused(case: Case, error: int, outcome: Outcome) -> Unmeasured:
    """Why fio failed, in one line, and the remedy."""
    said, engine = _complaint(outcome), _way(case, "engine")
    if error in NO_ROOM:
        size = int(case.detail("file_bytes")) >> 20
        return Unmeasured(
            reason=f"no room for a file of {size} MiB: {said}",
            remedy=MORE_ROOM,
        )
    if engine == "io_uring" and error in BLOCKED:
        return Unmeasured(
            reason=f"io_uring is blocked here: {said}",
            remedy="allow it in the container's seccomp profile, or forbid it on the host, too "
            "(kernel.io_uring_disabled): fio then measures with libaio everywhere",
        )
    if "not loadable" in said:
        return Unmeasured(
            reason=f"this fio cannot do {engine}: {said}",
            remedy=f"install a fio that lists {engine} when asked for `fio --enghelp`",
        )
    if "O_DIRECT" in said or "direct=1" in said:
        return Unmeasured(
            reason=f"direct I/O is refused: {said}",
            remedy="choose a folder on a disk with --scratch",
        )
    return Unmeasured(reason=f"fio failed: {said}")


def _complaint(outcome: Outcome) -> str:
    """fio's first error message, without the position in its source."""
    lines = (outcome.stderr + b"\n" + outcome.stdout).decode(errors="replace").splitlines()
    said = [line.removeprefix("fio: ") for line in lines if line.startswith("fio: ")]
    return said[0].rpartition("error=")[2] if said else "it said nothing"


def _way(case: Case, name: str) -> str:
    """Engine or direct I/O: a level where numbers of different ones are different cases."""
    return case.level(name) or case.detail(name)


def _cached(case: Case) -> str:
    if reason := in_memory(case):
        return reason
    if _way(case, "direct") == "no":
        kind = case.detail("file_system") or "the file system"
        return f"direct I/O is refused by {kind}: the page cache answers"
    return ""


def _changed(rates: Sequence[float]) -> str:
    """A note if the two halves differ, as for a cache that fills or warms up."""
    if len(rates) < 4:
        return ""
    half = len(rates) // 2
    before, after = fmean(rates[:half]), fmean(rates[-half:])
    ratio = after / before if before else MAX_APART
    if 1 / HALVES_APART < ratio < HALVES_APART:
        return ""
    return f"the second half went at {ratio:.2f} times the first: a cache filled or warmed up"
