"""What is known of the nodes of a Slurm job: keepers' lines, addresses, what the cluster can do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flowos.drivers._allocators import read_amount
from flowos.drivers._slurm_values import read_hosts, read_pairs
from flowos.model import Argv


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConfig:
    """binds: whether steps can be bound to CPUs."""

    binds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNode:
    """What a keeper says of its node: CPUs that steps may use; `proof`, the file that it was shown.

    our_address: of the machine that srun was started on.
    """

    name: str
    our_address: str
    cpus: tuple[int, ...]
    memory_bytes: int
    gpus: int
    proof: str = ""


def addresses_words(nodes: Sequence[str]) -> Argv:
    return ("scontrol", "show", "node", "--oneliner", ",".join(nodes))


def config_words() -> Argv:
    return ("scontrol", "show", "config")


def read_keeper(words: Sequence[str]) -> tuple[str, KeptNode] | None:
    """The job and the node of a keeper's line; None if it is cut off.

    words: job, node, our address, CPUs as in `0-3,8`, KiB of memory, MiB of it for the job (0 is
    all), GPUs, and those of the proof.
    """
    if len(words) < 7:
        return None
    job, name, address, cpus, kib, mib, gpus, *proof = words
    whole, granted = int(read_amount(kib) or 0) << 10, int(read_amount(mib) or 0) << 20
    node = KeptNode(
        name=read_hosts(name)[0],
        our_address=address,
        cpus=tuple(int(cpu) for cpu in read_hosts(f"[{cpus}]")),
        memory_bytes=min(whole, granted) if granted else whole,
        gpus=int(read_amount(gpus) or 0),
        proof=" ".join(proof),
    )
    return job, node


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


def read_config(text: str) -> SlurmConfig:
    """Of `config_words`."""
    pairs = (line.partition("=") for line in text.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs}
    plugins = found.get("TaskPlugin", "affinity")
    return SlurmConfig(binds=bool(re.search("affinity|cgroup", plugins)))


def read_lost(line: str) -> tuple[str, ...]:
    """The nodes that srun says have failed under a step that goes on without them."""
    match = _LOST.search(line)
    return read_hosts(match["nodes"]) if match else ()


_LOST = re.compile(r"Node failure on (?P<nodes>\S+?)\.?$", re.IGNORECASE)
