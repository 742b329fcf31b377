"""Never equal: what stalls in a share of its turns, or of its processes, or of its rounds."""

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from flowos.model import Case, Design, MachineState, Sample, Verdict
from flowos.plan import NoiseModel, SimulatedMachine, Stalls, compare, simulate
from flowos.plan._tails import chance_of

A, B = (Case("p", (("with", level),)) for level in "ab")
DESIGN = Design(cases=(A, B), axis="with", base="a", margin=0.03)
QUIET = NoiseModel(spread=0.01, freedom=0, spikes=0, wander=0, regime=1)
DISTURBED = MachineState(others_cpus=1.5)


def answers(
    trials: int, noise: NoiseModel, stalls: Stalls | None = None, side_by_side: int = 0
) -> Counter[str]:
    counted: Counter[str] = Counter()
    for seed in range(trials):
        seen = simulate(
            DESIGN,
            {A: 1.0, B: 1.0},
            SimulatedMachine(seed, noise),
            stalls={B: stalls} if stalls else None,
            side_by_side=side_by_side,
        )
        counted[verdict(list(seen)).answer] += 1
    return counted


def verdict(seen: list[Sample]) -> Verdict:
    (only,) = compare(seen, axis="with", base="a", margin=0.03)
    return only


def rounds(
    count: int, slow: dict[tuple[int, int], float], *, interleaved: bool = False
) -> list[Sample]:
    """Times of A B B A; `slow`: round and turn of the four, and the factor of its time."""
    random = Random(1)
    return [
        Sample(
            run="r",
            case=case,
            round=number,
            metric="m",
            unit="second",
            values=(random.uniform(1, 1.01) * slow.get((number, turn), 1.0),),
            interleaved=interleaved,
        )
        for number in range(count)
        for turn, case in enumerate((A, B, B, A))
    ]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "stalls",
    [
        Stalls(share=0.1, factor=2.0),
        Stalls(share=0.15, factor=2.0),
        Stalls(share=0.1, factor=1.5),
        Stalls(share=0.2, factor=1.2),
    ],
    ids=["a tenth", "half speed in 15 %", "half as long again in a tenth", "a fifth longer"],
)
def test_what_stalls_in_some_of_its_turns_is_not_equal(stalls: Stalls) -> None:
    assert answers(100, QUIET, stalls)["equal"] <= 10  # 4 % expected; 12 to 16 without the tails


@pytest.mark.no_cover
def test_processes_that_stall_by_half_in_a_tenth_are_not_equal_side_by_side() -> None:
    slow = Stalls(share=0.1, factor=1.5, of_processes=True)
    assert answers(60, QUIET, slow, side_by_side=4)["equal"] <= 6  # 2.5 % expected


@pytest.mark.parametrize(
    "stalls",
    [Stalls(share=0.2, factor=2.0), Stalls(share=0.1, factor=2.0)],
    ids=["a fifth", "a tenth"],
)
def test_side_by_side_turns_that_stall_are_slower(stalls: Stalls) -> None:
    assert answers(20, QUIET, stalls, side_by_side=16)["slower"] == 20


@pytest.mark.no_cover
def test_side_by_side_processes_that_are_slow_are_not_equal() -> None:
    half = Stalls(share=0.15, factor=2.0, of_processes=True)
    assert answers(40, QUIET, half, side_by_side=8)["equal"] <= 3


@pytest.mark.no_cover
def test_equal_cases_are_still_called_equal_and_by_few_different() -> None:
    for noise, side_by_side in ((QUIET, 0), (NoiseModel(spread=0.02), 0), (QUIET, 8)):
        found = answers(40, noise, side_by_side=side_by_side)
        assert found["equal"] >= 32
        assert found["slower"] + found["faster"] <= 4


def test_a_verdict_by_the_mean_says_so_and_names_whose_turns_lag() -> None:
    found = verdict(rounds(32, {(n, 1): 2.0 for n in range(0, 32, 3)}))
    assert (found.answer, found.statistic) == ("slower", "mean")
    assert found.high < 1
    assert found.ratio == found.mean == pytest.approx(1 / (1 + 11 / 64), abs=0.01)
    assert found.p90 == pytest.approx(0.5, abs=0.01)
    assert found.why.startswith("it is the mean time that differs; the median is ")
    assert "of the tenth of the turns that lag most 11 are of b and 0 of a" in found.why


def test_stalls_of_the_base_make_the_other_faster_in_the_mean() -> None:
    found = verdict(rounds(32, {(n, 0): 2.0 for n in range(0, 32, 3)}))
    assert (found.answer, found.statistic) == ("faster", "mean")
    assert found.low > 1


def test_a_few_stalls_leave_it_open_and_the_mean_is_shown() -> None:
    found = verdict(rounds(16, {(3, 1): 2.0, (9, 2): 2.0}))
    assert (found.answer, found.statistic) == ("inconclusive", "mean")
    assert found.low < 1 < found.high
    assert "equal in the median; not so, or not surely so, in the mean time: 0.94" in found.why


def test_a_median_and_a_mean_that_contradict_each_other_tell_nothing() -> None:
    faster = {(n, turn): 0.9 for n in range(32) for turn in (1, 2)}
    found = verdict(rounds(32, faster | {(n, 1): 5.0 for n in range(0, 32, 3)}))
    assert found.answer == "inconclusive"
    assert "the median is faster (1.1" in found.why
    assert "the mean time slower (0." in found.why


def test_lags_that_lie_on_one_side_are_not_equal_though_the_mean_is() -> None:
    found = verdict(rounds(32, {(n, 1): 1.08 for n in range(0, 32, 3)}))
    assert (found.answer, found.statistic) == ("inconclusive", "median")
    assert found.why == (
        "equal in the median; not so in the 90th percentile: 0.928;"
        " of the tenth of the turns that lag most 11 are of b and 0 of a;"
        " 11 of 32 rounds were disturbed and left out"
    )


@pytest.mark.parametrize(
    ("count", "slow", "answer"),
    [
        (31, {(3, 1): 1.4}, "inconclusive"),
        (32, {(3, 1): 1.4}, "equal"),
        (32, {(3, 1): 1.29, (9, 2): 1.29}, "equal"),
        (32, {(3, 1): 1.32, (9, 2): 1.32}, "inconclusive"),
        (32, {(3, 1): 1.4, (9, 0): 1.4}, "equal"),
    ],
    ids=["few rounds", "once", "twice, cheaply", "twice", "once each"],
)
def test_stalls_that_are_seen_need_more_rounds_to_be_rare(
    count: int, slow: dict[tuple[int, int], float], answer: str
) -> None:
    found = verdict(rounds(count, slow))
    assert found.answer == answer
    assert ("took 1.3 times as long as their neighbours" in found.why) == (answer != "equal")
    if answer != "equal":
        stalls = len(slow)
        assert f"{stalls} of {2 * count} processes of b and 0 of a took" in found.why
        assert found.needed == {1: 31, 2: 38}[stalls]  # of those that are not left out


@pytest.mark.parametrize(("count", "answer"), [(14, "inconclusive"), (15, "equal")])
def test_equal_needs_the_processes_in_which_a_stall_of_a_tenth_shows(
    count: int, answer: str
) -> None:
    found = verdict(rounds(count, {}))
    assert found.answer == answer
    assert found.needed == (0 if answer == "equal" else 15)
    assert ("28 processes of each are too few" in found.why) == (answer != "equal")


def test_stalls_inside_a_run_count_where_the_median_of_its_repetitions_hides_them() -> None:
    seen = [
        replace(s, values=s.values * 7 + (s.values[0] * (8 if s.case == B else 1),))
        for s in rounds(16, {})
    ]
    found = verdict(seen)
    assert (found.answer, found.statistic) == ("slower", "mean")


@pytest.mark.parametrize(("of", "kept"), [((B,), 32), ((A, B), 24)])
def test_rounds_that_are_marked_on_one_side_only_are_not_left_out(
    of: tuple[Case, ...], kept: int
) -> None:
    slow = {(n, turn): 1.5 for n in range(8) for turn in (1, 2)}
    seen = [
        replace(s, state=DISTURBED) if s.round < 8 and s.case == of[s.round % len(of)] else s
        for s in rounds(32, slow)
    ]
    found = verdict(seen)
    assert found.rounds == kept
    assert (found.answer == "equal") == (of == (A, B))


@pytest.mark.parametrize("counts", [(), (1,), (1, 1, 1), (3, -1, 2), (2, 2, -2, 1), (0, 5, 0, -1)])
def test_the_chance_of_sides_is_that_of_all_ways_to_draw_them(counts: tuple[int, ...]) -> None:
    signs = list(product((1, -1), repeat=len(counts)))
    sums = [abs(sum(s * c for s, c in zip(each, counts, strict=True))) for each in signs]
    expected = sum(s >= abs(sum(counts)) for s in sums) / len(sums)
    assert chance_of(counts) == pytest.approx(expected)


def test_times_as_far_apart_as_floats_go_have_a_mean() -> None:
    far = [replace(s, values=(1e-300, 1e300)) for s in rounds(16, {})]
    assert verdict(far).mean == pytest.approx(1.0)
    (found,) = compare(
        [replace(s, values=(1e300 if s.case == B else 1e-300,)) for s in rounds(16, {})],
        axis="with",
        base="a",
        margin=0.03,
    )
    assert found.answer == "slower"
    assert math.isfinite(found.mean or 0.0)
