"""Nodes that were held to be measured, one deployment after the other."""

from datetime import datetime, timedelta

from flowos._dataclasses import dataclass

_SAME_BOOT = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True)
class DeployedNode:
    """Which machine a node was.

    instance: its id in the cloud, if Slurm knows it. booted: when it was started, as Slurm says it.
    switch: the one that it is connected to, by Slurm's topology.
    """

    name: str
    instance: str = ""
    booted: str = ""
    switch: str = ""

    def is_same_machine(self, other: "DeployedNode") -> bool:
        """Since it was booted: Slurm says of one boot a second more or less each time."""
        alike = (self.name, self.instance, self.switch) == (
            other.name,
            other.instance,
            other.switch,
        )
        return alike and _are_near(self.booted, other.booted)

    def __str__(self) -> str:
        words = [self.instance or (self.booted and f"booted {self.booted}")]
        words.append(self.switch and f"switch {self.switch}")
        known = ", ".join(word for word in words if word)
        return f"{self.name} ({known})" if known else self.name


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Nodes of a pool on which a run measured. of: what it shares with others; number: from 1."""

    of: str
    number: int
    pool: str
    nodes: tuple[DeployedNode, ...]


def _are_near(one: str, other: str) -> bool:
    try:
        return abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) <= _SAME_BOOT
    except ValueError:
        return one == other
