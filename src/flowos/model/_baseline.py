"""A baseline: what a kind of machine gives, and how far a new run may be off, as a file has it."""

from pathlib import PurePath

from flowos._dataclasses import dataclass
from flowos.model._launch import Argv, Pairs
from flowos.model._samples import Binary, Case, Effort


@dataclass(frozen=True, kw_only=True)
class MachineKind:
    """Machines that are expected to give the same numbers. cpus: that may be used, quota_cpus: of
    which a control group gives this much time."""

    processor: str
    cpus: int
    architecture: str
    quota_cpus: float | None = None
    gpus: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [self.processor, f"{self.cpus} cpus", self.architecture]
        if self.quota_cpus is not None:
            words.append(f"a quota of {self.quota_cpus:g} cpus")
        return ", ".join((*words, *self.gpus))


@dataclass(frozen=True, kw_only=True)
class BaselineNumber:
    """What several runs gave for a metric of a case.

    median: of the runs, or of the machines if there are several. spread: standard deviation of a
    new run around it, as a share. runs, machines: that it is from. tolerance: a new number is worse
    if it is worse by more than the factor 1 + tolerance. disturbed: whether marked numbers were
    used, as too few were not.
    """

    probe: str
    levels: Pairs
    metric: str
    unit: str
    median: float
    spread: float
    runs: int
    machines: int
    tolerance: float
    disturbed: bool = False

    @property
    def case(self) -> Case:
        return Case(self.probe, self.levels)

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest number within the tolerance."""
        return self.median / (1 + self.tolerance), self.median * (1 + self.tolerance)


@dataclass(frozen=True, kw_only=True)
class UnjudgedNumber:
    """A number that is not above 0 in a run, so that it has no ratio to that of others."""

    case: Case
    metric: str


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What runs of a kind of machine gave. Its numbers lie in the order of the probes.

    made: ISO 8601 in UTC. runs, machines: that it is from. probes, effort, nodes, environments,
    binary, matrix, commands, ignore_failure: of these runs, and of those that are checked. scratch:
    the folder on the storage that was measured; None if none was. error: how often a check of a
    machine that is as these says of any number that it is worse. max_tolerance: a number with more
    can be found worse, but does not pass. unjudged: what the runs have and a check cannot judge.
    """

    kind: MachineKind
    made: str
    version: str
    runs: tuple[str, ...]
    machines: tuple[str, ...]
    probes: tuple[str, ...]
    effort: Effort
    nodes: int = 1
    environments: tuple[str, ...] = ()
    binary: Binary = "same"
    matrix: PurePath | None = None
    commands: tuple[Argv, ...] = ()
    ignore_failure: bool = False
    scratch: PurePath | None = None
    error: float
    max_tolerance: float
    numbers: tuple[BaselineNumber, ...]
    unjudged: tuple[UnjudgedNumber, ...] = ()
