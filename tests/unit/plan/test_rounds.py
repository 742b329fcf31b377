"""Rounds: their order, the looks at which they end, what is repeated, and the time left."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from flowos.model import Case, Design, MachineState, Measurement, Sample
from flowos.plan import drawn, judged, narrowed, next_round, one_round, turns
from flowos.plan._rounds import _settled

A, B, C = (Case("p", (("with", level),)) for level in "abc")
QUIET = MachineState()
DISTURBED = MachineState(others_cpus=1.0)
COMPARED = Design(cases=(A, B), axis="with", base="a", margin=0.03)
SURVEY = Design(cases=(A, B, C), seconds={A: 1.0, B: 2.0, C: 4.0})


def play(
    d: Design, rates: dict[Case, float], disturbed: tuple[int, ...] = (), spread: float = 0.0
) -> list[tuple[Case, ...]]:
    """Work through the design; every second round, B is faster instead of slower by `spread`."""
    seen: list[Sample] = []
    played: list[tuple[Case, ...]] = []
    while cases := next_round(d, seen, math.inf):
        number = len(played)
        for case in cases:
            rate = rates[case] * (1 + (case == B) * spread * (-1) ** number)
            state = DISTURBED if number in disturbed else QUIET
            seen.append(sample(case, number, rate, state))
        played.append(cases)
        assert len(played) < 100, "the design does not end"
    return played


def sample(case: Case, number: int, rate: float, state: MachineState = QUIET) -> Sample:
    return Sample(
        run="r", case=case, round=number, metric="m", unit="1/s", values=(rate,), state=state
    )


def test_a_round_is_all_cases_as_drawn_and_then_reversed() -> None:
    for done in range(9):
        order = turns((A, B, C), done, "seed")
        assert sorted(case.label for case in order[:3]) == [case.label for case in (A, B, C)]
        assert order[3:] == order[2::-1]


def test_one_round_of_some_cases_is_not_started_if_its_turns_do_not_fit() -> None:
    twice = 2 * (1.0 + 4.0)
    assert one_round(SURVEY, (A, C), 3, twice) == turns((A, C), 3, SURVEY.seed)
    assert one_round(SURVEY, (A, C), 3, twice - 0.1) == ()


def test_the_order_of_a_round_is_drawn_from_the_seed_of_the_design() -> None:
    orders = {
        seed: next_round(replace(SURVEY, seed=seed), [], math.inf) for seed in ("x", "y", "z", "0")
    }
    assert len(set(orders.values())) > 1
    for seed, order in orders.items():
        assert order == next_round(replace(SURVEY, seed=seed), [], math.inf)


def test_each_case_stands_in_each_place_and_neighbours_stay_neighbours() -> None:
    orders = [drawn("abc", "seed", number) for number in range(6000)]
    counts = Counter("".join(order) for order in orders)
    assert set(counts) == {"abc", "bca", "cab", "cba", "acb", "bac"}
    assert all(900 < count < 1100 for count in counts.values())


def test_of_two_cases_each_comes_first_in_half_of_the_rounds_whatever_came_before() -> None:
    begun = "".join(drawn("ab", "seed", number)[0] for number in range(4000))
    for before in ("", "a", "b", "aa", "ab", "ba", "bb"):
        after = [begun[i + len(before)] for i in range(3990) if begun[i:].startswith(before)]
        assert 0.44 < after.count("a") / len(after) < 0.56


def test_nothing_has_no_order() -> None:
    assert drawn((), "seed", 0) == ()


@pytest.mark.parametrize("ratio", [0.9, 1.1])
def test_a_clear_difference_ends_at_the_first_look(ratio: float) -> None:
    assert len(play(COMPARED, {A: 1.0, B: ratio})) == 4


def test_a_clear_equality_ends_at_the_first_look_at_which_stalls_would_have_shown() -> None:
    assert len(play(COMPARED, {A: 1.0, B: 1.0})) == 16


def test_an_unclear_comparison_ends_after_the_last_look() -> None:
    assert len(play(COMPARED, {A: 1.0, B: 1.03}, spread=0.2)) == 32


def test_two_disturbed_rounds_are_made_up_for_after_the_last_look() -> None:
    assert len(play(COMPARED, {A: 1.0, B: 1.03}, disturbed=(3, 9), spread=0.2)) == 34


def test_at_most_half_as_many_rounds_again_are_added() -> None:
    every_second_pair = tuple(number for number in range(99) if number % 4 >= 2)
    assert len(play(COMPARED, {A: 1, B: 1.03}, disturbed=every_second_pair, spread=0.2)) == 48


def test_an_ever_disturbed_machine_ends_after_the_last_look() -> None:
    rounds = play(COMPARED, {A: 1.0, B: 1.03}, disturbed=tuple(range(99)), spread=0.2)
    assert len(rounds) == 32


def test_a_comparison_of_one_case_ends_after_the_last_look() -> None:
    only = Design(cases=(A,), axis="with", base="a", looks=(4, 8))
    assert len(play(only, {A: 1.0})) == 8


def test_a_steady_survey_ends_after_its_least_rounds() -> None:
    assert len(play(SURVEY, {A: 1, B: 2, C: 3})) == 1
    twice = Design(cases=(A, B), min_rounds=2)
    assert len(play(twice, {A: 1, B: 2})) == 2


def test_a_survey_repeats_what_is_disturbed_until_it_is_not() -> None:
    assert len(play(SURVEY, {A: 1, B: 2, C: 3}, disturbed=(0, 1))) == 3


def test_a_survey_repeats_a_disturbed_number_at_most_three_times() -> None:
    assert len(play(SURVEY, {A: 1, B: 2, C: 3}, disturbed=tuple(range(99)))) == 4


def test_a_survey_repeats_only_the_cases_that_need_it() -> None:
    seen = [sample(case, 0, 1.0) for case in (A, C, C, A)]
    seen += [sample(B, 0, rate) for rate in (1.0, 1.5)]
    assert next_round(SURVEY, seen, math.inf) == (B, B)


def test_points_that_a_program_swept_by_itself_count_for_their_case() -> None:
    swept = [sample(case.at(n=n), 0, 1.0) for case in (A, B, C) for n in ("1", "2")]
    assert next_round(SURVEY, swept, math.inf) == ()
    uneven = [*swept, sample(B.at(n="2"), 0, 3.0)]
    assert next_round(SURVEY, uneven, math.inf) == (B, B)


def test_samples_of_other_designs_do_not_count() -> None:
    others = [sample(Case("other"), number, 1.0) for number in range(9)]
    assert next_round(COMPARED, others, math.inf) == turns((A, B), 0, "")


def test_a_round_that_does_not_fit_the_time_left_is_not_begun() -> None:
    timed = Design(cases=(A, B), axis="with", base="a", seconds={A: 1.0, B: 2.0})
    assert next_round(timed, [], 6.0) == turns((A, B), 0, "")
    assert next_round(timed, [], 5.9) == ()


def test_a_survey_with_little_time_measures_once_what_fits() -> None:
    assert next_round(SURVEY, [], 13.9) == (A, B, C)
    assert next_round(SURVEY, [], 5.5) == (A, B)
    assert next_round(SURVEY, [], 0.5) == ()
    seen = [sample(case, 0, 1.0, DISTURBED) for case in (A, B, C)]
    assert next_round(SURVEY, seen, 5.5) == ()


@pytest.mark.parametrize(("left_seconds", "fitting"), [(3.0, 2), (2.99, 1), (1.0, 1), (0.99, 0)])
def test_what_takes_exactly_the_time_left_fits(left_seconds: float, fitting: int) -> None:
    assert len(next_round(SURVEY, [], left_seconds)) == fitting


@pytest.mark.parametrize(("left_seconds", "started"), [(2.0, True), (1.99, False)])
def test_a_case_whose_time_is_not_known_takes_none(left_seconds: float, started: bool) -> None:
    known = replace(COMPARED, seconds={A: 1.0})
    assert bool(next_round(known, [], left_seconds)) is started


@pytest.mark.parametrize(
    ("low", "high", "settled"), [(190, 210, True), (190, 210.1, False), (-210, -190, True)]
)
def test_a_number_is_settled_up_to_a_spread_of_a_tenth(
    low: float, high: float, settled: bool
) -> None:
    middle = math.copysign(200.0, low)
    number = Measurement(
        case=A, metric="m", unit="1/s", count=9, median=middle, low=low, high=high, best=high
    )
    assert _settled(number) is settled


@pytest.mark.parametrize("axis", ["", "with"])
def test_a_design_without_cases_is_done(axis: str) -> None:
    assert next_round(Design(cases=(), axis=axis), [], math.inf) == ()


def test_a_survey_measures_a_single_case_twice_a_round_where_levels_of_it_are_compared() -> None:
    """Several rounds are for comparing: here what the case's program sweeps by itself."""
    assert play(Design(cases=(A,)), {A: 1.0}) == [(A,)]
    assert play(Design(cases=(A,), min_rounds=2), {A: 1.0}) == [(A, A), (A, A)]


def seen_of(d: Design, rates: dict[Case, float], numbers: range) -> list[Sample]:
    """Whole rounds of the design's cases; B's rate alternates by a fifth: undecided."""
    return [
        sample(case, number, rates[case] * (1 + 0.2 * (case == B) * (-1) ** number))
        for number in numbers
        for case in (*d.cases, *reversed(d.cases))
    ]


THREE = Design(cases=(A, B, C), axis="with", base="a", margin=0.03)


def test_verdicts_are_asked_for_at_the_looks_only() -> None:
    rates = {A: 1.0, B: 1.03, C: 0.5}
    assert judged(THREE, seen_of(THREE, rates, range(3))) == ()
    verdicts = judged(THREE, seen_of(THREE, rates, range(4)))
    assert [(v.other, v.answer) for v in verdicts] == [("b", "inconclusive"), ("c", "slower")]


def test_a_level_that_is_told_takes_no_more_time_and_the_others_go_on() -> None:
    rates = {A: 1.0, B: 1.03, C: 0.5}
    seen = seen_of(THREE, rates, range(4))
    left = narrowed(THREE, judged(THREE, seen))
    assert left.cases == (A, B)
    assert next_round(left, seen, math.inf) == turns((A, B), 4, "")


def test_a_level_with_one_verdict_that_cannot_be_told_goes_on() -> None:
    seen = seen_of(THREE, {A: 1.0, B: 1.03, C: 0.5}, range(16))
    other = [replace(s, metric="n", values=(1.0,)) for s in seen if s.case != C]
    verdicts = judged(THREE, [*seen, *other])
    assert {(v.other, v.answer) for v in verdicts} > {("b", "equal"), ("b", "inconclusive")}
    assert narrowed(THREE, verdicts).cases == (A, B)
