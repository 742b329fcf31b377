"""Record of a slice: what was asked of a pool, what it gave, for how long, and what that cost."""

from typing import Literal

from flowos._dataclasses import dataclass, replace
from flowos.model._launch import Counts
from flowos.model._pool import Ask, PoolKind, Price

SliceState = Literal["waiting", "held", "freed", "over", "lost", "refused"]
Amounts = tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class SliceEvent:
    """What happened to a slice. at: seconds since 1970. node: the name of the one that is lost."""

    at: float
    what: Literal[
        "waiting", "booting", "held", "resized", "lost", "ended", "stopped", "freed", "refused"
    ]
    reason: str = ""
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class HeldNode:
    """A node that a slice held. since, until: seconds since 1970; until: None while it is held.

    devices: besides GPUs. switch: that it is connected to, as its cluster calls it.
    """

    name: str
    cores: int
    gpus: int
    since: float
    until: float | None = None
    devices: Counts = ()
    switch: str = ""

    def seconds(self, now: float) -> float:
        return max(0.0, (now if self.until is None else self.until) - self.since)


@dataclass(frozen=True, kw_only=True)
class SliceAccounts:
    """What the resource manager accounted for the jobs of a slice; None for what it does not.

    tres: trackable resources times seconds, as Slurm names them: (("cpu", 720.0), ("node", 180.0)).
    max_rss_bytes: of the largest task.
    """

    cpu_seconds: float | None = None
    max_rss_bytes: int | None = None
    joules: float | None = None
    tres: Amounts = ()


@dataclass(frozen=True, kw_only=True)
class SliceRecord:
    """A slice, from when it was asked for to its end. asked, ended: seconds since 1970.

    process: the id of its program. state: of one that is over, how it ended: freed, its lease over,
    lost with its program or its job, or refused. log: the file with its tasks. jobs: their numbers,
    of the resource manager. price: as flowos.toml has it at that time; None if it has none.
    cpu_seconds, max_rss_bytes: of what ran there for its program, the latter of the largest of it;
    None on this machine, which slices share. accounts: of all that the jobs ran.
    """

    id: str
    pool: str
    kind: PoolKind
    process: str
    asked: float
    ask: Ask
    state: SliceState = "waiting"
    ended: float | None = None
    events: tuple[SliceEvent, ...] = ()
    nodes: tuple[HeldNode, ...] = ()
    jobs: tuple[str, ...] = ()
    price: Price | None = None
    log: str = ""
    cpu_seconds: float | None = None
    max_rss_bytes: int | None = None
    accounts: SliceAccounts | None = None

    @property
    def is_over(self) -> bool:
        return self.state not in ("waiting", "held")

    @property
    def why(self) -> str:
        """What its last event says."""
        return self.events[-1].reason if self.events else ""

    def waited_seconds(self, now: float) -> float:
        """Until its nodes were there or booted for it, or it was refused."""
        firsts = [event.at for event in self.events if event.what != "waiting"]
        return max(0.0, (firsts[0] if firsts else self._end(now)) - self.asked)

    def booted_seconds(self, now: float) -> float:
        """For how long its nodes were booted, after it has waited for them."""
        ends = [*(event.at for event in self.events), self._end(now)]
        pairs = zip(self.events, ends[1:], strict=True)
        return sum(max(0.0, end - event.at) for event, end in pairs if event.what == "booting")

    def waits(self, now: float) -> tuple[tuple[str, float], ...]:
        """Why it waited: reasons in the order in which they came, and for how many seconds each."""
        until = self.asked + self.waited_seconds(now)
        waiting = [event for event in self.events if event.what == "waiting"]
        ends = [*(event.at for event in waiting[1:]), until]
        pairs = zip(waiting, ends, strict=True) if waiting else ()
        return tuple((event.reason, max(0.0, end - event.at)) for event, end in pairs)

    def node_seconds(self, now: float) -> float:
        return sum(node.seconds(now) for node in self.nodes)

    def core_seconds(self, now: float) -> float:
        return sum(node.cores * node.seconds(now) for node in self.nodes)

    def gpu_seconds(self, now: float) -> float:
        return sum(node.gpus * node.seconds(now) for node in self.nodes)

    def cost(self, now: float) -> float | None:
        """In the currency of its price; None if the pool has none."""
        if self.price is None or self.price.per_node_hour is None:
            return None
        return self.node_seconds(now) / 3600 * self.price.per_node_hour

    def happened(self, event: SliceEvent) -> "SliceRecord":
        """The same after an event. One that ends it gives all its nodes back."""
        known = replace(self, events=(*self.events, event))
        if event.what == "lost":
            return known.given_back({event.node}, event.at)
        if event.what in ("held", "resized"):
            return replace(known, state="held")
        return known

    def given_back(self, names: set[str], at: float) -> "SliceRecord":
        nodes = (
            replace(node, until=at) if node.name in names and node.until is None else node
            for node in self.nodes
        )
        return replace(self, nodes=tuple(nodes))

    def over(self, state: SliceState, event: SliceEvent) -> "SliceRecord":
        """The same at its end."""
        done = self.happened(event).given_back({node.name for node in self.nodes}, event.at)
        return replace(done, state=state, ended=event.at)

    def _end(self, now: float) -> float:
        return now if self.ended is None else self.ended
