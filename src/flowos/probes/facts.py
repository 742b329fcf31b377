"""Converts the collector's output to Facts: pure, and never raises.

The collector is programs/collect.py; its JSON output is the only input.
"""

import re
from collections.abc import Mapping, Sequence

from flowos._dataclasses import dataclass, replace
from flowos.model import Argv, Facts, Memory, Tried
from flowos.probes._facts_memory import memory_limit_of, nominal_memory, quota_of
from flowos.probes._facts_missing import NOT_IN_TIME, missing_figures, missing_of, remedies_for
from flowos.probes._facts_nodes import nodes_of
from flowos.probes._facts_processor import (
    blocks_of,
    gpus_of,
    hypervisor_of,
    instruction_sets_of,
    model_of,
)
from flowos.probes._facts_rdma import rdma_of
from flowos.probes._facts_software import compilers_of, cuda_of, libraries_of, mpis_of, tools_of
from flowos.probes._facts_storage import storage_of
from flowos.probes._facts_topology import caches_of, cpus_of, online_cpus, processors_of
from flowos.probes._facts_tree import MAX_CPUS, Tree, cpu_list, entries, kilobytes, texts

Nominal = Sequence[tuple[str, float]]

MEMORY_NOMINAL, CLOCK_NOMINAL = "memory_bytes_per_second", "clock_hz"


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalSpeed:
    """A speed of a data sheet: its range over all machines, and how it is written."""

    low: float
    high: float
    unit: str
    example: str


NOMINAL = {
    CLOCK_NOMINAL: NominalSpeed(low=1e8, high=1e10, unit="Hz", example="2.4e9"),
    MEMORY_NOMINAL: NominalSpeed(low=1e8, high=1e14, unit="byte/s", example="51.2e9"),
}
"""`MeasurementRequest.nominal`: values to give if the machine does not report them."""


def read_facts(collected: Mapping[str, object], nominal: Nominal = (), of_pool: Argv = ()) -> Facts:
    """Facts of a node; what is absent or unreadable is in `missing`. `nominal` has precedence.

    of_pool: as of `measure_command`, for remedies.
    """
    tree = Tree(texts(collected.get("files")))
    software = {p: entries(collected.get(p)) for p in ("compilers", "mpis", "libraries", "tools")}
    facts = replace(
        with_nominal(_hardware(collected, tree), nominal),
        compilers=compilers_of(software["compilers"]),
        mpis=mpis_of(software["mpis"]),
        blas=libraries_of(software["libraries"]),
        tools=tools_of(software["tools"]),
        cuda=cuda_of(entries(collected.get("cuda"))),
        tried=_tried(collected.get("tried")),
        storage=storage_of(collected.get("storage"), tree.text("/proc/self/mountinfo")),
    )
    by = remedies_for(tree.text("/etc/os-release"), collected.get("uid"), of_pool)
    if collected.get("software_fails"):
        return replace(facts, missing=(NOT_IN_TIME, *missing_figures(facts, tree, by)))
    return replace(facts, missing=missing_of(facts, tree, software, by))


def with_nominal(facts: Facts, nominal: Nominal) -> Facts:
    """The facts with the given speeds of memory (byte/s) and clock (Hz)."""
    given = dict(nominal)
    memory, clock = given.get(MEMORY_NOMINAL), given.get(CLOCK_NOMINAL)
    if memory is not None:
        facts = replace(facts, memory=Memory(bytes_per_second=memory, source="given"))
    if clock is not None:
        facts = replace(facts, cpus=tuple(replace(cpu, nominal_hz=clock) for cpu in facts.cpus))
    return facts


def _hardware(collected: Mapping[str, object], tree: Tree) -> Facts:
    system, host, kernel, _, machine = _uname(collected.get("uname"))
    cpuinfo = tree.text("/proc/cpuinfo")
    blocks = blocks_of(cpuinfo)
    online = online_cpus(tree, processors_of(cpuinfo), _count(collected.get("cpu_count")))
    allowed = _allowed(tree, online)
    memory_bytes = kilobytes(tree.text("/proc/meminfo"), "MemTotal") or 0
    return Facts(
        host=host,
        system=_distribution(tree) or system,
        kernel=kernel,
        architecture=machine,
        cpu_model=model_of(tree, blocks, machine),
        cpus=cpus_of(tree, online),
        allowed=allowed,
        quota_cpus=_binding(quota_of(tree), allowed),
        memory_bytes=memory_bytes,
        memory_limit_bytes=memory_limit_of(tree, memory_bytes),
        caches=caches_of(tree, online),
        nodes=nodes_of(tree, online, memory_bytes),
        instruction_sets=instruction_sets_of(blocks, allowed),
        memory=nominal_memory(texts(collected.get("binaries"))),
        hypervisor=hypervisor_of(tree, blocks, texts(collected.get("commands")).get("lscpu", "")),
        gpus=gpus_of(tree),
        rdma=rdma_of(tree),
    )


def _uname(raw: object) -> tuple[str, str, str, str, str]:
    names = [str(each) for each in raw] if isinstance(raw, list) else []
    system, host, kernel, version, machine, *_ = [*names, "", "", "", "", ""]
    return system, host, kernel, version, machine


def _count(raw: object) -> int:
    return min(raw, MAX_CPUS) if isinstance(raw, int) and raw > 0 else 1


def _distribution(tree: Tree) -> str:
    match = re.search(r'(?m)^PRETTY_NAME="?([^"\n]*)', tree.text("/etc/os-release"))
    return match[1] if match else ""


def _allowed(tree: Tree, online: tuple[int, ...]) -> tuple[int, ...]:
    """The online CPUs of our cpuset; all of them if it is unknown."""
    match = re.search(r"(?m)^Cpus_allowed_list:(.*)$", tree.text("/proc/self/status"))
    ours = set(cpu_list(match[1])) if match else set()
    return tuple(n for n in online if n in ours) or online


def _binding(quota: float | None, allowed: tuple[int, ...]) -> float | None:
    """The quota, if it is less than the CPUs that we may run on."""
    return quota if quota is not None and quota < len(allowed) else None


def _tried(raw: object) -> tuple[Tried, ...]:
    if not isinstance(raw, Mapping):
        return ()
    return tuple(
        Tried(name=str(name), works=answer.get("works") is True, says=str(answer.get("says", "")))
        for name, answer in raw.items()
        if isinstance(answer, Mapping)
    )
