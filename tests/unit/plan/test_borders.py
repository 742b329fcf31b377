"""Limits decide exactly at their value: tested at the value and just next to it."""

import math

import pytest

from flowos.model import MachineState
from flowos.plan import assess_trust, limits_for
from flowos.plan._answer import answered, processes_for
from flowos.plan._compare import deviation_inside, quiet_rounds, without_outliers
from flowos.plan._few import ANY_NOISE, MIN_FACTOR, Noise, beyond_noise
from flowos.plan._intervals import Interval
from flowos.plan._pairs import Round, Turns
from flowos.plan._tails import Tail, tail_of, together


def turns(*logs: float, marked: bool = False, interleaved: bool = False) -> Turns:
    return Turns(logs=logs, means=logs, marked=marked, interleaved=interleaved)


def a_round(number: int = 0, apart: float = 0.0, *, marked: bool = False) -> Round:
    """Both cases are marked, or none; the turns of each lie so far apart."""
    side = turns(0.0, apart, marked=marked)
    return Round(("r", number), side, side)


@pytest.mark.parametrize(
    ("quiet", "marked", "kept"),
    [(4, 4, 4), (4, 5, 9), (8, 8, 8), (8, 9, 17), (5, 9, 14), (3, 3, 6), (4, 0, 4), (0, 0, 0)],
)
def test_marked_rounds_are_left_out_where_half_and_at_least_four_are_calm(
    quiet: int, marked: int, kept: int
) -> None:
    rounds = [a_round(n, marked=n >= quiet) for n in range(quiet + marked)]
    assert len(quiet_rounds(rounds)) == kept


@pytest.mark.parametrize(("ours", "kept"), [(4, 16), (5, 21)])
def test_marks_on_one_side_are_its_own_where_chance_does_so_less_than_one_time_in_ten(
    ours: int, kept: int
) -> None:
    """Four heads or four tails come once in eight, five once in sixteen."""
    lopsided = Round(("r", 99), turns(0, 0), turns(0, 0, marked=True))
    assert len(quiet_rounds([a_round()] * 16 + [lopsided] * ours)) == kept


@pytest.mark.parametrize(
    ("usual", "apart", "kept"), [(0.0, 0.05, 5), (0.0, 0.051, 4), (0.02, 0.1, 5), (0.02, 0.101, 4)]
)
def test_a_round_is_wild_beyond_a_twentieth_and_five_times_the_usual(
    usual: float, apart: float, kept: int
) -> None:
    assert len(without_outliers([a_round(apart=usual)] * 4 + [a_round(apart=apart)])) == kept


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_deviation_of_a_round_is_that_of_the_difference_of_two_means(count: int) -> None:
    """Turns at +d and -d: the variance of one is d^2 n / (n - 1), of the difference 2 / n of it."""
    side = turns(*(0.01 * (-1) ** turn for turn in range(count)))
    expected = math.sqrt(2 / count * 0.01**2 * count / (count - 1))
    assert deviation_inside([Round(("r", 0), side, side)] * 3) == pytest.approx(expected)


def test_side_by_side_it_is_that_of_a_median_by_the_quartiles() -> None:
    """For normal noise: 1.2533 / sqrt(n) of a deviation, which is the quartiles' range / 1.349."""
    base = turns(*[0.0] * 7, interleaved=True)
    other = turns(*(0.01 * n for n in range(7)), interleaved=True)
    expected = 1.2533 * (0.04 / 1.349) / math.sqrt(7)
    assert deviation_inside([Round(("r", 0), base, other)]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("known", "limit"), [(7, ANY_NOISE), (8, MIN_FACTOR)])
def test_a_factor_of_few_rounds_has_to_exceed_what_noise_can_be(
    known: int, limit: float, sign: int
) -> None:
    """From eight rounds of other cases on it is known what noise is here."""
    for factor, decided in ((limit, False), (math.nextafter(limit, 9), True)):
        lag = turns(sign * factor, sign * factor)
        found = beyond_noise([Round(("r", 0), turns(0, 0), lag)], Noise(known, 0.0))
        assert found.centre == sign * factor
        assert math.isfinite(found.low) is math.isfinite(found.high) is decided


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (-0.03, 0.03, "equal"),
        (-0.031, 0.03, "inconclusive"),
        (-0.03, 0.031, "inconclusive"),
        (-0.029, -0.01, "equal"),
        (-0.2, -1e-11, "slower"),
        (-0.2, -1e-13, "inconclusive"),
        (-0.2, 0.0, "inconclusive"),
        (1e-11, 0.2, "faster"),
        (1e-13, 0.2, "inconclusive"),
        (0.0, 0.2, "inconclusive"),
    ],
)
def test_an_interval_tells_by_its_ends_but_for_rounding(
    low: float, high: float, answer: str
) -> None:
    assert answered(Interval((low + high) / 2, low, high), 0.03) == answer


def test_as_many_processes_are_needed_as_show_a_stall_of_a_tenth() -> None:
    assert [processes_for(stalls) for stalls in range(3)] == [29, 64, 81]


@pytest.mark.parametrize(
    ("at", "beyond"),
    [
        (MachineState(clock_hz=(4e9, 3.801e9)), MachineState(clock_hz=(4e9, 3.799e9))),
        (MachineState(clock_hz=(4e9, 3.8e9)), MachineState(clock_hz=(4e9, 3.8e9 - 1))),
        (MachineState(clock_hz=(4e9, 4.199e9)), MachineState(clock_hz=(4e9, 4.201e9))),
        (MachineState(add_imul_ratio=(3, 3.089)), MachineState(add_imul_ratio=(3, 3.091))),
        (MachineState(add_imul_ratio=(3, 2.911)), MachineState(add_imul_ratio=(3, 2.909))),
        (MachineState(scaling=(1, 0.95)), MachineState(scaling=(1, 0.949))),
        (MachineState(steal_share=0.01), MachineState(steal_share=0.0101)),
        (MachineState(others_cpus=0.1), MachineState(others_cpus=0.101)),
        (MachineState(starved_share=0.1), MachineState(starved_share=0.101)),
        (MachineState(throttled_seconds=0.0), MachineState(throttled_seconds=0.001)),
        (MachineState(load=(3.0, 0.0)), MachineState(load=(3.01, 0.0))),
    ],
)
def test_a_state_is_marked_beyond_its_limit_and_not_at_it(
    at: MachineState, beyond: MachineState
) -> None:
    limits = limits_for("x86_64", cpus=2)
    assert assess_trust([at], limits=limits).good
    assert not assess_trust([beyond], limits=limits).good


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("margin", "most", "second"), [(0.0, 1, 1), (0.1875, 1, 1), (0.19, 1, 0)])
def test_a_fifth_of_the_lags_counts_from_their_median_on_and_at_least_the_margin(
    sign: int, margin: float, most: int, second: int
) -> None:
    """Ten lags: the two that are farthest from the middle, one on each side, and none below."""
    off = (0.25, -0.1875, 0.125, -0.125, 0.0625, -0.0625, 0.03125, -0.03125, 0.0, 0.0)
    lags = turns(*(0.5 + sign * each for each in off))
    found = tail_of([[Round(("r", 0), turns(*[0.0] * 10), lags)]], margin)
    assert (found.base, found.other) == (most, second)[::sign]


def test_a_stall_takes_longer_than_its_limit() -> None:
    costs = (0.3, -0.3, 0.31, -0.31, -0.4)
    tail = Tail(excesses=(), base=0, other=0, chance=1.0, p90=0.0, costs=costs)
    assert tail.stalls(0.3) == (2, 1)


def test_rounds_count_that_half_of_the_cases_have() -> None:
    assert together([{1: 2.0, 2: 4.0}, {1: 7.0}]) == [4.5, 6.0]
    assert together([{1: 2.0, 2: 4.0}, {1: 7.0}, {1: 1.0}]) == [pytest.approx(11 / 3 - 1 / 3)]
