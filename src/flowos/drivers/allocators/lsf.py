"""Command lines of LSF, and what its commands answer: 9.1, 10.1 and 11 print these alike.

Jobs are asked for as JSON; before it there may be lines that say that LSF is waited for.
"""

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from flowos.drivers._allocators import (
    Complaint,
    ComplaintKind,
    Job,
    JobPhase,
    classify_complaint,
    node_names,
    phase_table,
    read_amount,
    read_clock,
    refuse_topology,
)
from flowos.model import Argv, Ask, NodeInfo, SliceRefused

_PHASE_OF = phase_table(
    {
        "waiting": "FWD_PEND PEND PROV PSUSP WAIT",
        "running": "RUN SSUSP USUSP",
        "ending": "ZOMBI",
        "over": "DONE EXIT",
    }
)
_FIELDS = "jobid stat job_name exec_host time_left run_time pend_reason"


# ---- command lines ----


def hold_words(ask: Ask, name: str, keeper: Argv, *, queue: str = "", project: str = "") -> Argv:
    """Hold whole nodes until the keeper's end, which runs on one of them and reads our input.

    bsub joins what it gets to one line for a shell. Other nodes are reached by blaunch.
    """
    refuse_topology("LSF", ask)
    cores = ask.cores or 1
    needs = [f"span[ptile={cores}]"]
    needs += [f"rusage[mem={math.ceil(ask.memory_bytes / 2**20)}MB]"] * (ask.memory_bytes > 0)
    needs += [f"rusage[{what}={count}]" for what, count in ask.device_counts]
    options = (
        ("-q", queue),
        ("-P", project),
        ("-W", str(math.ceil(ask.seconds / 60)) if ask.seconds else ""),
        ("-gpu", f"num={ask.gpus}" if ask.gpus else ""),
    )
    return (
        *("bsub", "-I", "-x", "-J", name, "-n", str(ask.nodes * cores), "-R", " ".join(needs)),
        *(word for option, value in options if value for word in (option, value)),
        shlex.join(keeper),
    )


def cancel_words(job: str) -> Argv:
    return ("bkill", job)


def jobs_words(*, job: str = "", name: str = "") -> Argv:
    """Those that are over too, for an hour."""
    which = [job] if job else ["-J", name] if name else []
    return ("bjobs", "-a", "-json", "-o", _FIELDS, *which)


def nodes_words() -> Argv:
    return ("bhosts", "-w")


# ---- answers ----


def phase_of(state: str) -> JobPhase:
    """Of a state as bjobs prints it. `UNKWN`, of a node that does not answer, is not known."""
    return _PHASE_OF.get(state, "unknown")


def read_jobs(text: str) -> tuple[Job, ...]:
    """Of `jobs_words`; one that is not found is none."""
    return tuple(_job(record) for record in _records(text) if "STAT" in record)


def _job(record: Mapping[str, Any]) -> Job:
    state, left = str(record["STAT"]), str(record.get("TIME_LEFT", ""))
    return Job(
        id=str(record.get("JOBID", "")),
        name=str(record.get("JOB_NAME", "")),
        state=state,
        phase=phase_of(state),
        nodes=read_hosts(str(record.get("EXEC_HOST", ""))),
        left_seconds=_read_left(left),
        used_seconds=_read_used(str(record.get("RUN_TIME", ""))),
        reason=str(record.get("PEND_REASON", "")).strip("; "),
    )


def read_hosts(text: str) -> tuple[str, ...]:
    """Of `4*n1:4*n2`, or a name for each slot."""
    return node_names("LSF", (one.rpartition("*")[2] for one in text.split(":")))


def _read_left(text: str) -> float | None:
    """Of `10:05 L`, hours and minutes; an estimate (`E`) is no limit."""
    match = re.fullmatch(r"(\d+):(\d\d) [LX]?", text.strip() + " " * (" " not in text.strip()))
    if match is not None:
        return float(int(match[1]) * 3600 + int(match[2]) * 60)
    return math.inf if text.strip() in ("", "-") else None


def _read_used(text: str) -> float | None:
    """Of `62 second(s)`, or `00:01:02` where a site wants it so."""
    seconds = re.fullmatch(r"(\d+) second\(s\)", text.strip())
    return float(seconds[1]) if seconds else read_clock(text)


def _records(text: str) -> Iterator[Mapping[str, Any]]:
    start = text.find("{")
    if start < 0 and "found" not in text and text.strip():
        raise SliceRefused(f"LSF answers no JSON: {text.strip()!r:.80}")
    try:
        found = json.loads(text[start:]) if start >= 0 else {}
    except ValueError as error:
        raise SliceRefused(f"LSF answers no JSON that can be read: {error}") from None
    yield from found.get("RECORDS", [])


def read_nodes(text: str) -> tuple[NodeInfo, ...]:
    """Of `nodes_words`. cores: its slots; 0 where their number is not limited (`-`)."""
    rows = [line.split() for line in text.splitlines()]
    heads = next((row for row in rows if row[:2] == ["HOST_NAME", "STATUS"]), None)
    if heads is None:
        return ()
    found = (dict(zip(heads, row, strict=True)) for row in rows if len(row) == len(heads))
    return tuple(_node(row) for row in found if row["HOST_NAME"] != "HOST_NAME")


def _node(row: Mapping[str, str]) -> NodeInfo:
    return NodeInfo(
        name=node_names("LSF", [row["HOST_NAME"]])[0],
        cores=int(read_amount(row.get("MAX", "")) or 0),
        state=row["STATUS"],
    )


def read_waiting(line: str) -> tuple[Literal["waiting", "held"], str] | None:
    """What bsub says while it waits: the job's number, then the node of the keeper."""
    if match := re.match(r"Job <(\d+)> is submitted to (?:default )?queue <", line):
        return "waiting", match[1]
    match = re.match(r"<<Starting on ([\w.-]+)>>", line)
    return ("held", match[1]) if match else None


_SAYS: tuple[tuple[ComplaintKind, str], ...] = (
    ("gone", r"job <[^>]*> is not found|no matching job found|job has already finished"),
    (
        "unreachable",
        r"please wait|is down|not responding|cannot (?:connect|contact)|communication time ?out"
        r"|connection refused",
    ),
    (
        "refused",
        r"job not submitted|no such queue|bad resource|request aborted|not defined"
        r"|permission denied|cannot be used|exceeds|cannot open|unable to open file lsf\.conf",
    ),
)


def read_complaint(text: str) -> Complaint:
    """Its last line says most; which kind it is, any line may."""
    return classify_complaint(text, _SAYS, r"bsub: ")
