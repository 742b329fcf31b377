"""Where nodes come from, and what is asked of it: data that `flowos.toml` is read into."""

import math
import re
from typing import Any, Literal, cast, get_args

from flowos._dataclasses import dataclass, field, fields
from flowos.model._fake_script import read_script
from flowos.model._launch import Counts, GivenCounts, Pairs, device_counts
from flowos.model._names import counted

PoolKind = Literal["local", "fake", "slurm", "sge"]
Topology = Literal["", "pack", "spread", "switch"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OF_KINDS: dict[str, tuple[PoolKind, ...]] = {
    **dict.fromkeys(("partition", "account", "qos", "constraint"), ("slurm",)),
    "gres": ("slurm", "fake"),
    **dict.fromkeys(("queue", "pe"), ("sge",)),
    **dict.fromkeys(("shared", "scratch"), ("slurm", "sge")),
}
"""Keys that pools of some kinds alone have, in the order in which they are shown."""
_MAX_NODES = 65536
_CURRENCY = re.compile("[A-Z]{3}")
_FOLDERS = ("shared", "scratch")
_ONE_GRES = r"[A-Za-z_][\w-]*(?::[A-Za-z_][\w.-]*)?(?::[1-9]\d*)?"
_GRES = re.compile(f"{_ONE_GRES}(?:,{_ONE_GRES})*")
_NO_GRES = ("none", "(null)")
"""What Slurm takes and prints where there are no generic resources."""


def _is_time(seconds: object) -> bool:
    """Clocks and timers cannot wait for ever."""
    return type(seconds) in (int, float) and 0 < cast("float", seconds) < 1e9


def check_currency(currency: str, key: str) -> None:
    """Raises ValueError for what ISO 4217 cannot have."""
    if not _CURRENCY.fullmatch(currency):
        raise ValueError(f"{key}: {currency!r:.80}: expected 3 capital letters, as in EUR")


def _doc(sentence: str) -> dict[str, Any]:
    """What schema and documentation of the settings say of a field."""
    return {"doc": sentence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a node of a pool costs."""

    per_node_hour: float | None = field(
        default=None, metadata=_doc("of one node, for an hour; without it slices have no cost")
    )
    currency: str = field(default="EUR", metadata=_doc("as ISO 4217 has it"))

    def __post_init__(self) -> None:
        if self.per_node_hour is not None and not 0 <= self.per_node_hour < math.inf:
            raise ValueError(f"price.per_node_hour: {self.per_node_hour}: expected 0 or more")
        check_currency(self.currency, "price.currency")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTier:
    """What a site promises of a folder of a pool; None of what it does not."""

    capacity_bytes: int | None = field(default=None, metadata=_doc("what fits into it"))
    read_bytes_per_second: float | None = field(
        default=None, metadata=_doc("how fast one node reads from it")
    )
    write_bytes_per_second: float | None = field(
        default=None, metadata=_doc("how fast one node writes to it")
    )

    def complaint(self) -> str:
        """Starts with the key that cannot be; "" if all can."""
        for each in fields(self):
            amount = getattr(self, each.name)
            if amount is not None and not 0 < amount < math.inf:
                return f"{each.name}: {amount} is not above 0, and finite"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where nodes come from, and how many. Raises ValueError for what cannot be."""

    name: str
    kind: PoolKind = field(
        default="local",
        metadata=_doc(
            "what holds its nodes: `local`, this machine; `slurm` and `sge` (Grid Engine), the "
            "cluster of this login node; `fake`, nodes that this machine stands in for, with "
            "answers from a script, for tests",
        ),
    )
    nodes: int = field(
        default=1, metadata=_doc("nodes that may be held at once; a local pool has one")
    )
    cores: int | None = field(
        default=None, metadata=_doc("cores of each node that are used; all of them by default")
    )
    max_seconds: float | None = field(
        default=None,
        metadata=_doc("the longest that nodes are held; until they are freed by default"),
    )
    env: str = field(
        default="bare",
        metadata=_doc("in what tasks run unless a slice says so: bare, or IMAGE[@RUNTIME]"),
    )
    price: Price | None = field(
        default=None, metadata=_doc("what a node costs; what its size costs by default")
    )
    size: str = field(
        default="",
        metadata=_doc(
            "which machine of a cloud each node is, as in `Standard_HB120rs_v3`: see `flowos cloud "
            "sizes`, and `[sizes.NAME]` below"
        ),
    )
    region: str = field(
        default="", metadata=_doc("where they are, as their size has a price in several regions")
    )
    spot: bool = field(
        default=False, metadata=_doc("whether they cost what the cloud takes for spot machines")
    )
    partition: str = field(
        default="", metadata=_doc("of a slurm pool: its partition; the cluster's default one else")
    )
    account: str = field(
        default="", metadata=_doc("of a slurm pool: the account that pays; yours by default")
    )
    qos: str = field(default="", metadata=_doc("of a slurm pool: the quality of service"))
    constraint: str = field(
        default="",
        metadata=_doc("of a slurm pool: the features of its nodes, as in `icelake&nvme`"),
    )
    gres: str = field(
        default="",
        metadata=_doc(
            "of a slurm or fake pool: generic resources of each node, as in `gpu:a100:2,fpga:1`"
        ),
    )
    queue: str = field(default="", metadata=_doc("of an sge pool, which needs one: its queue"))
    pe: str = field(
        default="",
        metadata=_doc(
            "of an sge pool, which needs one: the parallel environment that gives whole nodes; its "
            "`allocation_rule` is the number of slots that each gives"
        ),
    )
    shared: str = field(
        default="",
        metadata=_doc(
            "of a cluster: a folder that is there, and that this machine and all its nodes see; "
            "the current folder by default"
        ),
    )
    scratch: str = field(
        default="", metadata=_doc("of a cluster: a folder on the own storage of each node")
    )
    shared_tier: StorageTier | None = field(
        default=None, metadata=_doc("what the site promises of `shared`")
    )
    scratch_tier: StorageTier | None = field(
        default=None, metadata=_doc("what the site promises of `scratch`")
    )
    script: tuple[str, ...] = field(
        default=(),
        metadata=_doc(
            "of a fake pool: what happens to each slice in turn, as in "
            '"wait 0.2 Priority; lose 1 after 5", "refuse no such partition", "end after 60"',
        ),
    )

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name: {self.name!r}: expected letters, digits, _.- (not first)")
        self._check_counts()
        if not self.env:
            raise ValueError("env: it is empty: expected bare, or IMAGE[@RUNTIME]")
        if self.max_seconds is not None and not _is_time(self.max_seconds):
            raise ValueError(f"max_seconds: {self.max_seconds} is not above 0, and below 1e9")
        if self.kind == "local" and self.nodes != 1:
            raise ValueError(f"nodes: a local pool has 1 node, this machine, not {self.nodes}")
        if self.kind != "fake" and self.script:
            raise ValueError("script: only a fake pool has one")
        for line in self.script:
            self._check_script(line)
        self._check_size()
        if self.kind in _OF_KINDS["gres"] and self.gres.lower() in _NO_GRES:
            object.__setattr__(self, "gres", "")
        for name, kinds in _OF_KINDS.items():
            self._check_of_kinds(name, getattr(self, name), kinds)
        for name in _FOLDERS:
            self._check_tier(name, self.tier(name))

    @property
    def of_its_kind(self) -> Pairs:
        """What it says that pools of some kinds alone have: key and value."""
        found = ((name, cast("str", getattr(self, name))) for name in _OF_KINDS)
        return tuple((name, value) for name, value in found if value)

    def seconds_of(self, ask: "Ask") -> float | None:
        """How long nodes are held for this at most; None if it is not limited here."""
        return min((s for s in (ask.seconds, self.max_seconds) if s is not None), default=None)

    def tier(self, folder: str) -> StorageTier | None:
        """What is promised of `shared` or `scratch`."""
        return cast("StorageTier | None", getattr(self, f"{folder}_tier"))

    def _check_counts(self) -> None:
        for name, value in (("nodes", self.nodes), ("cores", self.cores)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: {value} is below 1")
        if self.nodes > _MAX_NODES:
            raise ValueError(f"nodes: {self.nodes!r:.40} is above {_MAX_NODES}")

    def _check_script(self, line: str) -> None:
        if not line.isprintable():
            raise ValueError(f"script: {line!r:.80}: expected printable characters")
        for step in read_script(line):
            if step.seconds and not _is_time(step.seconds):
                raise ValueError(f"script: {step.seconds:g} s is not below 1e9")
            if step.what == "lose" and not 1 <= step.node <= self.nodes:
                raise ValueError(f"script: lose {step.node}: its nodes are 1 to {self.nodes}")

    def _check_tier(self, folder: str, tier: StorageTier | None) -> None:
        if tier is not None and not getattr(self, folder):
            raise ValueError(f"{folder}_tier: it is of the folder {folder}, which is not given")
        if tier is not None and (complaint := tier.complaint()):
            raise ValueError(f"{folder}_tier.{complaint}")

    def _check_size(self) -> None:
        for name, given in (("region", bool(self.region)), ("spot", self.spot)):
            if given and not self.size:
                raise ValueError(f"{name}: it is of a size, which is not given")

    def _check_of_kinds(self, name: str, value: str, kinds: tuple[PoolKind, ...]) -> None:
        if value and self.kind not in kinds:
            raise ValueError(f"{name}: only a pool of kind {' or '.join(kinds)} has one")
        if not value and self.kind == "sge" and kinds == ("sge",):
            raise ValueError(f"{name}: an sge pool needs one")
        if not value.isprintable() or value != value.strip():
            raise ValueError(f"{name}: {value!r}: expected printable characters, no space around")
        if name == "gres" and value and not _GRES.fullmatch(value):
            raise ValueError(f"gres: {value!r}: expected NAME[:TYPE][:COUNT], with commas between")
        if name == "gres" and self.kind == "fake":
            counts = re.findall(r":(\d+)(?:,|$)", value)
            if large := [n for n in counts if len(n) > len(str(_MAX_NODES)) or int(n) > _MAX_NODES]:
                raise ValueError(f"gres: {large[0]:.40} is above {_MAX_NODES}")
        if name in _FOLDERS and value and not value.startswith("/"):
            raise ValueError(f"{name}: {value!r}: expected an absolute path")


LOCAL = Pool(name="local")
"""The pool that is there without settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked of a pool. Raises ValueError for what cannot be.

    cores, gpus, memory_bytes, devices: what each node has to have, at least; devices are generic
    resources by name, as in {"fpga": 1}. seconds: for how long; without it until it is freed.
    topology: where the nodes are to each other. kernel: a feature of them, which each has booted
    before it is held. lease_seconds: how long they stay held after this
    program is gone; freed at once without it. id: under which they are held; a new one without it.
    """

    nodes: int = 1
    cores: int | None = None
    gpus: int = 0
    memory_bytes: int = 0
    devices: GivenCounts = ()
    topology: Topology = ""
    kernel: str = ""
    seconds: float | None = None
    lease_seconds: float | None = None
    id: str = ""

    def __post_init__(self) -> None:
        if self.id and not _NAME.fullmatch(self.id):
            raise ValueError(f"id={self.id!r}; expected letters, digits, _.- (not first)")
        counts = {"nodes": self.nodes, "cores": 1 if self.cores is None else self.cores}
        object.__setattr__(self, "devices", device_counts(self.devices))
        for name, value in counts.items():
            if type(value) is not int or value < 1:
                raise ValueError(f"{name}={value!r}; expected a positive int")
        for name, value in (("gpus", self.gpus), ("memory_bytes", self.memory_bytes)):
            if type(value) is not int or value < 0:
                raise ValueError(f"{name}={value!r}; expected an int of 0 or more")
        if self.topology not in get_args(Topology):
            known = ", ".join(filter(None, get_args(Topology)))
            raise ValueError(f"topology={self.topology!r}; expected one of {known}")
        if self.kernel and not _NAME.fullmatch(self.kernel):
            raise ValueError(
                f"kernel={self.kernel!r:.80}; expected letters, digits, _.- (not first)"
            )
        times = {"seconds": self.seconds, "lease_seconds": self.lease_seconds}
        for name, seconds in times.items():
            if seconds is not None and not _is_time(seconds):
                raise ValueError(f"{name}={seconds!r}; expected a number above 0 and below 1e9")

    @property
    def device_counts(self) -> Counts:
        """The devices, by name."""
        return cast("Counts", self.devices)

    def lacks(self, node: "NodeInfo") -> str:
        """What a node has too little of, or ""."""
        for asked, has, what in (
            (self.cores or 0, node.cores, counted(self.cores or 0, "core")),
            (self.gpus, node.gpus, counted(self.gpus, "GPU")),
            (
                self.memory_bytes,
                node.memory_bytes,
                f"{counted(self.memory_bytes, 'byte')} of memory",
            ),
        ):
            if asked > has:
                return f"{what} asked for, {node.name} has {has}"
        has_devices = dict(node.devices)
        for name, asked in self.device_counts:
            if asked > has_devices.get(name, 0):
                return f"{asked} {name} asked for, {node.name} has {has_devices.get(name, 0)}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node of a pool as it is known before it is held.

    state: "free", "held", "lost", or what a scheduler calls it; one that is unknown is shown as it
    was read.
    """

    name: str
    cores: int
    memory_bytes: int = 0
    gpus: int = 0
    devices: Counts = ()
    state: str = "free"
