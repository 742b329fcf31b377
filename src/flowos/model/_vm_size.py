"""Sizes of machines that clouds rent: what a catalogue promises of each, and what it costs."""

import math
from typing import Any

from flowos._dataclasses import dataclass, field
from flowos.model._pool import NodeInfo, check_currency

_KEPT_SHARE = 0.9
"""Of memory: the firmware, the kernel and Slurm's settings keep some of it."""


def _doc(sentence: str) -> dict[str, Any]:
    return {"doc": sentence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """An amount that a size promises, and what a node has of it."""

    what: str
    promised: int
    seen: int

    @property
    def is_kept(self) -> bool:
        least = self.promised * (_KEPT_SHARE if self.what == "bytes of memory" else 1.0)
        return self.seen >= least


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSize:
    """A size of machine in a region; an amount of 0 is not known.

    Raises ValueError for what cannot be.
    """

    name: str
    cloud: str = field(default="", metadata=_doc("whose it is, as in `azure`"))
    vcpus: int = field(default=0, metadata=_doc("hardware threads that it has"))
    memory_bytes: int = field(default=0, metadata=_doc("memory"))
    gpus: int = field(default=0, metadata=_doc("how many GPUs"))
    gpu: str = field(default="", metadata=_doc("which GPU, as in `H100`"))
    network_bytes: float | None = field(
        default=None, metadata=_doc("what its network carries a second")
    )
    region: str = field(default="", metadata=_doc("where it has this price"))
    price: float | None = field(default=None, metadata=_doc("of an hour"))
    spot: float | None = field(
        default=None, metadata=_doc("of an hour, where the cloud may take it back at any time")
    )
    currency: str = field(default="USD", metadata=_doc("as ISO 4217 has it"))
    source: str = field(default="", metadata=_doc("where and when that was read"))

    def __post_init__(self) -> None:
        amounts = {
            name: getattr(self, name)
            for name in ("vcpus", "memory_bytes", "gpus", "network_bytes", "price", "spot")
        }
        for name, amount in amounts.items():
            if amount is not None and not 0 <= amount < math.inf:
                raise ValueError(f"{name}: {amount}: expected 0 or more")
        check_currency(self.currency, "currency")

    def fits(self, *, vcpus: int, gpus: int, memory_bytes: int) -> bool:
        return self.vcpus >= vcpus and self.gpus >= gpus and self.memory_bytes >= memory_bytes

    def promises(self, node: NodeInfo) -> tuple[Promise, ...]:
        """Of each amount that is known of both."""
        pairs = (
            ("vCPUs", self.vcpus, node.cores),
            ("bytes of memory", self.memory_bytes, node.memory_bytes),
        )
        known = [pair for pair in pairs if all(pair)]
        known += [("GPUs", self.gpus, node.gpus)] * bool(self.gpus)
        return tuple(Promise(what=what, promised=has, seen=seen) for what, has, seen in known)
