"""Cores, sockets and caches from sysfs (Linux Documentation/ABI/stable, cputopology).

Core numbers of the kernel are unique only in a socket, on Arm not even there, and s390, POWER and
Itanium give no number of a socket, so both are identified by the CPUs that share them, and numbered
anew from 0 in the order of the CPUs.
"""

import re
from collections.abc import Mapping
from typing import Literal

from flowos.model import Cache, LogicalCpu
from flowos.probes._facts_nodes import own_cpus
from flowos.probes._facts_tree import Tree, renumbered, size_bytes

Kind = Literal["", "performance", "efficiency"]

_CPUS = "/sys/devices/system/cpu"
_CLEARLY_SLOWER = 0.85
"""Share of the fastest core: cores of one kind differ by a few percent, kinds by a quarter."""


def online_cpus(tree: Tree, processors: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The CPUs that are online, from the best source available."""
    described = {
        int(match[1]) for match, _ in tree.matching(rf"{_CPUS}/cpu(\d{{1,6}})/topology/.*")
    }
    sources = (tree.cpus(f"{_CPUS}/online"), tuple(sorted(described)), processors)
    return next((found for found in sources if found), tuple(range(count)))


def cpus_of(tree: Tree, online: tuple[int, ...]) -> tuple[LogicalCpu, ...]:
    here = frozenset(online)
    cores = renumbered({n: _core_key(tree, n, here) for n in online})
    sockets = renumbered({n: _socket_key(tree, n, here) for n in online})
    nodes = {cpu: node for node, cpus in own_cpus(tree, online).items() for cpu in cpus}
    kinds = _kinds(tree, online)
    return tuple(
        LogicalCpu(
            number=n,
            core=cores[n],
            socket=sockets[n],
            node=nodes.get(n, 0),
            kind=kinds.get(n, ""),
            nominal_hz=_highest_hz(tree, n),
        )
        for n in online
    )


def _topology(tree: Tree, cpu: int, name: str) -> int:
    found = tree.number(f"{_CPUS}/cpu{cpu}/topology/{name}")
    return -1 if found is None else found


def _first_sharer(tree: Tree, cpu: int, name: str, online: frozenset[int]) -> int | None:
    """The first online CPU of a list to which the CPU itself must belong."""
    siblings = online.intersection(tree.cpus(f"{_CPUS}/cpu{cpu}/topology/{name}"))
    return min(siblings) if cpu in siblings else None


def _socket_key(tree: Tree, cpu: int, online: frozenset[int]) -> object:
    """The first online CPU of those that share the socket; else the kernel's number."""
    first = _first_sharer(tree, cpu, "core_siblings_list", online)
    return (
        ("number", max(0, _topology(tree, cpu, "physical_package_id"))) if first is None else first
    )


def _core_key(tree: Tree, cpu: int, online: frozenset[int]) -> object:
    """The first online CPU of those that share the core; else the kernel's numbers; else itself."""
    first = _first_sharer(tree, cpu, "thread_siblings_list", online)
    if first is not None:
        return first
    names = ("physical_package_id", "die_id", "core_id")
    package, die, core = (_topology(tree, cpu, name) for name in names)
    return cpu if core < 0 else ("core", package, die, core)


def _highest_hz(tree: Tree, cpu: int) -> float | None:
    khz = tree.number(f"{_CPUS}/cpu{cpu}/cpufreq/cpuinfo_max_freq")
    return khz * 1e3 if khz is not None and khz > 0 else None


def _kinds(tree: Tree, online: tuple[int, ...]) -> Mapping[int, Kind]:
    """The kinds of cores of a hybrid processor: as the kernel says, else by capacity or clock."""
    atoms = set(tree.cpus("/sys/devices/cpu_atom/cpus"))
    cores = set(tree.cpus("/sys/devices/cpu_core/cpus"))
    if atoms and cores:
        return {n: "efficiency" if n in atoms else "performance" for n in online}
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        speeds = {n: tree.number(f"{_CPUS}/cpu{n}/{name}") or 0 for n in online}
        best = max(speeds.values(), default=0)
        slow = {n for n, speed in speeds.items() if speed < _CLEARLY_SLOWER * best}
        if slow and all(speeds.values()):
            return {n: "efficiency" if n in slow else "performance" for n in online}
    return {}


def caches_of(tree: Tree, online: tuple[int, ...]) -> tuple[Cache, ...]:
    """Each cache once, by level, kind and first CPU; those of unknown size are left out."""
    found: dict[tuple[int, str, tuple[int, ...]], Cache] = {}
    here = set(online)
    pattern = rf"({_CPUS}/cpu(\d{{1,6}})/cache/index\d{{1,4}})/size"
    for match, text in tree.matching(pattern):
        at, cpu = match[1], int(match[2])
        level, size = tree.number(f"{at}/level"), size_bytes(text)
        if cpu not in here or not level or level < 0 or not size:
            continue
        kind = _cache_kind(tree.text(f"{at}/type"))
        listed = tree.cpus(f"{at}/shared_cpu_list")
        shared = tuple(n for n in listed if n in here) or (cpu,)
        found[level, kind, shared] = Cache(
            level=level,
            kind=kind,
            size_bytes=size,
            line_bytes=tree.number(f"{at}/coherency_line_size") or 64,
            cpus=shared,
        )
    return tuple(sorted(found.values(), key=lambda c: (c.level, c.kind, c.cpus)))


def _cache_kind(text: str) -> Literal["data", "instruction", "unified"]:
    if text == "Data":
        return "data"
    return "instruction" if text == "Instruction" else "unified"


def processors_of(cpuinfo: str) -> tuple[int, ...]:
    """The CPUs that /proc/cpuinfo lists."""
    return tuple(sorted({int(n) for n in re.findall(r"(?m)^processor\s*:\s*(\d{1,6})$", cpuinfo)}))
