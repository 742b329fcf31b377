"""Measurements: cases, samples of them, and the conclusions."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal

from flowos._dataclasses import dataclass, field, replace
from flowos.model._launch import Argv, Pairs
from flowos.model._suite import SuiteStep

Effort = Literal["quick", "normal", "full"]
Binary = Literal["same", "own"]

EQUAL_MARGIN = 0.03
"""Numbers that differ by no more count as equal, where neither a probe nor a person says else."""

RUNS_MARGIN = 0.05
"""The same between runs, which were not interleaved, so that more may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRequest:
    """A request for measurements. `nominal`: ceilings known to the user: name -> value, SI.

    matrix: a Matrix Market file whose matrix is used for solving.
    environments: to be measured side by side, by the user's names, the base first; (): this node as
    it is. binary: the same in all of them (is the runtime equal?), or each environment's own (is my
    stack equal?). nodes: between how many it is measured. suite: the part of it that this is.
    emulated: measure too where a guest's instructions are computed one by one (TCG).
    commands: of the user, to be timed in this folder; the others are compared with the first.
    ignore_failure: are runs of theirs that fail counted? margin: differences between them count as
    equal up to this share; None for the probe's own.
    """

    probes: tuple[str, ...] = ()
    effort: Effort = "normal"
    scratch: PurePath = field(default_factory=lambda: PurePath("/tmp"))
    nominal: tuple[tuple[str, float], ...] = ()
    matrix: PurePath | None = None
    environments: tuple[str, ...] = ()
    binary: Binary = "same"
    emulated: bool = False
    nodes: int = 1
    commands: tuple[Argv, ...] = ()
    folder: PurePath | None = None
    ignore_failure: bool = False
    margin: float | None = None
    suite: SuiteStep | None = None

    @property
    def subject(self) -> tuple[str, ...]:
        """What is measured, in short: commands, else the names of probes; () for all of these."""
        lines = [" ".join(" ".join(argv).split())[:40] for argv in self.commands]
        printable = ("".join(c if c.isprintable() else "?" for c in line) for line in lines)
        return tuple(f"`{line}`" for line in printable) or self.probes


@dataclass(frozen=True, slots=True)
class Case:
    """One point of a sweep: axis -> level. `details` (paths, flags) are no part of its identity."""

    probe: str
    levels: Pairs = ()
    details: Pairs = field(default=(), compare=False)

    def level(self, axis: str, default: str = "") -> str:
        return dict(self.levels).get(axis, default)

    def detail(self, name: str, default: str = "") -> str:
        return dict(self.details).get(name, default)

    def at(self, **levels: str) -> "Case":
        """The same case with these levels set."""
        return replace(self, levels=tuple({**dict(self.levels), **levels}.items()))

    @property
    def label(self) -> str:
        return " ".join((self.probe, *(f"{axis}={level}" for axis, level in self.levels)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One metric of one program run. `levels`: axes that the program swept itself (n, bytes).

    `values` are the raw repetitions in base units: second, byte, byte/s, flop/s, op/s (of
    integers), 1/s, Hz, 1.
    """

    metric: str
    unit: str
    values: tuple[float, ...]
    levels: Pairs = ()
    notes: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """Why a case has no number, and the remedy."""

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """State of the machine around one sample: (before, after) pairs, and shares while it ran.

    scaling: work per clock cycle of the slowest core while all compute, over that of one alone.
    steal_share: time that the hypervisor took, as a share of all cpu time.
    others_cpus: cpus busy with processes that are not ours.
    starved_share: share of wall time that our spinning threads could not run.
    throttled_seconds: time that the cgroup's quota took away.
    memory_pressure: share of time in which processes waited for memory.
    others_disk: bytes that others moved over the disk of measured storage meanwhile, in byte/s and
        as a share of all.
    io_pressure: share of the time just before or after, while we did not use measured storage, in
        which processes waited for storage.
    joules, watts: energy of all processor packages, and their mean power.
    celsius: of the hottest sensor of the processors.
    heat_throttles: how often heat slowed down cores or packages.
    """

    clock_hz: tuple[float, float] | None = None
    add_imul_ratio: tuple[float, float] | None = None
    scaling: tuple[float, float] | None = None
    load: tuple[float, float] | None = None
    steal_share: float | None = None
    others_cpus: float | None = None
    starved_share: float | None = None
    throttled_seconds: float | None = None
    memory_pressure: float | None = None
    others_disk: tuple[float, float] | None = None
    io_pressure: float | None = None
    joules: float | None = None
    watts: float | None = None
    celsius: tuple[float, float] | None = None
    heat_throttles: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Raw values of one metric of a case in one round; immutable.

    interleaved: the programs of this round ran side by side, and each value was taken next to the
    others' value of the same index.
    """

    run: str
    case: Case
    round: int
    metric: str
    unit: str
    values: tuple[float, ...]
    state: MachineState = MachineState()
    interleaved: bool = field(default=False, metadata={"formerly": "in_turns"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whether a number can be trusted: only without `marks`, which are the reasons against it."""

    marks: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return not self.marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A number over its ceiling. `kind` is the kind of ceiling, `of` its name."""

    kind: Literal["measured", "nominal"]
    of: str
    ceiling: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Computed from samples, never stored: a number with spread, shares of ceilings, and trust.

    ceiling: it is a ceiling of other numbers, so its best value counts.
    """

    case: Case
    metric: str
    unit: str
    count: int
    median: float
    low: float
    high: float
    best: float
    shares: tuple[Share, ...] = ()
    trust: Trust = Trust()
    ceiling: bool = False

    @property
    def value(self) -> float:
        """The representative number: the median; for a ceiling the best."""
        return self.best if self.ceiling else self.median


Answer = Literal["equal", "slower", "faster", "inconclusive"]
Statistic = Literal["median", "mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How `other` compares with `base` on `axis`, at equal levels `rest`.

    ratio: other's goodness over base's; below 1 is slower, whatever the unit.
    low, high: the ratio's 95 % interval.
    answer: equal if the intervals of median and mean lie within 1 -/+ `margin`, and neither side
        stalls more than the other.
    statistic: the ratio is of the median, or of the mean time if that decides.
    mean, p90: ratios of the mean times and of the 90th percentiles; None if unknown.
    rounds: number of rounds used, of which `disturbed` were marked but had to be used.
    needed: about how many rounds would turn 'inconclusive' into an answer; 0 if unknown.
    marks: evidence against the numbers themselves, for runs that were not interleaved; each begins
        with the run.
    """

    probe: str
    axis: str
    base: str
    other: str
    rest: Pairs
    metric: str
    ratio: float
    low: float
    high: float
    margin: float
    rounds: int
    answer: Answer
    why: str = ""
    disturbed: int = 0
    needed: int = 0
    statistic: Statistic = "median"
    mean: float | None = None
    p90: float | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something to do that makes work faster. `gain`: the factor. Commands are in backquotes.

    trusted: whether none of the numbers behind it was disturbed.
    """

    do: str
    gain: float
    why: str
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Input of `plan.next_round`: cases, fixed looks (in rounds), and when to end.

    With `axis` and `base` the design ends early at a look where every verdict is decided.
    `seconds`: expected duration of one measurement of a case. `seed`, such as the run's id,
    determines the random order of each round: equal seeds give equal orders.
    """

    cases: tuple[Case, ...]
    looks: tuple[int, ...] = (4, 8, 16, 32)
    min_rounds: int = 1
    axis: str = ""
    base: str = ""
    margin: float = EQUAL_MARGIN
    seconds: Mapping[Case, float] = field(default_factory=dict)
    seed: str = ""

    @property
    def turns(self) -> int:
        """How often a round measures each case: twice, there and back.

        Once if nothing is compared: a single case for which one round is enough.
        """
        return 2 if self.axis or len(self.cases) > 1 or self.min_rounds > 1 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How a probe's numbers are drawn, as data.

    A curve has `x` (an axis whose levels are numbers) and one line per combination of `series`
    axes; bars have one group per level of `x`; a matrix has a column for each level of `x` and a
    row for each of its one series. `metrics` share one unit and one y axis. `facets` draw one panel
    per combination of these axes.
    """

    title: str
    kind: Literal["curve", "bars", "matrix"]
    x: str
    metrics: tuple[str, ...]
    series: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    ceilings: bool = True
    about: str = ""


def lower_is_better(unit: str) -> bool:
    """Less time, memory and work are better; all other units of ours are rates or ratios."""
    return unit in ("second", "byte", "instruction", "cycle")
