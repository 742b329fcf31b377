"""What is known of the nodes of a Slurm job: keepers' lines, addresses, what the cluster can do."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.drivers._allocators import KeptNode, read_amount
from flowos.drivers._slurm_values import MAX_NODES, read_gres, read_hosts, read_pairs
from flowos.model import Argv, Ask, DeviceNumbers, NodeInfo, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConfig:
    """binds: whether steps can be bound to CPUs. devices: whether nodes may have some, but GPUs.

    memory: whether a job is given some of its nodes' memory. boots: whether nodes may be booted
    into a kernel that a job asks for. overlaps: whether a step has to say that it shares CPUs with
    others; before Slurm 20.11 steps did, and had no word for it.
    """

    binds: bool = True
    devices: bool = True
    memory: bool = True
    boots: bool = False
    overlaps: bool = True


def limited(kept: KeptNode, memory_bytes: int) -> KeptNode:
    """A node whose job was given so much memory; 0: all."""
    known = [size for size in (kept.memory_bytes, memory_bytes) if size]
    return replace(kept, memory_bytes=min(known, default=0))


def granted(kept: KeptNode, info: NodeInfo | None) -> NodeInfo:
    """A node as far as it is ours. info: what all of it has; devices but GPUs are taken to be."""
    has = dict(info.devices if info else (), gpu=len(kept.gpus))
    return NodeInfo(
        name=kept.name,
        cores=len(kept.cpus),
        memory_bytes=kept.memory_bytes,
        gpus=len(kept.gpus),
        devices=tuple(has.items()),
    )


def addresses_words(nodes: Sequence[str]) -> Argv:
    return ("scontrol", "show", "node", "--oneliner", ",".join(nodes))


def job_nodes_words(job: str) -> Argv:
    """What a job has of each of its nodes."""
    return ("scontrol", "show", "job", "--details", "--oneliner", job)


def topology_words() -> Argv:
    return ("scontrol", "show", "topology")


def config_words() -> Argv:
    return ("scontrol", "show", "config")


def read_keeper(words: Sequence[str]) -> tuple[str, KeptNode] | None:
    """The step and the node of a keeper's line; None if it is cut off.

    words: step (`17.0`), node, our address, CPUs (`0-3,8`), how many of them are ours (0: all),
    KiB of memory, how many GPUs and which (`2:0,1`; `2:` where they have no numbers), its place
    among the switches (`top.leaf.n1`, `-`), those of the proof.
    """
    if len(words) < 8:
        return None
    step, name, address, cpus, count, kib, gpus, place, *proof = words
    allowed = tuple(int(cpu) for cpu in read_hosts(f"[{cpus}]"))
    node = KeptNode(
        name=read_hosts(name)[0],
        our_address=address,
        cpus=allowed[: int(read_amount(count) or 0) or len(allowed)],
        memory_bytes=int(read_amount(kib) or 0) << 10,
        gpus=_gpus(gpus),
        proof=" ".join(proof),
        switch=place.removesuffix(name).rstrip(".").rpartition(".")[2] if name in place else "",
    )
    return step, node


def _gpus(word: str) -> tuple[str, ...]:
    """Slurm names none of those that have no file in gres.conf."""
    count, _, names = word.partition(":")
    many = min(int(read_amount(count) or 0), MAX_NODES)
    named = tuple(names.split(","))
    return named if len(named) == many and all(named) else tuple(map(str, range(many)))


def read_addresses(text: str) -> dict[str, tuple[str, int]]:
    """Of `addresses_words`: where the slurmd of each node listens."""
    pairs = (read_pairs(line) for line in text.splitlines())
    return {
        found["NodeName"]: (
            found.get("NodeAddr", found["NodeName"]),
            int(read_amount(found.get("Port", "")) or SLURMD_PORT),
        )
        for found in pairs
        if "NodeName" in found
    }


SLURMD_PORT = 6818


def read_topology(text: str) -> dict[str, str]:
    """Of `topology_words`: the switch of each node; none of a cluster that does not know them."""
    pairs = map(read_pairs, text.splitlines())
    leaves = [found for found in pairs if found.get("Level") == "0" and "SwitchName" in found]
    return {
        node: found["SwitchName"] for found in leaves for node in read_hosts(found.get("Nodes", ""))
    }


def refusal_of_topology(ask: Ask, nodes: Sequence[str], switches: Mapping[str, str]) -> str:
    """Why no nodes can be so to each other, or "". Slurm itself would give some others."""
    if ask.topology != "switch":
        return ""
    if not switches:
        return "topology='switch': the cluster does not say which switches it has; use 'pack'"
    sizes = Counter(switches[node] for node in nodes if node in switches)
    (largest, most), *_ = sizes.most_common(1) or [("none", 0)]
    if ask.nodes <= most:
        return ""
    asked = f"{counted(ask.nodes, 'node')} asked for"
    return f"topology='switch': {asked}, the largest, {largest}, has {most}"


def has_devices(text: str) -> bool:
    """Of `addresses_words`: whether a node has a generic resource besides GPUs."""
    found = (read_gres(read_pairs(line).get("Gres", "")) for line in text.splitlines())
    return any(name != "gpu" for each in found for name in each)


def read_job_devices(text: str) -> dict[str, DeviceNumbers]:
    """Of `job_nodes_words`: which devices of each node are the job's, but GPUs.

    Those that have no number in the node's gres.conf, as it names no file, are numbered from 0.
    """
    found: dict[str, DeviceNumbers] = {}
    for nodes, gres in _NODES_GRES.findall(text):
        devices = (_ONE_GRES.fullmatch(one) for one in _GRES_ENTRY.findall(gres))
        numbers: dict[str, tuple[int, ...]] = {}
        for one in devices:
            if one is not None and one["name"] != "gpu":
                known = numbers.get(one["name"], ())
                numbers[one["name"]] = known + _device_numbers(one["idx"], one["count"], len(known))
        for name in read_hosts(nodes):
            found[name] = tuple(sorted(numbers.items()))
    return found


def _device_numbers(idx: str | None, count: str | None, first: int) -> tuple[int, ...]:
    if idx:
        return tuple(int(number) for number in read_hosts(f"[{idx}]"))
    many = min(int(read_amount(count or "") or 0), MAX_NODES)
    return tuple(range(first, first + many))


def read_job_memory(text: str) -> dict[str, int]:
    """Of `job_nodes_words`: how many bytes of each node's memory are the job's, if some are.

    No variable of a step says so.
    """
    found = _NODES_MIB.findall(text)
    return {name: int(mib) << 20 for nodes, mib in found for name in read_hosts(nodes)}


_NODES_MIB = re.compile(r"\bNodes=(\S+) CPU_IDs=\S* Mem=([1-9]\d*)")
_NODES_GRES = re.compile(r"\bNodes=(\S+) CPU_IDs=\S* Mem=\S* GRES(?:_IDX)?=(\S+)")
_GRES_ENTRY = re.compile(r"(?:\([^()]*\)|[^,()])+")
_ONE_GRES = re.compile(
    r"(?P<name>[A-Za-z_][\w-]*)[^()]*\((?:IDX:(?P<idx>[\d,-]+)|CNT:(?P<count>\d+)|[^()]*)\)"
)


def read_config(text: str) -> SlurmConfig:
    """Of `config_words`."""
    pairs = (line.partition("=") for line in text.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs}
    plugins = found.get("TaskPlugin", "affinity")
    version = re.match(r"(\d{1,4})\.(\d{1,2})", found.get("SLURM_VERSION", ""))
    return SlurmConfig(
        binds=bool(re.search("affinity|cgroup", plugins)),
        devices=found.get("GresTypes") not in ("(null)", "gpu"),
        memory="MEMORY" in found.get("SelectTypeParameters", "MEMORY"),
        boots="helpers" in found.get("NodeFeaturesPlugins", ""),
        overlaps=not version or tuple(map(int, version.groups())) >= _OVERLAPS,
    )


_OVERLAPS = 20, 11
"""The first Slurm with --overlap."""


def read_lost(line: str) -> tuple[str, ...]:
    """The nodes that srun says have failed under a step that goes on without them."""
    match = _LOST.search(line)
    return read_hosts(match["nodes"]) if match else ()


_LOST = re.compile(r"Node failure on (?P<nodes>\S+?)\.?$", re.IGNORECASE)


def read_end(text: str) -> str:
    """Why a step or a job was ended, of what its srun says, or "" if Slurm did not end it."""
    if failed := _NOT_LAUNCHED.search(text):
        return f"nothing can be started on node {failed['node']}: {failed['why']}"
    match = _ENDED.search(text)
    if match is None:
        return "its job was cancelled while it waited" if _GONE.search(text) else ""
    return "its job was cancelled" + (f" due to {match['why'].lower()}" if match["why"] else "")


_NOT_LAUNCHED = re.compile(
    r"Task launch for \S+ failed on node (?P<node>\S+): (?P<why>.*\S)", re.IGNORECASE
)
_GONE = re.compile(r"unable to allocate resources: job/step already completing", re.IGNORECASE)
_ENDED = re.compile(r"\*\*\* (?:JOB|STEP) .*CANCELLED AT \S+(?: DUE TO (?P<why>[A-Z ]*[A-Z]))?")
