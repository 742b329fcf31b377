"""The promises of a comparison, on a machine whose truth is known.

`benchmarks/aa.py` prints these rates with their intervals, for more kinds of noise. Here are as few
trials as show a gross fault.
"""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

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
def test_of_equal_pairs_at_most_one_in_twenty_is_called_different() -> None:
    spreads = (0.02, 0.03, 0.04)
    answers = Counter(
        answer(SimulatedMachine(seed, NoiseModel(spread=spreads[seed % 3])), 1.0)
        for seed in range(400)
    )
    assert answers["slower"] + answers["faster"] <= 20  # 6 expected


@pytest.mark.no_cover
@pytest.mark.parametrize(("spread", "trials"), [(0.02, 50), (0.03, 50), (0.04, 200)])
def test_a_slowdown_of_five_percent_is_found_nine_times_in_ten(spread: float, trials: int) -> None:
    answers = Counter(
        answer(SimulatedMachine(seed, NoiseModel(spread=spread)), 1.05) for seed in range(trials)
    )
    assert answers["slower"] >= 0.9 * trials


@pytest.mark.no_cover
def test_a_switch_of_regime_is_not_called_a_difference() -> None:
    def switched(seed: int) -> SimulatedMachine:
        moment = Random(seed).uniform(0, MACHINE_SECONDS / 4)
        return SimulatedMachine(seed, NoiseModel(spread=0.02), switches=(moment,))

    answers = Counter(answer(switched(seed), 1.0) for seed in range(150))
    assert answers["slower"] + answers["faster"] <= 10  # 2 expected
    assert answers["equal"] >= 110  # a switch looks like a stall: 12 % stay inconclusive


@pytest.mark.no_cover
@pytest.mark.parametrize("period", [4 / 3, 8 / 3, 4, 16 / 3, 8])
def test_a_rhythm_of_the_machine_is_not_called_a_difference(period: float) -> None:
    noise = replace(PURE, spread=0.005, sine=0.03, sine_turns=period)
    answers = Counter(answer(SimulatedMachine(seed, noise), 1.0) for seed in range(100))
    assert answers["slower"] + answers["faster"] <= 18  # 5 expected; with a fixed order 60


def test_a_machine_is_slower_from_one_switch_to_the_next() -> None:
    noise = NoiseModel(spread=0.0, spikes=0.0, wander=0.0, regime=1.5)
    machine = SimulatedMachine(1, noise, switches=(3.0, 7.0, 10.0))
    measured = [machine.measure(1.0) for _ in range(6)]
    assert measured == pytest.approx([1.0, 1.5, 1.5, 1.0, 1.5, 1.5])


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
    assert set(processes) == set(turns) == {1.0, 2.0}


def test_a_random_walk_goes_farther_than_noise_that_forgets() -> None:
    def reach(memory: float) -> float:
        values = rates(replace(PURE, spread=0.0, memory=memory, memory_step=0.01), side_by_side=100)
        return max(values) / min(values)

    assert 1.02 < reach(0.5) < reach(1.0)
    assert rates(replace(PURE, spread=0.0)) == [1.0] * 16


STILL = replace(PURE, spread=0.0)


def logs(noise: NoiseModel, count: int, seed: int = 1) -> NDArray[np.float64]:
    """Logarithms of so many turns of a program that takes a second."""
    machine = SimulatedMachine(seed, noise)
    return np.log([machine.measure(1.0) for _ in range(count)])


def period_of(wave: NDArray[np.float64]) -> float:
    """In turns; of a sine, x[n - 1] + x[n + 1] is 2 cos(2 pi / period) x[n]."""
    middle, around = wave[1:-1], (wave[:-2] + wave[2:]) / 2
    cosine = float(middle @ around / (middle @ middle))
    assert around == pytest.approx(cosine * middle, abs=1e-9)
    return 2 * math.pi / math.acos(cosine)


@pytest.mark.parametrize("turns", [8 / 3, 8.0, 20.0])
def test_a_rhythm_is_a_sine_of_its_period(turns: float) -> None:
    wave = logs(replace(STILL, sine=0.03, sine_turns=turns), 400)
    assert period_of(wave) == pytest.approx(turns)
    assert abs(wave).max() == pytest.approx(0.03, rel=0.05)


def test_where_a_rhythm_begins_is_drawn_of_the_whole_circle() -> None:
    """Of sin(pi / 2 turn + phase), turns 1 and 2 are cos(phase) and -sin(phase)."""
    noise = replace(STILL, sine=0.03, sine_turns=4.0)
    waves = [logs(noise, 2, seed) for seed in range(400)]
    phases = [math.atan2(-second, first) % math.tau for first, second in waves]
    assert scipy.stats.kstest(phases, scipy.stats.uniform(0, math.tau).cdf).pvalue > 0.01


def test_a_rhythm_has_eight_turns_where_nothing_else_is_said() -> None:
    assert period_of(logs(replace(STILL, sine=0.03), 400)) == pytest.approx(8.0)


@pytest.mark.parametrize("half", [replace(STILL, memory=0.9), replace(STILL, memory_step=0.01)])
def test_a_walk_needs_a_memory_and_steps(half: NoiseModel) -> None:
    assert not logs(half, 9).any()


def test_a_machine_begins_in_its_fast_regime() -> None:
    assert not logs(replace(STILL, regime=1.5, regime_seconds=1e12), 9).any()


@pytest.mark.parametrize(("seed", "machines_matter"), [("mine", False), ("", True)])
def test_the_order_is_drawn_for_the_design_or_else_for_the_machine(
    seed: str, machines_matter: bool
) -> None:
    design, seconds = replace(DESIGN, seed=seed), {BASE: 1.0, OTHER: 1.0}
    runs = [simulate(design, seconds, SimulatedMachine(n, STILL)) for n in range(8)]
    assert (len({tuple(s.case for s in run) for run in runs}) > 1) is machines_matter


def test_a_drift_is_a_sine_of_20_to_400_seconds() -> None:
    waves = [logs(replace(STILL, wander=0.05), 400, seed) for seed in range(60)]
    seconds = [2.0 * period_of(wave) for wave in waves]
    assert 20 <= min(seconds) < 40
    assert 380 < max(seconds) <= 400
    assert [abs(wave).max() for wave in waves] == pytest.approx([0.05] * 60, rel=0.1)


def test_noise_that_remembers_is_an_autoregression() -> None:
    walk = logs(replace(STILL, memory=0.9, memory_step=0.01), 4000)
    assert np.corrcoef(walk[1:], walk[:-1])[0, 1] == pytest.approx(0.9, abs=0.03)
    assert np.std(walk[1:] - 0.9 * walk[:-1]) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("seconds", [10.0, 180.0])
def test_a_regime_lasts_as_long_as_is_said(seconds: float) -> None:
    slow = logs(replace(STILL, regime=1.5, regime_seconds=seconds), 4000) > 0
    switches = sum(a != b for a, b in pairwise(slow))
    assert scipy.stats.binomtest(switches, 3999, 1 - math.exp(-2.0 / seconds)).pvalue > 0.01


def test_as_many_turns_stall_as_is_said() -> None:
    machine = SimulatedMachine(1)
    drawn = [machine.stalled(Stalls(share=0.1, factor=2.0)) for _ in range(2000)]
    assert set(drawn) == {1.0, 2.0}
    assert scipy.stats.binomtest(drawn.count(2.0), 2000, 0.1).pvalue > 0.01


def test_the_noise_of_a_machine_is_by_default_what_was_measured() -> None:
    """Tails of 3 %, drifts of 3 %, and a fiftieth of the turns 15 % slower."""
    plain = NoiseModel()
    tailed = replace(plain, wander=0, spikes=0, regime=1)
    tails = logs(tailed, 8000) / 0.03
    assert scipy.stats.kstest(tails, scipy.stats.t(4).cdf).pvalue > 0.01
    far = int((abs(tails) > 4).sum())
    assert scipy.stats.binomtest(far, 8000, 2 * scipy.stats.t(4).sf(4)).pvalue > 0.01
    spikes = logs(replace(plain, spread=0, wander=0, regime=1), 8000)
    assert scipy.stats.binomtest(int((spikes > 0).sum()), 8000, 0.02).pvalue > 0.01
    assert spikes[spikes > 0].mean() == pytest.approx(0.15, rel=0.2)
    assert abs(logs(replace(plain, spread=0, spikes=0, regime=1), 400)).max() == pytest.approx(
        0.03, rel=0.1
    )
    slow = logs(replace(plain, spread=0, spikes=0, wander=0), 4000)
    assert set(np.exp(slow).round(9)) == {1.0, 1.5}
    switches = sum(a != b for a, b in pairwise(slow))
    assert scipy.stats.binomtest(switches, 3999, 1 - math.exp(-2.0 / 180)).pvalue > 0.01


class Order(dict[Case, float]):
    """Seconds of cases, which notes the order in which it is asked for them."""

    def __init__(self) -> None:
        super().__init__({BASE: 1.0, OTHER: 1.0})
        self.asked: list[Case] = []

    def __getitem__(self, case: Case) -> float:
        self.asked.append(case)
        return super().__getitem__(case)


def test_programs_side_by_side_take_turns_there_and_back() -> None:
    order = Order()
    design = replace(DESIGN, axis="", min_rounds=1)
    seen = simulate(design, order, SimulatedMachine(1), 1, side_by_side=20)
    assert all(sample.interleaved for sample in seen)
    fours = [order.asked[at : at + 4] for at in range(0, 40, 4)]
    assert all(four in ([a, b, b, a] for a, b in ((BASE, OTHER), (OTHER, BASE))) for four in fours)
    assert len({four[0] for four in fours}) == 2, "which comes first is drawn"
