"""A run of `flowos measure`, as it is kept: when, where, what was asked, in which environments."""

from flowos._dataclasses import dataclass, field
from flowos.model._deployment import Deployment
from flowos.model._facts import Facts, Tried
from flowos.model._samples import Case, MeasurementRequest, Unmeasured


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """An environment in which a run measured. `label`: its level on the axis "env".

    digest: of its image. version: of its runtime. tried: what the kernel permits programs in it.
    notes: the steps that prepared it, one line each. kernel, parameters, accelerator, memory_bytes:
    of one that is booted: the release, the command line, and kvm or tcg.
    """

    label: str
    image: str = ""
    form: str = ""
    digest: str = ""
    runtime: str = "bare"
    version: str = ""
    tried: tuple[Tried, ...] = ()
    notes: tuple[str, ...] = ()
    kernel: str = ""
    parameters: str = ""
    accelerator: str = ""
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One `flowos measure`. `started`, `ended`: ISO 8601 in UTC; `ended` is "" while it runs.

    environments: those measured side by side, the base first. ended_early: why it ended before
    everything was measured, in words; "" if it did not. deployment: the nodes of a pool that it
    measured; None for this machine.
    """

    id: str
    started: str
    host: str
    version: str
    request: MeasurementRequest = field(metadata={"formerly": "wanted"})
    facts: Facts
    unmeasured: tuple[tuple[Case, Unmeasured], ...] = ()
    ended: str = ""
    environments: tuple[Entered, ...] = ()
    ended_early: str = ""
    deployment: Deployment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A stored run and the number of its samples."""

    run: Run
    samples: int
