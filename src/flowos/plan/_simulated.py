"""A machine to try decisions on: known true values, and the noise of real machines around them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from flowos.model import Case, Design, Sample
from flowos.plan._rounds import next_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Log-normal in the middle, with what a shared machine adds; the defaults are as measured.

    spread: standard deviation of the logarithm of one turn, before the tails (Student's t, 4
        degrees of freedom). spikes: share of the turns that something else slows down, by `spike`
        on average. wander: slow drift up and down. regime: the factor between the two regimes of
        the machine, each of which lasts `regime_seconds` on average; 1 for a machine with one.
    """

    spread: float = 0.03
    spikes: float = 0.02
    spike: float = 0.15
    wander: float = 0.03
    regime: float = 1.5
    regime_seconds: float = 180.0


@dataclass(slots=True)
class SimulatedMachine:
    """Gives noisy times for true times; its clock goes on by `turn_seconds` with every turn.

    switches: moments at which the regime changes, instead of random ones.
    """

    seed: int
    noise: Noise = field(default_factory=Noise)
    turn_seconds: float = 2.0
    switches: tuple[float, ...] | None = None
    now: float = 0.0
    _random: Random = field(init=False)
    _slow: bool = field(init=False, default=False)
    _phase: float = field(init=False)
    _period: float = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._phase = self._random.uniform(0, 2 * math.pi)
        self._period = self._random.uniform(20, 400)

    def measure(self, true_seconds: float) -> float:
        """One turn: what the clock shows for something that takes this long on a quiet machine."""
        self.now += self.turn_seconds
        logarithm = self._tailed() + self._spike() + self._drift()
        if self._in_slow_regime():
            logarithm += math.log(self.noise.regime)
        return true_seconds * math.exp(logarithm)

    def _tailed(self) -> float:
        square = sum(self._random.gauss(0, 1) ** 2 for _ in range(4)) / 4
        return self.noise.spread * self._random.gauss(0, 1) / math.sqrt(square)

    def _spike(self) -> float:
        hit = self._random.random() < self.noise.spikes
        return self._random.expovariate(1 / self.noise.spike) if hit else 0.0

    def _drift(self) -> float:
        return self.noise.wander * math.sin(2 * math.pi * self.now / self._period + self._phase)

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
    most_rounds: int = 1000,
) -> tuple[Sample, ...]:
    """Work through a design on a simulated machine; metric "time" in seconds."""
    seen: list[Sample] = []
    for number in range(most_rounds):
        cases = next_round(d, seen, math.inf)
        if not cases:
            break
        seen += (
            Sample(
                run="simulated",
                case=case,
                round=number,
                metric="time",
                unit="second",
                values=(machine.measure(true_seconds[case]),),
            )
            for case in cases
        )
    return tuple(seen)
