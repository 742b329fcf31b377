"""The promises of a comparison, on a machine whose truth is known.

`benchmarks/aa.py` prints these rates with their intervals, for more kinds of noise.
"""

from collections import Counter
from random import Random

import pytest

from flowos.model import Case, Design
from flowos.plan import Noise, SimulatedMachine, compare, simulate

BASE, OTHER = (Case("p", (("with", level),)) for level in ("base", "other"))
DESIGN = Design(cases=(BASE, OTHER), axis="with", base="base", margin=0.03)
MACHINE_SECONDS = 4 * 32 * 2.0


def answer(machine: SimulatedMachine, true_ratio: float) -> str:
    seen = simulate(DESIGN, {BASE: 1.0, OTHER: true_ratio}, machine)
    (verdict,) = compare(seen, axis="with", base="base", margin=0.03)
    return verdict.answer


def test_of_a_thousand_equal_pairs_at_most_one_in_twenty_is_called_different() -> None:
    spreads = (0.02, 0.03, 0.04)
    answers = Counter(
        answer(SimulatedMachine(seed, Noise(spread=spreads[seed % 3])), 1.0) for seed in range(1000)
    )
    assert answers["slower"] + answers["faster"] <= 50


@pytest.mark.parametrize("spread", [0.02, 0.03, 0.04])
def test_a_slowdown_of_five_percent_is_found_nine_times_in_ten(spread: float) -> None:
    answers = Counter(
        answer(SimulatedMachine(seed, Noise(spread=spread)), 1.05) for seed in range(200)
    )
    assert answers["slower"] >= 180


def test_a_switch_of_regime_is_not_called_a_difference() -> None:
    def switched(seed: int) -> SimulatedMachine:
        moment = Random(seed).uniform(0, MACHINE_SECONDS / 4)
        return SimulatedMachine(seed, Noise(spread=0.02), switches=(moment,))

    answers = Counter(answer(switched(seed), 1.0) for seed in range(300))
    assert answers["slower"] + answers["faster"] <= 15
    assert answers["equal"] >= 270


def test_the_same_seed_gives_the_same_samples() -> None:
    once, again = (simulate(DESIGN, {BASE: 1.0, OTHER: 1.1}, SimulatedMachine(7)) for _ in range(2))
    assert once == again
    assert once != simulate(DESIGN, {BASE: 1.0, OTHER: 1.1}, SimulatedMachine(8))


def test_a_design_that_never_ends_by_itself_ends_with_the_rounds_allowed() -> None:
    endless = Design(cases=(BASE,), least_rounds=10**9)
    assert len(simulate(endless, {BASE: 1.0}, SimulatedMachine(1), most_rounds=5)) == 5
