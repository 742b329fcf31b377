"""Ports of RDMA devices from sysfs: Documentation/ABI/stable/sysfs-class-infiniband of Linux."""

import re

from flowos.model import RdmaPort
from flowos.probes._facts_tree import Tree

_PORTS = r"/sys/class/infiniband/([^/]+)/ports/(\d{1,3})/state"
_RATE = re.compile(r"(\d{1,5}(?:\.\d)?) Gb/sec(?: \(([^()]*)\))?")
_DATA = {"": 0.8, "SDR": 0.8, "DDR": 0.8, "QDR": 0.8, "FDR": 64 / 66}
"""Speed of InfiniBand -> how much of its rate in sysfs is data (8b/10b, 64b/66b), where that is the
rate of all bits on the wire. Linux before 4.20 names no SDR."""


def rdma_of(tree: Tree) -> tuple[RdmaPort, ...]:
    """All ports, also those without a link."""
    return tuple(
        _port(tree, match[1], int(match[2]), text) for match, text in tree.matching(_PORTS)
    )


def port_words(port: RdmaPort) -> str:
    """Such as mlx5_0 port 1 (InfiniBand, 4X QDR)."""
    kind = ", ".join(filter(None, (port.link_layer, port.speed)))
    return f"{port.device} port {port.number}{f' ({kind})' if kind else ''}"


def _port(tree: Tree, device: str, number: int, state: str) -> RdmaPort:
    folder = f"/sys/class/infiniband/{device}/ports/{number}"
    layer, rate = tree.text(f"{folder}/link_layer"), _RATE.match(tree.text(f"{folder}/rate"))
    speed = (rate[2] or "") if rate else ""
    data = _DATA.get(speed.rpartition("X")[2].strip(), 1.0) if layer == "InfiniBand" else 1.0
    return RdmaPort(
        device=device,
        number=number,
        link_layer=layer,
        state=state.rpartition(":")[2].strip(),
        speed=speed,
        bytes_per_second=float(rate[1]) * data / 8 * 1e9 if rate else 0.0,
    )
