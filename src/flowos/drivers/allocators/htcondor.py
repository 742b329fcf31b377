"""HTCondor's command lines, and what its commands answer: 8.8 to 25 print these alike.

It gives nodes one by one: a cluster of as many jobs as there are nodes, each of them a keeper.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from flowos.drivers._allocators import (
    Complaint,
    ComplaintKind,
    Job,
    JobPhase,
    classify_complaint,
    node_names,
    refuse_topology,
)
from flowos.model import Argv, Ask, NodeInfo, SliceRefused

_STATES: Mapping[int, tuple[str, JobPhase]] = {
    1: ("Idle", "waiting"),
    2: ("Running", "running"),
    3: ("Removed", "over"),
    4: ("Completed", "over"),
    5: ("Held", "waiting"),
    6: ("TransferringOutput", "ending"),
    7: ("Suspended", "running"),
}
_OF_JOBS = "ClusterId,ProcId,JobStatus,JobBatchName,RemoteHost,HoldReason,JobCurrentStartDate"
_OF_NODES = "Machine,TotalCpus,TotalMemory,TotalGPUs,State,Activity,SlotType"


# ---- command lines ----


def submit_words(name: str) -> Argv:
    """Reads `submit_text` from its standard input."""
    return ("condor_submit", "-terse", "-batch-name", name, "-")


def submit_text(ask: Ask, keeper: Argv, *, group: str = "") -> str:
    """A keeper on each node, which gets no standard input of ours.

    group: the accounting group. Raises SliceRefused for what cannot be asked of HTCondor.
    """
    refuse_topology("HTCondor", ask)
    command, *arguments = keeper
    memory = math.ceil(ask.memory_bytes / 2**20)
    lines = {
        "universe": "vanilla",
        "executable": command,
        "transfer_executable": "false",
        "arguments": f'"{" ".join(map(_quoted, arguments))}"',
        "request_cpus": str(ask.cores or 1),
        "request_memory": f"{memory}MB" if memory else "",
        "request_gpus": str(ask.gpus or ""),
        **{f"request_{what}": str(count) for what, count in ask.device_counts},
        "accounting_group": group,
        "periodic_remove": _limit(ask.seconds),
        "queue": str(ask.nodes),
    }
    return "".join(
        f"{name} {value}\n" if name == "queue" else f"{name} = {value}\n"
        for name, value in lines.items()
        if value
    )


def _limit(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"JobStatus == 2 && time() - JobCurrentStartDate > {math.ceil(seconds)}"


def _quoted(word: str) -> str:
    """In the new syntax of arguments: between single quotes, which are doubled as double ones."""
    if "\n" in word:
        raise SliceRefused(f"HTCondor takes no line breaks in arguments: {word!r:.80}")
    return "'" + word.replace("'", "''").replace('"', '""') + "'"


def cancel_words(job: str) -> Argv:
    """A cluster with all its jobs, or one of them, as in `17.0`."""
    return ("condor_rm", job)


def jobs_words(*, job: str = "", name: str = "") -> Argv:
    """Those that wait or run; condor_history knows the others."""
    which = [job] if job else ["-constraint", f'JobBatchName == "{name}"'] if name else []
    return ("condor_q", "-json", "-attributes", _OF_JOBS, *which)


def nodes_words() -> Argv:
    return ("condor_status", "-json", "-attributes", _OF_NODES)


# ---- answers ----


def read_submitted(text: str) -> str:
    """The cluster's number, of `17.0 - 17.3`. Raises SliceRefused if there is none."""
    first = text.strip().rpartition("\n")[2].partition(".")[0]
    if not first.isdecimal():
        raise SliceRefused(f"HTCondor names no job: {text!r:.80}")
    return first


def phase_of(state: str) -> JobPhase:
    """Of a state by name; a number that is not known is its own name."""
    return next((phase for name, phase in _STATES.values() if name == state), "unknown")


def read_jobs(text: str) -> tuple[Job, ...]:
    """Of `jobs_words`: one for each node of a cluster."""
    return tuple(_job(ad) for ad in _ads(text))


def _job(ad: Mapping[str, Any]) -> Job:
    number = ad.get("JobStatus")
    state, phase = _STATES.get(number, (str(number), "unknown")) if number else ("", "unknown")
    return Job(
        id=f"{ad.get('ClusterId', '')}.{ad.get('ProcId', '')}",
        name=str(ad.get("JobBatchName", "")),
        state=state,
        phase=phase,
        nodes=node_names("HTCondor", [_machine(str(ad.get("RemoteHost", "")))]),
        reason=str(ad.get("HoldReason", "")),
    )


def _machine(slot: str) -> str:
    """Of `slot1_2@n1`."""
    return slot.rpartition("@")[2]


def read_nodes(text: str) -> tuple[NodeInfo, ...]:
    """Of `nodes_words`, which has an ad for each slot of a machine."""
    slots: dict[str, list[Mapping[str, Any]]] = {}
    for ad in _ads(text):
        slots.setdefault(str(ad.get("Machine", "")), []).append(ad)
    return tuple(_node(name, ads) for name, ads in slots.items() if name)


def _node(name: str, ads: list[Mapping[str, Any]]) -> NodeInfo:
    used = [ad for ad in ads if ad.get("SlotType") != "Partitionable"] or ads
    states = dict.fromkeys(f"{ad.get('State', '')} {ad.get('Activity', '')}".strip() for ad in used)
    return NodeInfo(
        name=node_names("HTCondor", [name])[0],
        cores=_most(ads, "TotalCpus"),
        memory_bytes=_most(ads, "TotalMemory") << 20,
        gpus=_most(ads, "TotalGPUs"),
        state=", ".join(states),
    )


def _most(ads: list[Mapping[str, Any]], what: str) -> int:
    values = (ad.get(what, 0) for ad in ads)
    numbers = (value for value in values if isinstance(value, (int, float)))
    return int(max((value for value in numbers if 0 < value < math.inf), default=0))


def _ads(text: str) -> Iterator[Mapping[str, Any]]:
    """Nothing is printed where there is none."""
    try:
        found = json.loads(text[max(text.find("["), 0) :]) if text.strip() else []
    except ValueError as error:
        raise SliceRefused(f"HTCondor answers no JSON that can be read: {error}") from None
    return (ad for ad in found if isinstance(ad, dict))


_SAYS: tuple[tuple[ComplaintKind, str], ...] = (
    ("gone", r"couldn't find/\w+ all jobs|not found|no jobs? match"),
    (
        "unreachable",
        r"failed to connect|can't (?:find address|connect)|couldn't contact|unable to locate"
        r"|failed to (?:fetch ads|end transaction)|authentication|communication error",
    ),
    ("refused", r"error: |error on line|invalid|permission denied|not authorized"),
)


def read_complaint(text: str) -> Complaint:
    """Its last line says most; which kind it is, any line may."""
    return classify_complaint(text, _SAYS, r"(?:-- |ERROR: )+")
