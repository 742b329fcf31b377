"""Grid Engine's command lines, and what its commands answer: of 6.2, 8.1 and 8.6 alike.

Its columns cut names off, so that it is asked for XML where it has some that can be read: that of
`qstat -j` is broken.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from flowos._dataclasses import dataclass, replace
from flowos.drivers._allocators import (
    Complaint,
    ComplaintKind,
    Job,
    JobPhase,
    classify_complaint,
    node_names,
    read_amount,
    read_clock,
)
from flowos.model import Argv, Ask, NodeInfo, Pool, SliceRefused, counted

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

EXECD_PORT = 6445
"""On which an execd listens, unless SGE_EXECD_PORT says another one."""

_MIN_SECONDS = 60
"""Of a limit: what holds nodes ends sooner by itself, but not before they are there."""

_STATES = set("EhqRrsSTtwd")


@dataclass(frozen=True, slots=True, kw_only=True)
class SgeQueue:
    """A queue. max_seconds: of a job, infinite without a limit. parallel: names it may be used by.

    interactive: whether qrsh may use it.
    """

    name: str
    interactive: bool
    parallel: tuple[str, ...]
    max_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SgeParallel:
    """A parallel environment. slots: of all its jobs. rule: how it spreads a job's slots on nodes.

    slots_per_node: on each, where its rule says so; None if they come as they come.
    """

    name: str
    slots: int
    rule: str
    tight: bool

    @property
    def slots_per_node(self) -> int | None:
        return int(self.rule) if self.rule.isdecimal() else None


# ---- command lines ----


def hold_words(pool: Pool, ask: Ask, name: str, keeper: Argv, held: tuple[str, ...] = ()) -> Argv:
    """Hold nodes until the keeper's end, which runs on one of them and reads our standard input.

    pool.cores: slots of each node, as its parallel environment gives them (see `whole_nodes`). Not
    qsub: it gives a job no standard input, so that its nodes would stay held without us.
    """
    seconds = pool.seconds_of(ask)
    limits = [] if seconds is None else [f"h_rt={max(_MIN_SECONDS, round(seconds))}"]
    limits += [f"mem_total={ask.memory_bytes}"] * (ask.memory_bytes > 0)
    limits += [f"hostname=!({'|'.join(held)})"] * bool(held)
    return (
        "qrsh",
        *("-noshell", "-now", "no", "-w", "e", "-N", name, "-q", pool.queue),
        *("-pe", pool.pe, str(ask.nodes * (pool.cores or 1))),
        *(("-l", ",".join(limits)) if limits else ()),
        *keeper,
    )


def by_hand_words(pool: Pool, command: Argv) -> Argv:
    """A program on a node of the pool, as a person starts it; it gets one slot."""
    return ("qrsh", "-V", "-now", "no", "-q", pool.queue, *command)


def job_name(slice: str) -> str:
    return f"flowos-{slice}"


def start_words(node: str, command: Argv) -> Argv:
    """Start a task of a job that runs on one of its nodes; JOB_ID is the job's number."""
    return ("qrsh", "-inherit", "-noshell", node, *command)


def cancel_words(job: str) -> Argv:
    """A job's number, or its name: of all jobs of ours that are called so."""
    return ("qdel", job)


def jobs_words(*, job: str = "", name: str = "") -> Argv:  # noqa: ARG001 - it cannot choose
    """All jobs of ours that wait or run; those that are over are none of them."""
    return ("qstat", "-xml", "-g", "t")


def reason_words(job: str) -> Argv:
    """Of a job's number or name. See `read_reason`."""
    return ("qstat", "-j", job)


def nodes_words(queue: str) -> Argv:
    return ("qstat", "-f", "-xml", "-q", queue, "-F", "num_proc,mem_total")


def queues_words() -> Argv:
    return ("qconf", "-sql")


def queue_words(queue: str) -> Argv:
    return ("qconf", "-sq", queue)


def parallel_words(name: str) -> Argv:
    return ("qconf", "-sp", name)


# ---- answers ----


def phase_of(state: str) -> JobPhase:
    """Of the letters that qstat prints: `qw`, `hqw`, `Eqw`, `t`, `r`, `Rr`, `dr`, `S`.

    A job that is on its way to its nodes (`t`) has them.
    """
    letters = set(state)
    if state == "z":
        return "over"
    if not letters or letters - _STATES:
        return "unknown"
    if "d" in letters:
        return "ending"
    return "waiting" if letters & set("qw") else "running"


def read_jobs(text: str) -> tuple[Job, ...]:
    """Of `jobs_words`, which has a row for each slot."""
    rows: dict[str, list[Mapping[str, str]]] = {}
    for element in _elements(text, "job_list"):
        row = {child.tag: (child.text or "").strip() for child in element}
        rows.setdefault(row.get("JB_job_number", ""), []).append(row)
    return tuple(_job(id, found) for id, found in rows.items() if id)


def _job(id: str, rows: Sequence[Mapping[str, str]]) -> Job:
    state = rows[0].get("state", "")
    masters_first = sorted(rows, key=lambda row: row.get("master") != "MASTER")
    return Job(
        id=id,
        name=rows[0].get("JB_name", ""),
        state=state,
        phase=phase_of(state),
        nodes=_hosts(row.get("queue_name", "") for row in masters_first),
    )


def _hosts(instances: Iterator[str]) -> tuple[str, ...]:
    """Of `all.q@node`."""
    return node_names("Grid Engine", (one.rpartition("@")[2] for one in instances))


def read_nodes(text: str) -> tuple[NodeInfo, ...]:
    """Of `nodes_words`. cores: its slots, which is what Grid Engine gives."""
    return tuple(_node(element) for element in _elements(text, "Queue-List"))


def _node(element: "Element") -> NodeInfo:
    found = {child.get("name", child.tag): (child.text or "").strip() for child in element}
    (name,) = _hosts(iter([found.get("name", "")])) or ("",)
    slots, used = (int(read_amount(found.get(f"slots_{k}", "")) or 0) for k in ("total", "used"))
    free = "free" if used == 0 else f"{used} of {slots} slots used"
    return NodeInfo(
        name=name,
        cores=slots,
        memory_bytes=int(read_amount(found.get("mem_total", "")) or 0),
        state=state_text(found["state"]) if found.get("state") else free,
    )


_STATE_WORDS = {
    "a": "load alarm",
    "A": "suspend alarm",
    "c": "configuration is ambiguous",
    "C": "suspended by calendar",
    "d": "disabled",
    "D": "disabled by calendar",
    "E": "error",
    "o": "orphaned",
    "P": "preempted",
    "s": "suspended",
    "S": "subordinate",
    "u": "unreachable",
}


def state_text(letters: str) -> str:
    """`au` in words; a letter that is not known stays itself."""
    return ", ".join(_STATE_WORDS.get(letter, letter) for letter in letters)


def _elements(text: str, tag: str) -> Iterator["Element"]:
    from xml.etree.ElementTree import ParseError, fromstring

    start = text.find("<?xml")
    try:
        return fromstring(text[max(start, 0) :]).iter(tag)
    except ParseError as error:
        raise SliceRefused(f"Grid Engine answers no XML that can be read: {error}") from None


def read_port(text: str) -> int:
    """Of SGE_EXECD_PORT, which may be empty. Raises SliceRefused if it is no port."""
    if re.fullmatch(r"[0-9]{0,5}", text) is None or int(text or EXECD_PORT) not in range(1, 65536):
        raise SliceRefused(f"SGE_EXECD_PORT={text!r:.80}: expected a port, 1 to 65535")
    return int(text or EXECD_PORT)


def read_names(text: str) -> tuple[str, ...]:
    """Of `queues_words`."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def read_queue(text: str) -> SgeQueue:
    """Of `queue_words`. Of what differs on some hosts (`4,[n1=8]`) the general one counts."""
    found = _settings(text)
    limit = found.get("h_rt", "INFINITY").partition(",")[0]
    seconds = read_clock(limit)
    return SgeQueue(
        name=found.get("qname", ""),
        interactive="INTERACTIVE" in found.get("qtype", ""),
        parallel=tuple(
            name for name in re.split(r"[\s,]+|\[[^=\]]*=|\]", found.get("pe_list", "")) if name
        ),
        max_seconds=(read_amount(limit) or float("inf")) if seconds is None else seconds,
    )


def read_parallel(text: str) -> SgeParallel:
    """Of `parallel_words`."""
    found = _settings(text)
    return SgeParallel(
        name=found.get("pe_name", ""),
        slots=int(read_amount(found.get("slots", "")) or 0),
        rule=found.get("allocation_rule", ""),
        tight=found.get("control_slaves", "") == "TRUE",
    )


def _settings(text: str) -> Mapping[str, str]:
    lines = text.replace("\\\n", " ").splitlines()
    pairs = (line.split(None, 1) for line in lines)
    return {pair[0]: " ".join(pair[1].split()) for pair in pairs if len(pair) == 2}


_NO_REASON = "There are no messages available"


def read_reason(text: str) -> str:
    """Of `reason_words`: the last and most general one; "" where the scheduler keeps none."""
    lines = [line.strip() for line in text.partition("scheduling info:")[2].splitlines()]
    reasons = [line for line in lines if line and not line.startswith(("(", _NO_REASON))]
    return reasons[-1] if reasons else ""


_SAYS: tuple[tuple[ComplaintKind, str], ...] = (
    (
        "gone",
        r"denied: job \"|The job .* does not exist|Following jobs do not exist"
        r"|is already in deletion",
    ),
    (
        "unreachable",
        r"commlib error|unable to send message|can't connect|got (?:send|select|read) error"
        r"|connection refused|unable to contact qmaster|failed receiving gdi request",
    ),
    (
        "refused",
        r"job rejected|was rejected|no suitable queues|unknown resource|denied: host"
        r"|unknown queue|is not a parallel environment|no cluster queue|SGE_ROOT"
        r"|not allowed to run in any queue|not a valid object name",
    ),
)
_NOISE = (
    r"(?:(?:critical )?error: |Unable to run job: |job rejected: |denied: "
    r"|Job was rejected because )+"
)
_NO_MATTER = re.compile(r"^(?:Your (?:interactive )?job \d+ .*|Establishing .*|Exiting\.?)$", re.M)


def read_complaint(text: str) -> Complaint:
    """Its last line says most; which kind it is, any line may."""
    return classify_complaint(_NO_MATTER.sub("", text), _SAYS, _NOISE)


# ---- what a cluster can never give ----


def whole_nodes(pool: Pool, ask: Ask, parallel: SgeParallel) -> Pool | str:
    """The pool with the slots of each node, or why its environment does not give whole nodes."""
    each = parallel.slots_per_node
    if each is None and parallel.rule == "$pe_slots":
        one = replace(pool, cores=max(ask.cores or 1, pool.cores or 1))
        return one if ask.nodes == 1 else f"{_named(parallel)} gives slots of one node"
    if each is None:
        return (
            f"{_named(parallel)} gives slots as they come ({parallel.rule}); one whose "
            "allocation_rule is a number gives whole nodes"
        )
    return replace(pool, cores=each)


def _named(parallel: SgeParallel) -> str:
    return f"parallel environment {parallel.name!r}"


def refusal(pool: Pool, ask: Ask, queue: SgeQueue, parallel: SgeParallel) -> str:
    """Why they can never give this, or ""."""
    cores = pool.cores or 1
    if not queue.interactive:
        return f"queue {queue.name!r} takes no interactive jobs, which qrsh starts"
    if not parallel.tight and ask.nodes > 1:
        return f"{_named(parallel)} lets nothing start on further nodes (control_slaves FALSE)"
    if (ask.cores or 0) > cores:
        asked = counted(ask.cores or 0, "core")
        return f"{asked} asked for, {_named(parallel)} has {cores} of each node"
    if ask.nodes * cores > parallel.slots:
        asked = counted(ask.nodes, "node")
        return f"{asked} asked for, {_named(parallel)} has {counted(parallel.slots, 'slot')}"
    seconds = pool.seconds_of(ask)
    if seconds is not None and seconds > queue.max_seconds:
        most = f"{queue.max_seconds:g} s at most"
        return f"{seconds:g} s asked for, queue {queue.name!r} gives {most}"
    if ask.lease_seconds is not None:
        return "lease_seconds: what it holds ends with this program"
    if ask.topology:
        return f"topology={ask.topology!r}: Grid Engine does not place nodes"
    return ""
