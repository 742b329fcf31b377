"""Noise models and true ratios for simulated comparisons: `benchmarks/aa.py --table`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from flowos.model import Case, Design
from flowos.plan import NoiseModel, SimulatedMachine, Stalls, compare, simulate

BASE, OTHER = (Case("work", (("with", level),)) for level in ("base", "other"))
DESIGN = Design(cases=(BASE, OTHER), axis="with", base="base", margin=0.03)
TURNS = 16

WHITE = NoiseModel(spread=0.01, freedom=0, spikes=0, wander=0, regime=1)
RHYTHM = replace(WHITE, spread=0.005, sine=0.03)
SHARED = NoiseModel(spread=0.02)
DIFFERENT = ("slower", "faster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A simulation. wrong: answers that are false here.

    ratio: of the true times of other and base. stalls: of other. side_by_side: do the programs run
    at once, with TURNS turns each in a round?
    """

    name: str
    noise: NoiseModel
    wrong: tuple[str, ...]
    ratio: float = 1.0
    stalls: Stalls | None = None
    side_by_side: bool = False
    turn_seconds: float = 2.0
    switches: Callable[[int], tuple[float, ...]] | None = None

    def trial(self, seed: int) -> tuple[str, int]:
        """The answer, and the number of rounds that it took."""
        switches = self.switches(seed) if self.switches else None
        seen = simulate(
            DESIGN,
            {BASE: 1.0, OTHER: self.ratio},
            SimulatedMachine(seed, self.noise, self.turn_seconds, switches),
            stalls={OTHER: self.stalls} if self.stalls else None,
            side_by_side=TURNS if self.side_by_side else 0,
        )
        (verdict,) = compare(seen, axis="with", base="base", margin=DESIGN.margin)
        return verdict.answer, seen[-1].round + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Results of the trials of a kind. rounds: their mean over trials with the answer equal."""

    kind: Kind
    answers: Counter[str]
    rounds: float

    @property
    def trials(self) -> int:
        return self.answers.total()

    @property
    def wrong(self) -> int:
        return sum(self.answers[answer] for answer in self.kind.wrong)


def rates_of(kind: Kind, trials: int) -> Rates:
    """Run so many trials, with seeds from 0."""
    found = [kind.trial(seed) for seed in range(trials)]
    equal = [rounds for answer, rounds in found if answer == "equal"]
    return Rates(
        kind=kind,
        answers=Counter(answer for answer, _ in found),
        rounds=sum(equal) / len(equal) if equal else 0.0,
    )


def _equal(name: str, noise: NoiseModel, **more: object) -> Kind:
    return replace(Kind(name=name, noise=noise, wrong=DIFFERENT), **more)  # type: ignore[arg-type]


def _unequal(name: str, noise: NoiseModel, **more: object) -> Kind:
    return replace(Kind(name=name, noise=noise, wrong=("equal",)), **more)  # type: ignore[arg-type]


KINDS: tuple[Kind, ...] = (
    _equal("equal, white noise of 1 %", WHITE),
    _equal("equal, heavy tails of 2 %", replace(WHITE, spread=0.02, freedom=4)),
    _equal("equal, shared machine, 2 %", SHARED),
    _equal("equal, shared machine, 3 %", NoiseModel()),
    _equal("equal, spikes of 30 % in a tenth", replace(WHITE, spikes=0.1, spike=0.3)),
    _equal("equal, sine of 3 %, 4/3 turns", replace(RHYTHM, sine_turns=4 / 3)),
    _equal("equal, sine of 3 %, 8/3 turns", replace(RHYTHM, sine_turns=8 / 3)),
    _equal("equal, sine of 3 %, 4 turns", replace(RHYTHM, sine_turns=4.0)),
    _equal("equal, sine of 3 %, 8 turns", replace(RHYTHM, sine_turns=8.0)),
    _equal("equal, AR(1) of 0.9", replace(WHITE, memory=0.9, memory_step=0.02)),
    _equal("equal, random walk", replace(WHITE, memory=1.0, memory_step=0.02)),
    _equal("equal, regimes of 2.5, 60 s", replace(WHITE, regime=2.5, regime_seconds=60.0)),
    _equal("equal, regimes of 1.5, 3 s", replace(WHITE, regime=1.5, regime_seconds=3.0)),
    _equal("equal, one switch of regime", SHARED, switches=lambda n: (Random(n).uniform(0, 64),)),
    _equal("equal, side by side, 3 %", replace(WHITE, spread=0.03), side_by_side=True),
    _equal("equal, side by side, shared", NoiseModel(), side_by_side=True),
    _equal("equal, side by side, 8/3 turns", replace(RHYTHM, sine_turns=8 / 3), side_by_side=True),
    _unequal("4 % slower", WHITE, ratio=1.04),
    _unequal("5 % slower, shared machine, 3 %", NoiseModel(), ratio=1.05),
    _unequal("a tenth of the turns x2", WHITE, stalls=Stalls(share=0.1, factor=2.0)),
    _unequal("a tenth x2, shared machine", SHARED, stalls=Stalls(share=0.1, factor=2.0)),
    _unequal("15 % of processes at half speed", WHITE, stalls=Stalls(share=0.15, factor=2.0)),
    _unequal("a tenth of the turns x1.5", WHITE, stalls=Stalls(share=0.1, factor=1.5)),
    _unequal("a tenth x1.5, shared machine", SHARED, stalls=Stalls(share=0.1, factor=1.5)),
    _unequal("a fifth of the turns x1.2", WHITE, stalls=Stalls(share=0.2, factor=1.2)),
    _unequal(
        "side by side, a fifth of the turns x2",
        replace(WHITE, spread=0.03),
        stalls=Stalls(share=0.2, factor=2.0),
        side_by_side=True,
    ),
    _unequal(
        "side by side, 15 % of processes x2",
        replace(WHITE, spread=0.03),
        stalls=Stalls(share=0.15, factor=2.0, of_processes=True),
        side_by_side=True,
    ),
    _unequal(
        "side by side, a tenth of processes x1.5",
        replace(WHITE, spread=0.03),
        stalls=Stalls(share=0.1, factor=1.5, of_processes=True),
        side_by_side=True,
    ),
)
