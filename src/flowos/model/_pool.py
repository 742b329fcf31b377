"""Where nodes come from, and what is asked of it: data that `flowos.toml` is read into."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from flowos.model._fake_script import read_script

PoolKind = Literal["local", "fake"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def _is_time(seconds: object) -> bool:
    """Clocks and timers cannot wait for ever."""
    return type(seconds) in (int, float) and 0 < cast("float", seconds) < 1e9


def _doc(sentence: str) -> dict[str, Any]:
    """What schema and documentation of the settings say of a field."""
    return {"doc": sentence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a node of a pool costs."""

    per_node_hour: float = field(default=0.0, metadata=_doc("of one node, for an hour"))
    currency: str = field(default="EUR", metadata=_doc("as ISO 4217 has it"))

    def __post_init__(self) -> None:
        if not self.per_node_hour >= 0:
            raise ValueError(f"price.per_node_hour: {self.per_node_hour} is below 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where nodes come from, and how many. Raises ValueError for what cannot be."""

    name: str
    kind: PoolKind = field(
        default="local",
        metadata=_doc(
            "what holds its nodes: `local`, this machine; `fake`, nodes that this machine stands "
            "in for, with answers from a script, for tests",
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
    price: Price | None = field(default=None, metadata=_doc("what a node costs"))
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
        for name, value in (("nodes", self.nodes), ("cores", self.cores)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: {value} is below 1")
        if self.max_seconds is not None and not _is_time(self.max_seconds):
            raise ValueError(f"max_seconds: {self.max_seconds} is not above 0, and below 1e9")
        if self.kind == "local" and self.nodes != 1:
            raise ValueError(f"nodes: a local pool has 1 node, this machine, not {self.nodes}")
        if self.kind != "fake" and self.script:
            raise ValueError("script: only a fake pool has one")
        for line in self.script:
            read_script(line)


LOCAL = Pool(name="local")
"""The pool that is there without settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked of a pool. seconds: for how long; without it until it is freed."""

    nodes: int = 1
    seconds: float | None = None

    def __post_init__(self) -> None:
        if type(self.nodes) is not int or self.nodes < 1:
            raise ValueError(f"nodes={self.nodes!r}; expected a positive int")
        if self.seconds is not None and not _is_time(self.seconds):
            raise ValueError(f"seconds={self.seconds!r}; expected a number above 0")


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
    state: str = "free"
