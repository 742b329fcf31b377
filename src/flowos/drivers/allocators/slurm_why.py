"""Why a job waits, in words, when Slurm expects it to start, and what would start sooner."""

import math
from collections.abc import Sequence
from datetime import datetime

from flowos._dataclasses import dataclass
from flowos.drivers._allocators import read_amount
from flowos.drivers._slurm_values import read_seconds
from flowos.model import Argv, Ask

_STARTS = "%A|%T|%P|%S|%r"
_IDLE = "%R|%a|%D|%l|%t"
_FREE_STATES = ("idle", "idle~", "idle%", "plnd")
"""Also those that are powered down or on their way to it, and those that are kept for a job which
waits for more."""

_REASONS = {
    "AssocGrp": "its account has used, or runs, as much as it may",
    "AssocMax": "its account runs as much as one user may",
    "BadConstraints": "no node can ever have what it asks for: free it, and ask for something else",
    "BeginTime": "its time to begin has not come",
    "Dependency": "another job has to end first",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "it is held: scontrol release lets it go on",
    "Licenses": "licences are in use",
    "NodeDown": "a node that it needs is down",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition starts no jobs now",
    "PartitionNodeLimit": "it asks for more nodes than its partition gives",
    "PartitionTimeLimit": "it asks for more time than its partition gives",
    "Priority": "jobs of higher priority come first",
    "QOSGrp": "its quality of service is in use as much as it may be",
    "QOSMax": "its quality of service gives one user no more",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved",
    "Reservation": "its reservation has not begun",
    "Resources": "nodes that it asks for are in use",
    "launch failed requeued held": "its start failed, and Slurm holds it",
}
"""By the beginnings of Slurm's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStart:
    """Of a job that waits. at: in the cluster's local time, None as long as it is not known."""

    job: str
    partition: str
    at: datetime | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleNodes:
    """How many nodes of a partition no job has. max_seconds: of a job, infinite without a limit."""

    partition: str
    nodes: int
    max_seconds: float


def starts_words(name: str) -> Argv:
    """Of the jobs of this name that wait."""
    return ("squeue", "--noheader", "--start", f"--name={name}", f"--format={_STARTS}")


def idle_words() -> Argv:
    return ("sinfo", "--noheader", f"--format={_IDLE}")


def read_starts(text: str) -> tuple[ExpectedStart, ...]:
    """Of `starts_words`."""
    rows = (line.split("|") for line in text.splitlines())
    return tuple(
        ExpectedStart(job=job, partition=partition, at=_time(at), reason=reason)
        for job, _, partition, at, reason in (row for row in rows if len(row) == 5)
    )


def read_idle(text: str) -> tuple[IdleNodes, ...]:
    """Of `idle_words`: each partition that is up."""
    found: dict[str, IdleNodes] = {}
    for name, up, nodes, limit, state in (
        row for line in text.splitlines() if len(row := line.split("|")) == 5
    ):
        if up == "up":
            before = found[name].nodes if name in found else 0
            more = int(read_amount(nodes) or 0) if state in _FREE_STATES else 0
            seconds = read_seconds(limit)
            found[name] = IdleNodes(
                partition=name,
                nodes=before + more,
                max_seconds=math.inf if seconds is None else seconds,
            )
    return tuple(found.values())


def in_words(reason: str) -> str:
    """Slurm's reason, and what it says; only the reason where that is not known."""
    fits = (words for start, words in _REASONS.items() if reason.startswith(start))
    return ": ".join((reason, *fits))


def sooner(ask: Ask, partition: str, idle: Sequence[IdleNodes]) -> tuple[str, ...]:
    """What is likely to start sooner than this, which waits for nodes of the partition."""
    own = next((each for each in idle if each.partition == partition), None)
    found = []
    if own is not None and 0 < own.nodes < ask.nodes:
        are = "1 node is idle" if own.nodes == 1 else f"{own.nodes} nodes are idle"
        found.append(f"fewer nodes: {are} in partition {partition}, and it asks for {ask.nodes}")
    for other in idle:
        in_time = ask.seconds is None or ask.seconds <= other.max_seconds
        if other.partition != partition and other.nodes >= ask.nodes and in_time:
            found.append(f"partition {other.partition}: {other.nodes} of its nodes are idle")
    if ask.seconds is None and own is not None and own.max_seconds < math.inf:
        found.append(
            f"a time limit: without one it asks for the {own.max_seconds:g} s of the partition, "
            "and Slurm starts short jobs in gaps before large ones"
        )
    return tuple(found)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
