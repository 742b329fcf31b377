"""Verdicts: what is called equal, slower, faster, and when nothing is said."""

import math
from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.model import Case, MachineState, Sample, Verdict
from flowos.plan import compare

A = Case("p", (("with", "a"),))
B = Case("p", (("with", "b"),))
QUIET = MachineState(others_cpus=0.0)
DISTURBED = MachineState(others_cpus=1.5)
POSITIVE = st.floats(min_value=1e-9, max_value=1e12)
ROUNDS = st.lists(st.tuples(*[st.floats(min_value=0.5, max_value=2.0)] * 4), max_size=12)


def sample(
    case: Case,
    number: int,
    *values: float,
    unit: str = "byte/s",
    state: MachineState = QUIET,
    metric: str = "m",
    run: str = "r",
) -> Sample:
    return Sample(
        run=run, case=case, round=number, metric=metric, unit=unit, values=values, state=state
    )


def rounds(
    turns: Iterable[Sequence[float]],
    unit: str = "byte/s",
    state: MachineState = QUIET,
    first: int = 0,
) -> list[Sample]:
    """One whole round A B B A for each four values."""
    return [
        sample(case, number, value, unit=unit, state=state)
        for number, four in enumerate(turns, first)
        for case, value in zip((A, B, B, A), four, strict=True)
    ]


def verdict(seen: list[Sample], margin: float = 0.03) -> Verdict:
    (only,) = compare(seen, axis="with", base="a", margin=margin)
    return only


def noisy(ratio: float, count: int, spread: float = 0.01, seed: int = 1) -> list[list[float]]:
    random = Random(seed)
    return [
        [true * math.exp(random.gauss(0, spread)) for true in (1.0, ratio, ratio, 1.0)]
        for _ in range(count)
    ]


@pytest.mark.parametrize(("more", "less"), [(9, 4), (4, 9)])
def test_an_interval_that_ends_at_one_but_for_rounding_tells_nothing(more: int, less: int) -> None:
    seen = rounds([(1, 1.25, 1.25, 1)] * more + [(1, 1 / 1.25, 1 / 1.25, 1)] * less)
    assert verdict(seen).answer == "inconclusive"


def test_a_comparison_pays_for_four_looks_unless_it_is_said_otherwise() -> None:
    seen = rounds(noisy(1.0, 16))
    default = verdict(seen)
    width = {
        looks: [
            v.high - v.low for v in compare(seen, axis="with", base="a", margin=0.03, looks=looks)
        ]
        for looks in (1, 4, 12)
    }
    assert width[4] == [default.high - default.low]
    assert width[1] < width[4] < width[12]


@pytest.mark.parametrize(
    ("ratio", "unit", "answer"),
    [
        (1.0, "byte/s", "equal"),
        (0.9, "byte/s", "slower"),
        (1.1, "byte/s", "faster"),
        (1.1, "second", "slower"),
        (0.9, "second", "faster"),
    ],
)
def test_the_answer_follows_what_is_better_in_the_unit(
    ratio: float, unit: str, answer: str
) -> None:
    found = verdict(rounds(noisy(ratio, 16), unit=unit))
    assert found.answer == answer
    assert found.low < (1 / ratio if unit == "second" else ratio) < found.high
    assert found.why == ""


def test_a_difference_smaller_than_the_margin_is_equal_even_when_it_is_certain() -> None:
    found = verdict(rounds(noisy(0.98, 16, spread=0.001)))
    assert found.answer == "equal"
    assert found.high < 1


def test_a_wide_interval_cannot_tell_and_says_what_would_help() -> None:
    found = verdict(rounds(noisy(1.0, 4, spread=0.05)))
    assert found.answer == "inconclusive"
    assert "wider than the margin" in found.why


def test_three_rounds_are_too_few_however_well_they_agree() -> None:
    found = verdict(rounds([[1, 2, 2, 1]] * 3))
    assert (found.answer, found.ratio, found.low, found.high) == ("inconclusive", 2, 0, math.inf)
    assert "both ran in 3 of the 4 whole rounds needed" in found.why


def test_noise_that_hits_a_whole_round_cancels() -> None:
    random = Random(3)
    scaled = [[v * f for v in four] for four in noisy(0.95, 16) if (f := random.uniform(0.3, 3))]
    assert verdict(rounds(scaled)).ratio == pytest.approx(verdict(rounds(noisy(0.95, 16))).ratio)


def test_linear_drift_cancels() -> None:
    drift = [[math.exp(0.1 * (4 * n + turn)) for turn in range(4)] for n in range(16)]
    found = verdict(rounds(drift))
    assert found.answer == "equal"
    assert found.ratio == pytest.approx(1)


def test_a_round_whose_turns_differ_wildly_is_left_out_and_counted() -> None:
    switched = rounds([[1.0, 1.5, 1.5, 1.5]], first=32)
    found = verdict([*rounds(noisy(1.0, 32)), *switched])
    assert (found.answer, found.rounds, found.disturbed) == ("equal", 32, 0)
    assert found.why == "1 of 33 rounds were disturbed and left out"


def test_a_round_in_a_disturbed_state_is_left_out() -> None:
    disturbed = rounds([[1, 0.5, 0.5, 1]] * 4, first=16, state=DISTURBED)
    found = verdict([*rounds(noisy(1.0, 16)), *disturbed])
    assert (found.answer, found.rounds) == ("equal", 16)


def test_where_most_rounds_are_disturbed_all_are_used_and_that_is_said() -> None:
    disturbed = rounds(noisy(1.0, 16), first=2, state=DISTURBED)
    found = verdict([*rounds(noisy(1.0, 2)), *disturbed])
    assert found.rounds == 18
    assert "16 of 18 rounds were disturbed and had to be used" in found.why
    assert found.disturbed == 16


def test_a_ratio_with_two_regimes_says_so() -> None:
    two = [[1, 1.4, 1.4, 1], [1, 1.0, 1.0, 1]] * 8
    assert (
        "the ratio has two regimes: 50% of the values lie 1.40x above" in verdict(rounds(two)).why
    )


def test_a_round_cut_short_does_not_count() -> None:
    cut = [sample(A, 8, 1.0), sample(B, 8, 9.0), sample(B, 8, 9.0)]
    assert verdict([*rounds(noisy(1.0, 8)), *cut]).rounds == 8


def test_rounds_of_different_runs_are_not_paired() -> None:
    apart = [sample(A, 0, 1, run="x"), sample(A, 0, 1, run="x")]
    apart += [sample(B, 0, 1, run="y"), sample(B, 0, 1, run="y")]
    found = verdict(apart)
    assert (found.answer, found.rounds) == ("inconclusive", 0)
    assert math.isnan(found.ratio)


def test_each_metric_rest_and_level_has_its_own_verdict() -> None:
    seen = [
        sample(Case("p", (("n", n), ("with", level))), number, value, metric=metric)
        for number in range(4)
        for n in ("1", "2")
        for metric in ("x", "y")
        for level, value in (("a", 1), ("b", 2), ("c", 3), ("c", 3), ("b", 2), ("a", 1))
    ]
    found = compare(seen, axis="with", base="a", margin=0.03)
    assert {(v.rest, v.metric, v.other, round(v.ratio, 9)) for v in found} == {
        ((("n", n),), metric, other, ratio)
        for n in "12"
        for metric in "xy"
        for other, ratio in (("b", 2.0), ("c", 3.0))
    }


def test_without_the_base_the_verdicts_cannot_tell() -> None:
    only_b = [s for s in rounds([[1, 1, 1, 1]] * 4) if s.case == B]
    assert verdict(only_b).answer == "inconclusive"


def test_a_case_without_the_axis_is_ignored() -> None:
    assert compare([sample(Case("p"), 0, 1)], axis="with", base="a", margin=0.03) == ()


def test_numbers_as_far_apart_as_floats_go_give_an_infinite_ratio() -> None:
    assert verdict(rounds([[1e-300, 1e300, 1e300, 1e-300]] * 4)).ratio == math.inf


@given(ROUNDS, POSITIVE)
def test_the_verdict_does_not_depend_on_the_scale(turns: list[list[float]], scale: float) -> None:
    before = compare(rounds(turns), axis="with", base="a", margin=0.03)
    scaled = rounds([[v * scale for v in four] for four in turns])
    after = compare(scaled, axis="with", base="a", margin=0.03)
    for one, other in zip(before, after, strict=True):
        assert (one.ratio, one.low, one.high) == pytest.approx(
            (other.ratio, other.low, other.high), nan_ok=True, rel=1e-6
        )


@given(ROUNDS)
def test_swapping_base_and_other_inverts_the_ratio(turns: list[list[float]]) -> None:
    swapped = [[b, a, a2, b2] for a, b, b2, a2 in turns]
    for one, other in zip(
        compare(rounds(turns), axis="with", base="a", margin=0.03),
        compare(rounds(swapped), axis="with", base="a", margin=0.03),
        strict=True,
    ):
        inverse = (1 / other.ratio, 1 / other.high, 1 / other.low if other.low else math.inf)
        assert (one.ratio, one.low, one.high) == pytest.approx(inverse, nan_ok=True, rel=1e-6)


@given(ROUNDS, st.randoms())
def test_the_order_of_the_rounds_does_not_matter(turns: list[list[float]], random: Random) -> None:
    mixed = list(turns)
    random.shuffle(mixed)
    for one, other in zip(
        compare(rounds(turns), axis="with", base="a", margin=0.03),
        compare(rounds(mixed), axis="with", base="a", margin=0.03),
        strict=True,
    ):
        assert (one.ratio, one.low, one.high) == pytest.approx(
            (other.ratio, other.low, other.high), nan_ok=True
        )
        assert one.answer == other.answer


@given(st.lists(st.tuples(*[st.lists(st.floats(), max_size=3)] * 4), max_size=10))
def test_whatever_was_measured_no_comparison_crashes_or_claims_more_than_it_has(
    turns: list[tuple[list[float], ...]],
) -> None:
    seen = [
        sample(case, number, *values)
        for number, four in enumerate(turns)
        for case, values in zip((A, B, B, A), four, strict=True)
    ]
    for found in compare(seen, axis="with", base="a", margin=0.03):
        whole = sum(all(any(0 < v < math.inf for v in vs) for vs in four) for four in turns)
        assert found.rounds <= whole
        assert found.answer == "inconclusive" or found.low <= found.ratio <= found.high
