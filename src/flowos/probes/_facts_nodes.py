"""Memory nodes from sysfs: their CPUs, size and kind.

Linux Documentation/admin-guide/mm/numaperf.rst (the nearest CPUs of a node, and its speed);
/proc/driver/nvidia/gpus/*/numa_status for memory of GPUs.
"""

import re
from collections.abc import Mapping
from typing import Literal

from flowos.model import NumaNode
from flowos.probes._facts_tree import Tree, cpu_list, kilobytes, number

Kind = Literal["", "HBM", "NVM", "GPU"]

_NODE = "/sys/devices/system/node/node"
_CLEARLY_FASTER = 2.0
"""HBM has at least this multiple of the slowest node's read bandwidth: DDR channels differ less."""
_XEON_PHI = re.compile(r"(?m)^cpu family\s*: 6\nmodel\s*: (87|133)$")
"""The processor whose nodes without CPUs are MCDRAM, and whose firmware states no bandwidth."""


def nodes_of(tree: Tree, online: tuple[int, ...], memory_bytes: int) -> tuple[NumaNode, ...]:
    """Memory nodes, also those without CPUs; a single one for everything if none is listed."""
    own = own_cpus(tree, online)
    if not own:
        return (NumaNode(number=0, cpus=online, memory_bytes=memory_bytes),)
    kinds = _kinds(tree, own)
    return tuple(
        NumaNode(
            number=each,
            cpus=own[each] or (() if kinds[each] == "GPU" else _nearest(tree, each, own)),
            memory_bytes=_memory_bytes(tree, each, memory_bytes if own[each] == online else 0),
            kind=kinds[each],
        )
        for each in sorted(own)
    )


def own_cpus(tree: Tree, online: tuple[int, ...]) -> Mapping[int, tuple[int, ...]]:
    """Node -> its online CPUs, as the kernel lists them."""
    here = set(online)
    return {
        int(match[1]): tuple(cpu for cpu in cpu_list(text) if cpu in here)
        for match, text in tree.matching(rf"{_NODE}(\d{{1,6}})/cpulist")
    }


def _memory_bytes(tree: Tree, node: int, min_bytes: int) -> int:
    """As the node says, at least `min_bytes`: it may miss memory hot-added to a virtual machine."""
    return max(kilobytes(tree.text(f"{_NODE}{node}/meminfo"), "MemTotal") or 0, min_bytes)


def _nearest(tree: Tree, node: int, own: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """The nearest CPUs of a memory node without any: as firmware says, else by distance.

    Of the two classes of initiators in sysfs, access1 contains only CPUs.
    """
    for access in ("access1", "access0"):
        pattern = rf"{_NODE}{node}/{access}/initiators/node(\d{{1,6}})/cpulist"
        nearest = {cpu for m, _ in tree.matching(pattern) for cpu in own.get(int(m[1]), ())}
        if nearest:
            return tuple(sorted(nearest))
    rows = tree.text(f"{_NODE}{node}/distance").split()
    ways = {
        other: int(way)
        for other, way in zip(sorted(own), rows, strict=False)
        if own[other] and number(way) is not None
    }
    if len(set(ways.values())) < 2 < len(own):
        return ()  # equally far from all of them
    best = min(ways.values(), default=None)
    return tuple(sorted(cpu for other, way in ways.items() if way == best for cpu in own[other]))


def _kinds(tree: Tree, own: Mapping[int, tuple[int, ...]]) -> Mapping[int, Kind]:
    gpus = _nodes_in(
        tree, r"/proc/driver/nvidia/gpus/[^/]+/numa_status", r"(?m)^Node:\s*(\d{1,6})$"
    )
    persistent = _nodes_in(tree, r"/sys/devices/.*/ndbus\d+/.*/target_node", r"^(\d{1,6})$")
    rates = {node: _bandwidth(tree, node) for node in own if node not in gpus | persistent}
    slowest = min((rate for rate in rates.values() if rate), default=None)
    phi = _XEON_PHI.search(tree.text("/proc/cpuinfo")) is not None

    def kind(node: int) -> Kind:
        if node in gpus:
            return "GPU"
        if node in persistent:
            return "NVM"
        fast = slowest is not None and rates[node] >= _CLEARLY_FASTER * slowest
        return "HBM" if fast or (phi and not own[node]) else ""

    return {node: kind(node) for node in own}


def _nodes_in(tree: Tree, paths: str, what: str) -> set[int]:
    """The nodes that these files name."""
    found = (re.search(what, text) for _, text in tree.matching(paths))
    return {int(match[1]) for match in found if match}


def _bandwidth(tree: Tree, node: int) -> int:
    """Read bandwidth from the nearest CPUs, in MB/s; 0 if unknown."""
    rates = (tree.number(f"{_NODE}{node}/access{n}/initiators/read_bandwidth") for n in (1, 0))
    return next((rate for rate in rates if rate), 0)
