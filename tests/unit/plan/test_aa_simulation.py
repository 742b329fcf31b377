"""The promises of a comparison, on a machine whose truth is known.

`benchmarks/aa.py` prints these rates with their intervals, for more kinds of noise.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from flowos.model import Case, Design
from flowos.plan import NoiseModel, SimulatedMachine, Stalls, compare, simulate

BASE, OTHER = (Case("p", (("with", level),)) for level in ("base", "other"))
DESIGN = Design(cases=(BASE, OTHER), axis="with", base="base", margin=0.03)
PURE = NoiseModel(spread=0.02, freedom=0, spikes=0, wander=0, regime=1)
MACHINE_SECONDS = 4 * 32 * 2.0


def answer(machine: SimulatedMachine, true_ratio: float) -> str:
    seen = simulate(DESIGN, {BASE: 1.0, OTHER: true_ratio}, machine)
    (verdict,) = compare(seen, axis="with", base="base", margin=0.03)
    return verdict.answer


@pytest.mark.no_cover
def test_of_a_thousand_equal_pairs_at_most_one_in_twenty_is_called_different() -> None:
    spreads = (0.02, 0.03, 0.04)
    answers = Counter(
        answer(SimulatedMachine(seed, NoiseModel(spread=spreads[seed % 3])), 1.0)
        for seed in range(1000)
    )
    assert answers["slower"] + answers["faster"] <= 50


@pytest.mark.no_cover
@pytest.mark.parametrize("spread", [0.02, 0.03, 0.04])
def test_a_slowdown_of_five_percent_is_found_nine_times_in_ten(spread: float) -> None:
    answers = Counter(
        answer(SimulatedMachine(seed, NoiseModel(spread=spread)), 1.05) for seed in range(200)
    )
    assert answers["slower"] >= 180


@pytest.mark.no_cover
def test_a_switch_of_regime_is_not_called_a_difference() -> None:
    def switched(seed: int) -> SimulatedMachine:
        moment = Random(seed).uniform(0, MACHINE_SECONDS / 4)
        return SimulatedMachine(seed, NoiseModel(spread=0.02), switches=(moment,))

    answers = Counter(answer(switched(seed), 1.0) for seed in range(300))
    assert answers["slower"] + answers["faster"] <= 15
    assert answers["equal"] >= 240  # a switch looks like a stall: 12 % stay inconclusive


@pytest.mark.no_cover
@pytest.mark.parametrize("period", [4 / 3, 8 / 3, 4, 16 / 3, 8])
def test_a_rhythm_of_the_machine_is_not_called_a_difference(period: float) -> None:
    noise = replace(PURE, spread=0.005, sine=0.03, sine_turns=period)
    answers = Counter(answer(SimulatedMachine(seed, noise), 1.0) for seed in range(400))
    assert (
        answers["slower"] + answers["faster"] <= 28
    )  # 5 % expected at most; 7 % by chance once in 50


def test_a_machine_is_slower_from_one_switch_to_the_next() -> None:
    noise = NoiseModel(spread=0.0, spikes=0.0, wander=0.0, regime=1.5)
    machine = SimulatedMachine(1, noise, switches=(3.0, 7.0))
    measured = [machine.measure(1.0) for _ in range(5)]
    assert measured == pytest.approx([1.0, 1.5, 1.5, 1.0, 1.0])


def test_the_same_seed_gives_the_same_samples() -> None:
    once, again = (simulate(DESIGN, {BASE: 1.0, OTHER: 1.1}, SimulatedMachine(7)) for _ in range(2))
    assert once == again
    assert once != simulate(DESIGN, {BASE: 1.0, OTHER: 1.1}, SimulatedMachine(8))


def test_a_design_that_never_ends_by_itself_ends_with_the_rounds_allowed() -> None:
    endless = Design(cases=(BASE,), min_rounds=10**9)
    assert len(simulate(endless, {BASE: 1.0}, SimulatedMachine(1), max_rounds=5)) == 10


def rates(noise: NoiseModel, stalls: Stalls | None = None, side_by_side: int = 0) -> list[float]:
    """What eight rounds of two equal cases gave for the other, in their order."""
    design = replace(DESIGN, looks=(8,), axis="")
    design = replace(design, min_rounds=8)
    given = {OTHER: stalls} if stalls else None
    machine = SimulatedMachine(1, noise)
    seen = simulate(
        design, {BASE: 1.0, OTHER: 1.0}, machine, stalls=given, side_by_side=side_by_side
    )
    return [v for s in seen if s.case == OTHER for v in s.values]


def test_a_case_stalls_in_its_share_of_turns_or_processes() -> None:
    still = replace(PURE, spread=0.0)
    slow = rates(still, Stalls(share=0.3, factor=2.0))
    assert set(slow) == {1.0, 2.0}
    turns = rates(still, Stalls(share=0.3, factor=2.0), side_by_side=20)
    processes = rates(still, Stalls(share=0.3, factor=2.0, of_processes=True), side_by_side=20)
    assert {len(set(turns[i : i + 20])) for i in range(0, 160, 20)} == {2}
    assert {len(set(processes[i : i + 20])) for i in range(0, 160, 20)} == {1}
    assert set(processes) == {1.0, 2.0}


def test_a_random_walk_goes_farther_than_noise_that_forgets() -> None:
    def reach(memory: float) -> float:
        values = rates(replace(PURE, spread=0.0, memory=memory, memory_step=0.01), side_by_side=100)
        return max(values) / min(values)

    assert 1.02 < reach(0.5) < reach(1.0)
    assert rates(replace(PURE, spread=0.0)) == [1.0] * 16
