"""What is measured: a case, what was observed of it, and what is concluded from that."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from flowos.model._facts import Facts, Tried
from flowos.model._launch import Pairs

Effort = Literal["quick", "normal", "full"]
Binary = Literal["same", "own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asked to have measured. `nominal` are ceilings they know: name -> value, SI.

    matrix: a Matrix Market file whose matrix is to be solved with.
    environments: to be measured side by side, as people name them, the base first; none: this
    node as it is. binary: the same one in all of them (is the runtime equal?), or each its own (is
    my stack equal?).
    """

    probes: tuple[str, ...] = ()
    effort: Effort = "normal"
    scratch: PurePath = field(default_factory=lambda: PurePath("/tmp"))
    nominal: tuple[tuple[str, float], ...] = ()
    matrix: PurePath | None = None
    environments: tuple[str, ...] = ()
    binary: Binary = "same"


@dataclass(frozen=True, slots=True)
class Case:
    """One point of a sweep: axis -> level. `details` say how (paths, flags) and are no identity."""

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
    """One metric of one program run. `levels` are axes that the program swept by itself (n, bytes).

    `values` are the raw repetitions in base units: second, byte/s, flop/s, 1/s, Hz, 1.
    """

    metric: str
    unit: str
    values: tuple[float, ...]
    levels: Pairs = ()
    notes: Pairs = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """Why a case gave no number, and what would mend it."""

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The machine around one sample: (before, after) pairs, and shares while it ran.

    scaling: work per clock cycle of the slowest core while all compute, over that of one alone.
    steal_share: time the hypervisor took, of all cpu time. others_cpus: cpus busy with what is not
    ours. starved_share: wall time that our spinning threads were kept from a cpu.
    throttled_seconds: what the cgroup's quota held back. memory_pressure: time in which processes
    waited for memory. Of storage that was measured, others_disk: what others moved over its disk
    meanwhile, in byte/s and as a share of all; io_pressure: time just before or after in which
    processes waited for storage, while we did nothing with it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was observed, raw; never changed after.

    in_turns: were the programs of this round running side by side, each value taken in a turn right
    beside the others' value of the same index?
    """

    run: str
    case: Case
    round: int
    metric: str
    unit: str
    values: tuple[float, ...]
    state: MachineState = MachineState()
    in_turns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """An environment that a run measured in. `label`: its level on the axis "env".

    digest: of its image. version: of its runtime. tried: what the kernel lets programs do in it.
    notes: what was done to make it ready, one line each.
    """

    label: str
    image: str = ""
    form: str = ""
    digest: str = ""
    runtime: str = "bare"
    version: str = ""
    tried: tuple[Tried, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One `flowos measure`. `started`, `ended`: ISO 8601 in UTC; `ended` is "" until it ended.

    environments: where several were measured side by side, the base first. ended_early: why it
    ended before all was measured that was to be, in words; "" if it was not so.
    """

    id: str
    started: str
    host: str
    version: str
    wanted: Wanted
    facts: Facts
    unmeasured: tuple[tuple[Case, Unmeasured], ...] = ()
    ended: str = ""
    environments: tuple[Entered, ...] = ()
    ended_early: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """May a number be believed? `marks` say why not; none means yes."""

    marks: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return not self.marks


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A number over its ceiling. `kind` says which ceiling, `of` names it."""

    kind: Literal["measured", "nominal"]
    of: str
    ceiling: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Derived from samples, never stored: a number with spread, shares of its ceilings, trust.

    ceiling: it bounds other numbers, so that its best counts.
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
        """The number that stands for it: the median; of a ceiling the best."""
        return self.best if self.ceiling else self.median


Answer = Literal["equal", "slower", "faster", "inconclusive"]
Statistic = Literal["median", "mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How `other` compares with `base` on `axis`, all else being `rest`.

    `ratio` is other's goodness over base's (below 1 is slower, whatever the unit), `low..high` its
    95 % interval; equal means that the intervals of median and mean lie within 1 -/+ `margin`, and
    that no side stalls more than the other. `statistic` says of which the ratio is: of the median,
    or of the mean time where that decides. `mean` and `p90`: the ratio of the mean times, and of
    the times that nine in ten turns do not exceed (None: not known). Of the `rounds` it rests on,
    `disturbed` were marked and had to be used; about `needed` would turn 'inconclusive' into an
    answer (0: not known). `marks`: what speaks against the numbers themselves, where two runs are
    compared that were not interleaved; each begins with the run.
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
    """Something to do that makes work faster. `worth`: how many times; commands in backquotes.

    trusted: was nothing disturbed of what it rests on?
    """

    do: str
    worth: float
    why: str
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What `plan.next_round` works through: cases, fixed looks (in rounds), and when to end.

    With `axis` and `base` the design ends early at a look where every verdict is reached.
    `seconds` is what one measurement of a case is expected to take. The order of each round is
    drawn from `seed`, such as the run's id: the same seed gives the same orders.
    """

    cases: tuple[Case, ...]
    looks: tuple[int, ...] = (4, 8, 16, 32)
    min_rounds: int = 1
    axis: str = ""
    base: str = ""
    margin: float = 0.03
    seconds: Mapping[Case, float] = field(default_factory=dict)
    seed: str = ""

    @property
    def turns(self) -> int:
        """How often a round measures each case: twice, there and back.

        Once where nothing is compared: a single case for which one round is enough.
        """
        return 2 if self.axis or len(self.cases) > 1 or self.min_rounds > 1 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How a probe's numbers are drawn, as data.

    A curve has `x` (an axis whose levels are numbers) and one line per combination of `series`
    axes; bars have one group per level of `x`. `metrics` share one unit and one y axis.
    `facets` draw one panel per combination of these axes.
    """

    title: str
    kind: Literal["curve", "bars"]
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
    """Times are better when small; every other unit of ours is a rate or a ratio."""
    return unit == "second"
