"""What the drivers of resource managers have in common: jobs, complaints, the shape of a driver.

What a resource manager says comes from outside: a name that could be taken for an option or a path
is refused, and a state that is not known is kept as it was read.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from flowos._dataclasses import dataclass
from flowos.model import Argv, Ask, DeviceNumbers, NodeInfo, SliceRefused, counted

JobPhase = Literal["waiting", "running", "ending", "over", "unknown"]
ComplaintKind = Literal["gone", "unreachable", "refused", "unknown"]

_NODE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
_NUMBER = re.compile(r"(\d{1,20}(?:\.\d+)?)([KMGTP]?)", re.IGNORECASE)
"""One of more digits may be infinite as a float."""
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of the queue. state: as its resource manager calls it. nodes: those that it has.

    left_seconds: infinite without a limit, None if it is not known. reason: why it waits.
    """

    id: str
    state: str
    phase: JobPhase
    name: str = ""
    nodes: tuple[str, ...] = ()
    left_seconds: float | None = None
    used_seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNode:
    """What a keeper says of its node: CPUs that steps may use; `proof`, the file that it was shown.

    our_address: of the machine that the keeper was started from. gpus: as CUDA_VISIBLE_DEVICES
    calls them.
    """

    name: str
    our_address: str
    cpus: tuple[int, ...]
    memory_bytes: int
    gpus: tuple[str, ...]
    proof: str = ""
    devices: DeviceNumbers = ()
    switch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What a command says on its standard error.

    gone: there is no such job. unreachable: it may be well later. refused: never.
    """

    kind: ComplaintKind
    text: str


class Allocator(Protocol):
    """A module of drivers/allocators, as far as all are alike.

    Those whose command stays until the job's end, with our standard input (Slurm, Grid Engine, LSF)
    have `hold_words`; the others have `submit_words` and `read_submitted`.
    """

    def jobs_words(self, *, job: str = "", name: str = "") -> Argv:
        """Ask for jobs by number or by name. What cannot search for a name answers all of ours."""
        ...

    def read_jobs(self, text: str) -> tuple[Job, ...]:
        """Of `jobs_words`. Raises SliceRefused for a name that no node has, or no such answer."""
        ...

    def read_nodes(self, text: str) -> tuple[NodeInfo, ...]:
        """Of `nodes_words`. A state says why, where the resource manager does."""
        ...

    def cancel_words(self, job: str) -> Argv:
        """End a job, whether it waits or runs."""
        ...

    def phase_of(self, state: str) -> JobPhase:
        """Of a state as it is printed; "unknown" for one that is not known."""
        ...

    def read_complaint(self, text: str) -> Complaint:
        """Of a command's standard error."""
        ...


def phase_table(phases: Mapping[JobPhase, str]) -> Mapping[str, JobPhase]:
    """State -> phase, of the states of each phase."""
    return {state: phase for phase, states in phases.items() for state in states.split()}


def node_names(who: str, names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in order. Raises SliceRefused if one is no node's name."""
    found = tuple(dict.fromkeys(name for name in names if name))
    for name in found:
        if not is_node_name(name):
            raise SliceRefused(f"{who} names a node {name!r:.80}, which is no node's name")
    return found


def is_node_name(name: str) -> bool:
    return _NODE_NAME.fullmatch(name) is not None


def read_amount(text: str) -> float | None:
    """Of `4000M`, `1.5G`, `4`; powers of 1024, as resource managers have them."""
    match = _NUMBER.fullmatch(text.strip())
    return None if match is None else float(match[1]) * _SCALE[match[2].upper()]


def read_clock(text: str) -> float | None:
    """Seconds of `100:00:00` or `1:30:00`; None of anything else."""
    match = re.fullmatch(r"(\d{1,6}):(\d\d):(\d\d)", text.strip())
    if match is None:
        return None
    hours, minutes, seconds = map(int, match.groups())
    return float((hours * 60 + minutes) * 60 + seconds)


def classify_complaint(
    text: str, patterns: Sequence[tuple[ComplaintKind, str]], noise: str
) -> Complaint:
    """Its last line says most, without noise at its start; which kind it is, any line may."""
    lines = [re.sub(f"^(?:{noise})", "", line.strip()) for line in text.splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    for kind, pattern in patterns:
        if re.search(pattern, text, re.IGNORECASE):
            return Complaint(kind=kind, text=last)
    return Complaint(kind="unknown", text=last)


def no_such(what: str, name: str, names: Sequence[str]) -> str:
    """That the cluster has no such thing, with the nearest name that it has."""
    known = nearest(name, names) or f"there are {', '.join(names) or 'none'}"
    return f"the cluster has no {what} {name!r}; {known}"


def not_for(where: str, what: str, name: str, names: Sequence[str]) -> str:
    """That this is for others only, with the nearest of them."""
    known = nearest(name, names) or f"it is for {', '.join(names)}"
    return f"{where} is not for {what} {name!r}; {known}"


def nearest(name: str, names: Sequence[str]) -> str:
    """The nearest of these names as a question, or ""."""
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else ""


def no_device(asked: Iterable[tuple[str, int]], nodes: Sequence[NodeInfo]) -> str:
    """That no node has a device of some name, with the nearest name, or ""."""
    names = sorted({name for node in nodes for name, _ in node.devices} - {"gpu"})
    missing = next((name for name, _ in asked if name not in names), None)
    if missing is None:
        return ""
    known = nearest(missing, names) or f"they have {', '.join(names) or 'none'}"
    return f"no node has a device {missing!r}; {known}"


def refuse_topology(who: str, ask: Ask) -> None:
    """Raises SliceRefused if nodes are to be near to each other, or far."""
    if ask.topology:
        raise SliceRefused(f"topology={ask.topology!r}: {who} does not place nodes")


def lacking(each: Ask, nodes: Sequence[NodeInfo]) -> str:
    """That fewer of these nodes than asked for have what each has to have, or "".

    With what the largest one lacks, by what is asked for.
    """
    if unknown := no_device(each.device_counts, nodes):
        return unknown
    largest = sorted(nodes, key=lambda node: _shares(each, node), reverse=True)
    lacks = [complaint for complaint in map(each.lacks, largest) if complaint]
    have = len(nodes) - len(lacks)
    if have >= each.nodes:
        return ""
    why = f": {lacks[0]}" if lacks else ""
    asked = f"{counted(each.nodes, 'node')} asked for"
    return f"{asked}, {have} of {len(nodes)} have what each has to have{why}"


def _shares(asked: Ask, node: NodeInfo) -> tuple[float, ...]:
    """How much of what is asked for it has, what fewer have first."""
    has = dict(node.devices)
    pairs = [(has.get(name, 0), count) for name, count in asked.device_counts]
    pairs += [(node.gpus, asked.gpus), (node.memory_bytes, asked.memory_bytes)]
    pairs += [(node.cores, asked.cores or 0)]
    return tuple(min(1.0, own / count) if count else 1.0 for own, count in pairs)
