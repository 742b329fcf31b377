"""Command lines of PBS Professional and OpenPBS, and their answers: 19 to 2025 print these alike.

Its JSON is no JSON for what a site or a person writes: quotes are not escaped, or once too often,
and digits lose theirs. It has a value a line, so that what cannot be read is read line by line.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

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
    {"waiting": "H M Q T W", "running": "B R S U", "ending": "E", "over": "F X"}
)


# ---- command lines ----


def submit_words(ask: Ask, name: str, keeper: Argv, *, queue: str = "", account: str = "") -> Argv:
    """Hold whole nodes until the keeper's end, which runs on the first of them.

    PBS gives a job no standard input of ours: the keeper needs another sign that we are there.
    """
    refuse_topology("PBS", ask)
    chunk = {"ncpus": ask.cores or 1, "ngpus": ask.gpus, **dict(ask.device_counts)}
    chunk["mem"] = ask.memory_bytes
    select = [f"select={ask.nodes}"]
    select += [f"{what}={count}{'b' * (what == 'mem')}" for what, count in chunk.items() if count]
    options = (
        ("-N", name),
        ("-q", queue),
        ("-A", account),
        ("-l", ":".join(select)),
        ("-l", f"walltime={_clock(ask.seconds)}" if ask.seconds else ""),
    )
    return (
        "qsub",
        *(word for option, value in options if value for word in (option, value)),
        *("-l", "place=scatter:excl", "-j", "oe", "-o", "/dev/null", "--"),
        *keeper,
    )


def _clock(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def cancel_words(job: str) -> Argv:
    return ("qdel", job)


def jobs_words(*, job: str = "", name: str = "") -> Argv:  # noqa: ARG001 - it cannot choose
    """Those that are over too, for as long as the server keeps them."""
    return ("qstat", "-x", "-f", "-F", "json", *([job] if job else []))


def nodes_words() -> Argv:
    return ("pbsnodes", "-a", "-F", "json")


# ---- answers ----


def read_submitted(text: str) -> str:
    """The job's number, as in `17.server`. Raises SliceRefused if there is none."""
    for line in text.splitlines():
        if re.fullmatch(r"\d+(?:\[\])?\.[\w.-]+", line.strip()):
            return line.strip()
    raise SliceRefused(f"PBS names no job: {text!r:.80}")


def phase_of(state: str) -> JobPhase:
    """Of the letter that qstat prints."""
    return _PHASE_OF.get(state, "unknown")


def read_jobs(text: str) -> tuple[Job, ...]:
    """Of `jobs_words`."""
    return tuple(_job(id, found) for id, found in _tables(text, "Jobs"))


def _job(id: str, found: Mapping[str, Any]) -> Job:
    state = str(found.get("job_state", ""))
    hosts = str(found.get("exec_host", "")).split("+")
    limit = read_clock(str(_table(found, "Resource_List").get("walltime", "")))
    used = read_clock(str(_table(found, "resources_used").get("walltime", "")))
    left = math.inf if limit is None else limit - (used or 0.0)
    return Job(
        id=id,
        name=str(found.get("Job_Name", "")),
        state=state,
        phase=phase_of(state),
        nodes=node_names("PBS", (host.partition("/")[0] for host in hosts)),
        left_seconds=left,
        used_seconds=used,
        reason=str(found.get("comment", "")),
    )


def read_nodes(text: str) -> tuple[NodeInfo, ...]:
    """Of `nodes_words`. A name that the server does not know is no node."""
    return tuple(_node(name, found) for name, found in _tables(text, "nodes") if "state" in found)


def _node(name: str, found: Mapping[str, Any]) -> NodeInfo:
    has = _table(found, "resources_available")
    why = f": {found['comment']}" if found.get("comment") else ""
    return NodeInfo(
        name=node_names("PBS", [name])[0],
        cores=_count(has.get("ncpus", found.get("pcpus", 0))),
        memory_bytes=_count(str(has.get("mem", "")).removesuffix("b")),
        gpus=_count(has.get("ngpus", 0)),
        state=f"{found['state']}{why}",
    )


def _count(value: object) -> int:
    return int(read_amount(str(value)) or 0)


def _table(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}


def _tables(text: str, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    text = text[max(text.find("{"), 0) :]
    try:
        found = json.loads(text)
    except ValueError:
        found = _mended(text)
    if not isinstance(found, dict):
        raise SliceRefused("PBS answers no JSON")
    for name, table in _table(found, key).items():
        if isinstance(table, dict):
            yield name, table


_LINE = re.compile(r'(\s*"[^"]*"\s*:\s*)([^\s{\[].*?)(,?\s*)')


def _mended(text: str) -> object:
    try:
        return json.loads("\n".join(map(_mended_line, text.splitlines())))
    except ValueError as error:
        raise SliceRefused(f"PBS answers no JSON that can be read: {error}") from None


def _mended_line(line: str) -> str:
    """A value that is none becomes the text that it shows."""
    match = _LINE.fullmatch(line)
    if match is None:
        return line
    name, value, comma = match.groups()
    try:
        json.loads(value)
    except ValueError:
        return name + json.dumps(value.strip('"').replace(r"\"", '"')) + comma
    return line


_SAYS: tuple[tuple[ComplaintKind, str], ...] = (
    ("gone", r"unknown job id|job has finished|has been moved|request invalid for state of job"),
    (
        "unreachable",
        r"cannot connect to server|connection refused|no route to host|connection timed out"
        r"|errno=15010|authentication|end of file",
    ),
    (
        "refused",
        r"unknown (?:queue|resource)|illegal attribute|exceeds (?:queue|server)|access to queue"
        r"|unauthorized|invalid (?:credential|account)|not enabled|cannot satisfy|not permitted",
    ),
)


def read_complaint(text: str) -> Complaint:
    """Its last line says most; which kind it is, any line may."""
    return classify_complaint(text, _SAYS, r"\w+: ")
