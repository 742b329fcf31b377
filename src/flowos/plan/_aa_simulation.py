"""Simulated machine for A/A and A/B tests: known true values plus the noise of real machines."""

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from flowos._dataclasses import dataclass, field, replace
from flowos.model import Case, Design, Sample
from flowos.plan._order import drawn
from flowos.plan._rounds import next_round


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseModel:
    """Log-normal noise plus the disturbances of a shared machine; the defaults were measured.

    spread: standard deviation of the logarithm of one turn, before the tails. freedom: degrees of
        freedom of Student's t for the tails; 0 for normal noise.
    spikes: share of turns that an external disturbance slows down, by `spike` on average.
    wander: amplitude of a slow drift.
    regime: factor between the two regimes of the machine, each of which lasts `regime_seconds` on
        average; 1 for a machine with a single regime.
    sine: amplitude of a rhythm with a period of `sine_turns` turns.
    memory: coefficient of an order-1 autoregression over turns with steps of `memory_step`; 1 for a
        random walk.
    """

    spread: float = 0.03
    freedom: int = 4
    spikes: float = 0.02
    spike: float = 0.15
    wander: float = 0.03
    regime: float = 1.5
    regime_seconds: float = 180.0
    sine: float = 0.0
    sine_turns: float = 8.0
    memory: float = 0.0
    memory_step: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Slowdown caused by a case itself: a share of its turns, or of its processes, by a factor.

    Where programs run side by side, a process has many turns; otherwise it has one.
    """

    share: float
    factor: float
    of_processes: bool = False


@dataclass(slots=True)
class SimulatedMachine:
    """Returns noisy times for true times; its clock advances by `turn_seconds` with every turn.

    switches: times at which the regime changes, instead of random ones.
    """

    seed: int
    noise: NoiseModel = field(default_factory=NoiseModel)
    turn_seconds: float = 2.0
    switches: tuple[float, ...] | None = None
    now: float = 0.0
    _random: Random = field(init=False)
    _slow: bool = field(init=False, default=False)
    _kept: float = field(init=False, default=0.0)
    _phase: float = field(init=False)
    _period: float = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._phase = self._random.uniform(0, 2 * math.pi)
        self._period = self._random.uniform(20, 400)

    def measure(self, true_seconds: float) -> float:
        """Measured seconds of one turn that takes `true_seconds` on a quiet machine."""
        self.now += self.turn_seconds
        logarithm = self._tailed() + self._spike() + self._drift() + self._rhythm() + self._memory()
        if self._in_slow_regime():
            logarithm += math.log(self.noise.regime)
        return true_seconds * math.exp(logarithm)

    def stalled(self, stalls: Stalls | None) -> float:
        """Draws the slowdown factor of this turn or process of a case; 1.0 for no stall."""
        hit = stalls is not None and self._random.random() < stalls.share
        return stalls.factor if stalls is not None and hit else 1.0

    def _tailed(self) -> float:
        value = self.noise.spread * self._random.gauss(0, 1)
        if not self.noise.freedom:
            return value
        square = sum(self._random.gauss(0, 1) ** 2 for _ in range(self.noise.freedom))
        return value / math.sqrt(square / self.noise.freedom)

    def _spike(self) -> float:
        hit = self._random.random() < self.noise.spikes
        return self._random.expovariate(1 / self.noise.spike) if hit else 0.0

    def _drift(self) -> float:
        return self.noise.wander * math.sin(2 * math.pi * self.now / self._period + self._phase)

    def _rhythm(self) -> float:
        turns = self.now / self.turn_seconds
        return self.noise.sine * math.sin(2 * math.pi * turns / self.noise.sine_turns + self._phase)

    def _memory(self) -> float:
        if self.noise.memory:
            step = self._random.gauss(0, self.noise.memory_step)
            self._kept = self.noise.memory * self._kept + step
        return self._kept

    def _in_slow_regime(self) -> bool:
        if self.switches is None:
            chance = 1 - math.exp(-self.turn_seconds / self.noise.regime_seconds)
            self._slow ^= self._random.random() < chance
        else:
            self._slow = sum(at <= self.now for at in self.switches) % 2 == 1
        return self._slow


def simulate(
    d: Design,
    true_seconds: Mapping[Case, float],
    machine: SimulatedMachine,
    max_rounds: int = 1000,
    *,
    stalls: Mapping[Case, Stalls] | None = None,
    side_by_side: int = 0,
) -> tuple[Sample, ...]:
    """Run a design on a simulated machine; metric "time" in seconds.

    side_by_side: number of turns that each program of a round has, all programs running at once;
    0 runs them one after the other, one turn each time.
    """
    seen: list[Sample] = []
    d = replace(d, seed=d.seed or f"simulated {machine.seed}")
    trial = _Trial(machine, true_seconds, stalls or {})
    for number in range(max_rounds):
        cases = next_round(d, seen, math.inf)
        if not cases:
            break
        if side_by_side:
            seen += trial.at_once(tuple(dict.fromkeys(cases)), number, side_by_side, d.seed)
        else:
            seen += trial.one_by_one(cases, number)
    return tuple(seen)


@dataclass(frozen=True, slots=True)
class _Trial:
    machine: SimulatedMachine
    true_seconds: Mapping[Case, float]
    stalls: Mapping[Case, Stalls]

    def one_by_one(self, cases: Sequence[Case], number: int) -> Iterator[Sample]:
        for case in cases:
            slowed = self.machine.stalled(self.stalls.get(case))
            took = self.machine.measure(self.true_seconds[case] * slowed)
            yield _sample(case, number, (took,))

    def at_once(
        self, cases: Sequence[Case], number: int, turns: int, seed: str
    ) -> Iterator[Sample]:
        took: dict[Case, list[float]] = {case: [] for case in cases}
        slowed = {case: self._process(self.stalls.get(case)) for case in cases}
        for turn in range(turns):
            order = drawn(cases, f"{seed} {number}", turn // 2)
            for case in order[::-1] if turn % 2 else order:
                true = self.true_seconds[case] * slowed[case]
                took[case].append(self.machine.measure(true * self._turn(self.stalls.get(case))))
        for case in cases:
            yield replace(_sample(case, number, tuple(took[case])), interleaved=True)

    def _process(self, stalls: Stalls | None) -> float:
        return self.machine.stalled(stalls) if stalls and stalls.of_processes else 1.0

    def _turn(self, stalls: Stalls | None) -> float:
        return 1.0 if stalls and stalls.of_processes else self.machine.stalled(stalls)


def _sample(case: Case, number: int, values: tuple[float, ...]) -> Sample:
    return Sample(
        run="simulated", case=case, round=number, metric="time", unit="second", values=values
    )
