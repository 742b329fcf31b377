"""Slurm's command lines, and what its commands answer: 19.05 to 26.05 print these alike.

Answers are asked for in columns, free text in the last one: in `scontrol show job` a job's name
can look like any other field. A state that is not known here is kept as it was read.
"""

import math
import re
from typing import Literal

from flowos._dataclasses import dataclass, replace
from flowos.drivers._allocators import (
    Complaint,
    ComplaintKind,
    Job,
    classify_complaint,
    lacking,
    no_such,
    not_for,
    read_amount,
)
from flowos.drivers._slurm_values import (
    phase_of as phase_of,
)
from flowos.drivers._slurm_values import (
    read_gres,
    read_hosts,
    read_pairs,
    read_seconds,
    write_seconds,
)
from flowos.model import Argv, Ask, NodeInfo, Pool, counted

_JOBS = "%A|%T|%N|%L|%M|%r"
_NODES = "%N|%T|%c|%m|%G|%E"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPartition:
    """max_nodes, max_seconds: of a job, infinite without a limit. accounts, qos: () for all."""

    name: str
    nodes: int
    max_nodes: float
    max_seconds: float
    is_up: bool
    is_default: bool
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()


# ---- command lines ----


def hold_words(
    pool: Pool,
    ask: Ask,
    name: str,
    keeper: Argv,
    *,
    has_tree: bool = False,
    have_memory: bool = False,
) -> Argv:
    """Hold nodes until the keeper's end, one keeper a node, which reads our standard input.

    has_tree: the cluster knows its switches, and packs nodes by itself. have_memory: every node of
    the partition has the memory that is asked for: all of it is asked for then, as nodes are whole.

    `--no-kill`: without it one node that is lost ends the whole job. Not `salloc`: what it holds
    stays held when it is killed, and its steps do not wait for nodes that are powered up.
    """
    return (
        "srun",
        *("--no-kill", f"--job-name={name}", f"--nodes={ask.nodes}", "--ntasks-per-node=1"),
        *("--exclusive", "--mpi=none", "--input=all", "--kill-on-bad-exit=0"),
        *_options(pool, ask, have_memory),
        *_topology(ask, has_tree),
        *keeper,
    )


def by_hand_words(pool: Pool, command: Argv) -> Argv:
    """A program on one node of the pool, as a person starts it."""
    return ("srun", "--nodes=1", "--ntasks=1", "--exclusive", *_options(pool, Ask()), *command)


def trial_words(pool: Pool) -> Argv:
    """Would Slurm take a job of this pool? None is started."""
    return ("srun", "--test-only", *by_hand_words(pool, ("true",))[1:])


def join_words(
    job: str, nodes: tuple[str, ...], keeper: Argv, *, binds: bool, overlaps: bool
) -> Argv:
    """Start keepers on nodes of a job that is there, next to its other steps.

    binds: the cluster binds steps, which would be to the CPUs of one task. overlaps: see
    `SlurmConfig`.
    """
    return (
        *("srun", f"--jobid={job}", *("--overlap",) * overlaps, "--no-kill"),
        *(f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}", "--ntasks-per-node=1"),
        *("--mpi=none", "--input=all", "--kill-on-bad-exit=0"),
        *("--cpu-bind=none",) * binds,
        *keeper,
    )


def _options(pool: Pool, ask: Ask, have_memory: bool = False) -> Argv:
    memory = "0" if have_memory else f"{math.ceil(ask.memory_bytes / 2**20)}M"
    seconds = pool.seconds_of(ask)
    options = (
        ("partition", pool.partition),
        ("account", pool.account),
        ("qos", pool.qos),
        ("constraint", "&".join(filter(None, (pool.constraint, ask.kernel)))),
        ("gres", ",".join(_gres(pool, ask))),
        ("mincpus", str(ask.cores or pool.cores or "")),
        ("mem", memory * (ask.memory_bytes > 0)),
        ("time", "" if seconds is None else write_seconds(seconds)),
    )
    return tuple(f"--{name}={value}" for name, value in options if value)


def _gres(pool: Pool, ask: Ask) -> list[str]:
    """Those of the pool; of a name of which more is asked for, that. Slurm would add them up.

    Of the pool's type, if it has one of that name.
    """
    has = read_gres(pool.gres)
    asked = (("gpu", ask.gpus), *ask.device_counts)
    more = {name: count for name, count in asked if count > has.get(name, 0)}
    ours = [one.split(":") for one in pool.gres.split(",") if one]
    left = [":".join(words) for words in ours if words[0] not in more]
    for name, count in more.items():
        types = {":".join(words[1:2]) for words in ours if words[0] == name}
        kinds = [kind for kind in types if kind and not kind.isdecimal()]
        left.append(":".join((name, *(kinds if len(types) == 1 else ()), str(count))))
    return left


def _topology(ask: Ask, has_tree: bool) -> Argv:
    """`--contiguous` is of nodes in the order of their names, and undoes what the tree packs."""
    if ask.topology == "pack":
        return () if has_tree else ("--contiguous",)
    return {"": (), "spread": ("--spread-job",), "switch": ("--switches=1",)}[ask.topology]


def job_name(slice: str) -> str:
    return f"flowos-{slice}"


def job_names(slice: str, count: int) -> str:
    """Of its first jobs, as `--name` takes them: later ones come when it is made larger."""
    later = (f"{job_name(slice)}-{number}" for number in range(2, count + 1))
    return ",".join((job_name(slice), *later))


def ping_words() -> Argv:
    return ("scontrol", "ping")


def munge_words(seconds: float) -> Argv:
    """Ask for the complaint of munge, which all commands keep to themselves while they try."""
    return ("timeout", f"{seconds:g}", "scontrol", "-vv", "ping")


def keep_words(job: str, nodes: tuple[str, ...]) -> Argv:
    """Give back all nodes of a job but these."""
    return ("scontrol", "update", f"JobId={job}", f"NodeList={','.join(nodes)}")


def cancel_words(job: str) -> Argv:
    """Of a step too, as in `17.0`."""
    return ("scancel", job)


def jobs_words(*, job: str = "", name: str = "") -> Argv:
    """Ask for jobs by number or by name; Slurm knows those that are over for a while too."""
    which = (f"--jobs={job}",) if job else (f"--name={name}",)
    return ("squeue", "--noheader", "--states=all", *which, f"--format={_JOBS}")


def nodes_words(partition: str = "") -> Argv:
    """Of all partitions without a name: a node comes once for each."""
    which = (f"--partition={partition}",) * bool(partition)
    return ("sinfo", "--noheader", "--Node", *which, f"--format={_NODES}")


def partitions_words() -> Argv:
    return ("scontrol", "show", "partition", "--oneliner")


# ---- answers ----


def is_up(text: str) -> bool:
    """Of `ping_words`: whether one of the controllers is."""
    return re.search(r"\bUP\b", text) is not None


def read_munge(text: str) -> str:
    """Of the complaints of `munge_words`: that of munge, or ""."""
    match = re.search(r"Munge encode failed: .*?(?= \(retrying|$)", text, re.MULTILINE)
    return match[0] if match else ""


def read_jobs(text: str) -> tuple[Job, ...]:
    """Of `jobs_words`; other lines, as a site's greeting, are passed over."""
    rows = (line.split("|", 5) for line in text.splitlines())
    return tuple(
        Job(
            id=id,
            state=state,
            phase=phase_of(state),
            nodes=read_hosts(nodes),
            left_seconds=read_seconds(left),
            used_seconds=read_seconds(used),
            reason="" if reason == "None" else reason,
        )
        for id, state, nodes, left, used, reason in (row for row in rows if len(row) == 6)
    )


def read_nodes(text: str) -> tuple[NodeInfo, ...]:
    """Of `nodes_words`. A state says why, where Slurm does: `drained: fan broken`."""
    rows = (line.split("|", 5) for line in text.splitlines())
    return tuple(_node(*row) for row in rows if len(row) == 6)


def _node(names: str, state: str, cores: str, mib: str, gres: str, reason: str) -> NodeInfo:
    (name,) = read_hosts(names)[:1] or ("",)
    found = read_gres(gres)
    why = "" if reason in ("none", "") else f": {reason}"
    return NodeInfo(
        name=name,
        cores=int(read_amount(cores.rstrip("+")) or 0),
        memory_bytes=int(read_amount(mib.rstrip("+")) or 0) << 20,
        gpus=found.get("gpu", 0),
        devices=tuple(found.items()),
        state=state + why,
    )


def read_partitions(text: str) -> tuple[SlurmPartition, ...]:
    """Of `partitions_words`."""
    pairs = map(read_pairs, text.splitlines())
    return tuple(_partition(found) for found in pairs if "PartitionName" in found)


def _partition(found: dict[str, str]) -> SlurmPartition:
    seconds = read_seconds(found.get("MaxTime", ""))
    max_nodes = read_amount(found.get("MaxNodes", ""))
    return SlurmPartition(
        name=found["PartitionName"],
        nodes=int(read_amount(found.get("TotalNodes", "")) or 0),
        max_nodes=math.inf if max_nodes is None else max_nodes,
        max_seconds=math.inf if seconds is None else seconds,
        is_up=found.get("State", "UP") == "UP",
        is_default=found.get("Default") == "YES",
        accounts=_allowed(found.get("AllowAccounts", "ALL")),
        qos=_allowed(found.get("AllowQos", "ALL")),
    )


def _allowed(names: str) -> tuple[str, ...]:
    return () if names == "ALL" else tuple(names.split(","))


def read_waiting(line: str) -> tuple[Literal["waiting", "held"], str] | None:
    """What srun and salloc say of a job while they wait for it: its number."""
    match = _WAITS.search(line)
    if match is None:
        return None
    return ("held" if match["held"] or match["granted"] else "waiting"), match["job"] or match["id"]


_WAITS = re.compile(
    r"\bjob (?P<job>\d+) (?:queued and waiting|(?P<held>has been allocated))"
    r"|(?:Pending|(?P<granted>Granted)) job allocation (?P<id>\d+)"
)
_NOISE = r"slurm_load_\w+ error: |(?:\w+: )?(?:(?:error|fatal): )?"
_SAYS: tuple[tuple[ComplaintKind, str], ...] = (
    ("gone", r"invalid job id|job/step already completing|job allocation \d+ has been revoked"),
    (
        "unreachable",
        r"unable to contact slurm controller|socket timed out|connection refused|munge"
        r"|zero bytes were transmitted|temporarily|authentication",
    ),
    (
        "refused",
        r"unable to allocate|invalid (?:partition|account|qos|feature|generic resource)"
        r"|could not establish a configuration|unable to process configuration|storage is disabled"
        r"|not available|not permitted|can not be satisfied",
    ),
)


def read_complaint(text: str) -> Complaint:
    return classify_complaint(text, _SAYS, _NOISE)


def partition_of(pool: Pool, partitions: tuple[SlurmPartition, ...]) -> SlurmPartition | str:
    """The pool's partition, or why it cannot be used."""
    usable = [p for p in partitions if p.name == pool.partition or not pool.partition]
    found = next((p for p in usable if pool.partition or p.is_default), None)
    names = [p.name for p in partitions]
    if found is None and not pool.partition:
        return f"the cluster has no default partition; name one of {', '.join(names)}"
    if found is None:
        return no_such("partition", pool.partition, names)
    if not found.is_up:
        return f"partition {found.name!r} is not up"
    for what, name, allowed in (
        ("account", pool.account, found.accounts),
        ("qos", pool.qos, found.qos),
    ):
        if allowed and name and name not in allowed:
            return not_for(f"partition {found.name!r}", what, name, allowed)
    return found


def refusal(pool: Pool, ask: Ask, partition: SlurmPartition) -> str:
    """Why it can never give this, or "": Slurm itself would let the job wait for ever."""
    most = int(min(partition.nodes, partition.max_nodes))
    if ask.nodes > most:
        return f"{counted(ask.nodes, 'node')} asked for, partition {partition.name!r} gives {most}"
    seconds = pool.seconds_of(ask)
    if seconds is not None and seconds > partition.max_seconds:
        max_seconds = f"{partition.max_seconds:g} s at most"
        return f"{seconds:g} s asked for, partition {partition.name!r} gives {max_seconds}"
    return ""


def refusal_of_job(ask: Ask, id: str, jobs: tuple[Job, ...]) -> str:
    """Why the job around a program cannot give this, or "". jobs: those that Slurm knows of it."""
    if not jobs or jobs[0].phase in ("ending", "over") or jobs[0].left_seconds == 0:
        return f"the job of SLURM_JOB_ID={id} is over"
    job = jobs[0]
    if job.phase != "running":
        return f"the job of SLURM_JOB_ID={id} does not run, but is {job.state}"
    if ask.nodes > len(job.nodes):
        asked = counted(ask.nodes, "node")
        return f"{asked} asked for, job {id} around this program has {len(job.nodes)}"
    if ask.seconds is not None and job.left_seconds is not None and ask.seconds > job.left_seconds:
        left = f"ends in {job.left_seconds:g} s"
        return f"{ask.seconds:g} s asked for, job {id} around this program {left}"
    return ""


def too_few(pool: Pool, ask: Ask, nodes: tuple[NodeInfo, ...]) -> str:
    """That fewer of its nodes than asked for have what is asked for, or ""."""
    devices = dict(read_gres(pool.gres))
    for name, count in ask.device_counts:
        devices[name] = max(count, devices.get(name, 0))
    gpus = max(ask.gpus, devices.pop("gpu", 0))
    each = replace(ask, cores=ask.cores or pool.cores, gpus=gpus, devices=devices)
    return lacking(each, nodes)
