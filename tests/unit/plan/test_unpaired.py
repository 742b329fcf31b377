import math
from dataclasses import replace

import pytest

from flowos.model import Case, MachineState, Measurement, Sample, Trust, Verdict
from flowos.plan import Numbers, by_probe, outcome, side_by_side

RATE = Measurement(
    case=Case("stream", (("threads", "2"),)),
    metric="triad",
    unit="byte/s",
    count=8,
    median=40.0,
    low=39.8,
    high=40.2,
    best=43.0,
)
TIME = replace(RATE, case=Case("mpi"), metric="latency", unit="second")
MARKED = Trust(marks=("the clock went away",))


def scaled(m: Measurement, factor: float) -> Measurement:
    return replace(m, median=m.median * factor, low=m.low * factor, high=m.high * factor)


def of(run: str, *measured: Measurement, samples: tuple[Sample, ...] = ()) -> Numbers:
    return Numbers(run=run, measurements=measured, samples=samples)


def sample(m: Measurement, *values: float, state: MachineState | None = None) -> Sample:
    return Sample(
        run="r",
        case=m.case,
        round=1,
        metric=m.metric,
        unit=m.unit,
        values=values,
        state=state or MachineState(),
    )


def judged(base: Numbers, other: Numbers, margin: float = 0.05) -> Verdict:
    (found,) = side_by_side(base, other, margin=margin)
    return found


def whole(base: Numbers, other: Numbers, margin: float = 0.05) -> Verdict:
    rows = side_by_side(base, other, margin=margin)
    (found,) = by_probe(rows, base, other, margin=margin)
    return found


def many(factors: list[float]) -> tuple[Measurement, ...]:
    """A number of one probe for each factor."""
    return tuple(
        replace(scaled(RATE, f), case=Case("stream", (("n", str(n)),)))
        for n, f in enumerate(factors)
    )


def test_a_higher_rate_is_a_ratio_above_one_with_the_quartiles_range() -> None:
    faster = replace(RATE, median=50.0, low=49.0, high=51.0)
    found = judged(of("before", RATE), of("after", faster))
    assert (found.base, found.other, found.answer) == ("before", "after", "faster")
    assert found.ratio == pytest.approx(50 / 40)
    assert found.low == pytest.approx(49 / 40.2)
    assert found.high == pytest.approx(51 / 39.8)


def test_a_longer_time_is_slower() -> None:
    found = judged(of("a", TIME), of("b", scaled(TIME, 1.25)))
    assert found.ratio == pytest.approx(1 / 1.25)
    assert found.low < found.ratio < found.high
    assert found.answer == "slower"


def test_a_number_that_is_marked_in_either_run_is_not_judged_and_carries_its_marks() -> None:
    marked = replace(scaled(RATE, 0.5), trust=MARKED)
    for base, other, run in ((RATE, marked, "b"), (marked, RATE, "a")):
        found = judged(of("a", base), of("b", other))
        assert found.answer == "inconclusive"
        assert found.marks == (f"{run}: the clock went away",)
        assert found.disturbed == 1
        assert "not to be trusted" in found.why


@pytest.mark.parametrize(
    ("other", "margin", "answer", "why"),
    [
        (scaled(RATE, 1.0), 0.05, "equal", ""),
        (scaled(RATE, 0.97), 0.05, "equal", ""),
        (scaled(RATE, 0.97), 0.01, "slower", ""),
        (scaled(RATE, 1.03), 0.01, "faster", ""),
        (replace(RATE, median=36.0, low=35.0, high=41.0), 0.05, "inconclusive", "halves meet"),
        (replace(RATE, low=30.0, high=50.0), 0.05, "inconclusive", "wider than the margin"),
        (replace(RATE, low=0.0), 0.05, "inconclusive", "a value is not above 0"),
        (replace(RATE, median=0.0, low=0.0), 0.05, "inconclusive", "a value is not above 0"),
    ],
)
def test_a_trusted_number_is_judged_by_margin_and_middle_halves(
    other: Measurement, margin: float, answer: str, why: str
) -> None:
    found = judged(of("a", RATE), of("b", other), margin)
    assert found.answer == answer
    assert why in found.why


def test_what_stalls_is_not_equal_though_the_medians_are() -> None:
    calm = of("a", RATE, samples=(sample(RATE, 40.0, 40.0),))
    stalls = of("b", RATE, samples=(sample(RATE, 40.0, 20.0),))
    found = judged(calm, stalls)
    assert found.mean == pytest.approx(0.75)
    assert (found.answer, "ratio of the means is 0.750" in found.why) == ("inconclusive", True)
    assert whole(calm, stalls).answer == "inconclusive"
    assert "the means are slower" in whole(calm, stalls).why
    slow = of("b", TIME, samples=(sample(TIME, 1.0, 3.0),))
    assert judged(of("a", TIME, samples=(sample(TIME, 1.0),)), slow).mean == pytest.approx(0.5)


def test_disturbed_samples_count_in_no_mean_unless_there_are_no_others() -> None:
    stolen = MachineState(steal_share=0.5)
    bad, good = sample(RATE, 1.0, math.nan, state=stolen), sample(RATE, 40.0)
    assert of("a", RATE, samples=(bad, good)).means == {(RATE.case, "triad", "byte/s"): 40.0}
    assert of("a", RATE, samples=(bad,)).means == {(RATE.case, "triad", "byte/s"): 1.0}


@pytest.mark.parametrize(
    ("factors", "answer"),
    [
        ([1.0, 1.01, 0.99], "equal"),
        ([0.9, 0.9, 0.9], "slower"),
        ([1.2, 1.2, 1.0], "faster"),
        ([1.0] * 9 + [0.5], "slower"),  # one number that is much slower is not hidden by the others
        ([1.0] * 9 + [0.93], "inconclusive"),
        ([1.2] * 9 + [0.93], "inconclusive"),
    ],
)
def test_a_probe_is_judged_as_a_whole_and_hides_no_number_that_is_slower(
    factors: list[float], answer: str
) -> None:
    base, other = of("a", *many([1.0] * len(factors))), of("b", *many(factors))
    assert whole(base, other).answer == answer


def test_a_whole_that_is_apart_while_no_number_is_cannot_be_told() -> None:
    wide = replace(RATE, low=30.0, high=50.0)
    for factor in (0.94, 0.9, 1.12):
        found = whole(of("a", RATE), of("b", replace(wide, median=40.0 * factor)))
        assert found.answer == "inconclusive"
    assert whole(of("a", RATE), of("b", wide)).answer == "inconclusive"


def test_where_half_of_the_numbers_are_marked_the_probe_is_not_judged() -> None:
    first, second = many([1.0, 1.0])
    found = whole(of("a", first, second), of("b", first, replace(second, trust=MARKED)))
    assert found.answer == "inconclusive"
    assert found.why == "1 of 2 numbers are marked"
    assert found.marks == ("b: the clock went away",)
    zero = whole(of("a", RATE), of("b", replace(RATE, low=0.0)))
    assert zero.why == "1 of 1 have no ratio, as a value is not above 0"
    assert (zero.low, zero.high) == (0.0, math.inf)


def test_where_a_number_was_0_the_medians_are_told_and_0_in_both_is_equal() -> None:
    zero = replace(TIME, median=0.0, low=0.0, high=0.0)
    found = judged(of("a", zero), of("b", replace(zero, median=0.5, high=0.5)))
    assert found.answer == "inconclusive"
    assert found.why == "0, then 0.5 second: a value is not above 0, so that there is no ratio"
    same = judged(of("a", zero), of("b", zero))
    assert (same.answer, same.why) == ("equal", "0 in both")


def test_what_is_0_in_both_is_equal_and_keeps_no_other_number_from_being_judged() -> None:
    zeros = [
        replace(RATE, median=0.0, low=0.0, high=0.0, metric=f"failures {at}") for at in range(3)
    ]
    alike = whole(of("a", *zeros), of("b", *zeros))
    assert (alike.answer, alike.why) == ("equal", "0 in both")
    with_one = whole(of("a", RATE, *zeros), of("b", RATE, *zeros))
    assert (with_one.answer, with_one.why) == ("equal", "0 slower, 1 equal, 0 faster of 1")


def test_what_only_one_run_has_is_told() -> None:
    found = by_probe((), of("a", RATE), of("b", TIME), margin=0.05)
    assert [(v.metric, v.answer, v.why) for v in found] == [
        ("stream", "inconclusive", "1 of 1 numbers are in a only"),
        ("mpi", "inconclusive", "1 of 1 numbers are in b only"),
    ]


def test_of_several_answers_the_worst_that_is_known_counts() -> None:
    equal = judged(of("a", RATE), of("b", RATE))
    slower, open_one = replace(equal, answer="slower"), replace(equal, answer="inconclusive")
    assert outcome([equal]) == "equal or better"
    assert outcome([equal, open_one]) == "cannot judge"
    assert outcome([equal, open_one, slower]) == "worse"
    assert outcome([]) == "cannot judge"


@pytest.mark.parametrize(
    ("count", "factor", "answer"),
    [
        (1, 0.5, "inconclusive"),
        (1, 1.0, "inconclusive"),
        (3, 0.9, "inconclusive"),
        (3, 0.8, "slower"),
        (3, 1.1, "inconclusive"),
        (3, 1.3, "faster"),
        (4, 0.9, "slower"),
        (3, 1.0, "equal"),
    ],
)
def test_few_values_show_large_differences_only_and_one_value_none(
    count: int, factor: float, answer: str
) -> None:
    few = replace(scaled(RATE, factor), count=count)
    assert judged(of("a", RATE), of("b", few)).answer == answer
    found = judged(of("a", few), of("b", scaled(RATE, factor)))
    assert found.answer == ("inconclusive" if count == 1 else "equal")
    if answer == "inconclusive" and factor != 1.0:
        why = judged(of("a", RATE), of("b", few)).why
        assert why == (
            "measured once, so that its spread is not known"
            if count == 1
            else "the medians lie apart, but not by enough for 3 values"
        )


def test_a_number_that_the_other_run_failed_to_measure_leaves_its_probe_open() -> None:
    base = of("a", *many([1.0] * 10), TIME)
    other = replace(of("b", *many([1.0] * 9), TIME), failed=[Case("stream", (("n", "9"),))])
    stream, mpi = by_probe(side_by_side(base, other, margin=0.05), base, other, margin=0.05)
    assert (stream.answer, mpi.answer) == ("inconclusive", "equal")
    assert "; 1 of 10 numbers could not be measured in b; 1 of 10 numbers are in a" in stream.why
    slow = replace(other, measurements=many([0.5] * 9))
    assert whole(replace(base, measurements=many([1.0] * 10)), slow).answer == "slower"


@pytest.mark.parametrize(("kept", "answer"), [(3, "inconclusive"), (4, "equal")])
def test_half_of_the_numbers_of_a_run_that_ended_early_are_too_few(kept: int, answer: str) -> None:
    base, some = of("a", *many([1.0] * 6)), of("b", *many([1.0] * kept))
    assert whole(base, some).answer == "equal", "a smaller run, not one that was cut short"
    cut = whole(base, replace(some, ended_early="it was interrupted"))
    assert cut.answer == answer
    assert ("b ended early: it was interrupted" in cut.why) == (answer != "equal")


FLAT = replace(RATE, low=40.0, high=40.0)


@pytest.mark.parametrize(
    ("factor", "count", "answer"),
    [
        (1.0499, 4, "equal"),
        (1.0501, 4, "faster"),
        (1 / 1.0499, 4, "equal"),
        (1 / 1.0501, 4, "slower"),
        (1.05**3 - 1e-4, 3, "inconclusive"),
        (1.05**3 + 1e-4, 3, "faster"),
        (1.05**-3 + 1e-4, 3, "inconclusive"),
        (1.05**-3 - 1e-4, 3, "slower"),
        (1.0499, 2, "equal"),
        (1.0499, 1, "inconclusive"),
    ],
)
def test_a_number_differs_beyond_the_margin_and_of_few_values_beyond_three(
    factor: float, count: int, answer: str
) -> None:
    other = replace(scaled(FLAT, factor), count=count)
    assert judged(of("a", FLAT), of("b", other)).answer == answer


@pytest.mark.parametrize(
    ("other", "answer"),
    [
        (replace(FLAT, low=40 / 1.05**2 + 0.01), "equal"),
        (replace(FLAT, low=40 / 1.05**2 - 0.01), "inconclusive"),
        (replace(FLAT, high=40 * 1.05**2 - 0.01), "equal"),
        (replace(FLAT, high=40 * 1.05**2 + 0.01), "inconclusive"),
        (replace(FLAT, median=44.0, low=40.0, high=44.0), "inconclusive"),
        (replace(FLAT, median=44.0, low=40.1, high=44.0), "faster"),
        (replace(FLAT, median=36.0, low=36.0, high=40.0), "inconclusive"),
        (replace(FLAT, median=36.0, low=36.0, high=39.9), "slower"),
    ],
)
def test_middle_halves_may_be_two_margins_wide_and_may_not_meet(
    other: Measurement, answer: str
) -> None:
    found = judged(of("a", FLAT), of("b", other))
    assert found.answer == answer
    if answer == "inconclusive":
        meet = found.ratio in (1.1, 0.9)
        assert ("the middle halves meet" in found.why) is meet
    assert found.rounds == 0, "it was not interleaved"


@pytest.mark.parametrize(
    ("mean", "row", "probe"),
    [
        (40 / 1.0499, "equal", "equal"),
        (40 / 1.0501, "inconclusive", "inconclusive"),
        (40 * 1.0499, "equal", "equal"),
        (40 * 1.0501, "inconclusive", "inconclusive"),
        (0.0, "equal", "equal"),
        (0.5, "inconclusive", "inconclusive"),
        (40 / 1.09, "inconclusive", "inconclusive"),
    ],
)
def test_means_may_be_a_margin_apart_where_the_medians_are_equal(
    mean: float, row: str, probe: str
) -> None:
    base, other = (of(r, RATE, samples=(sample(RATE, v),)) for r, v in (("a", 40.0), ("b", mean)))
    found = judged(base, other)
    assert found.mean == (pytest.approx(mean / 40) if mean else None)
    assert (found.answer, whole(base, other).answer) == (row, probe)
    slower = probe == "inconclusive" and mean < 40
    assert ("the means are slower" in whole(base, other).why) is slower


@pytest.mark.parametrize(
    ("factors", "answer"),
    [
        ([0.92, 1.05**-2 / 0.92 - 1e-4], "slower"),
        ([0.92, 1.05**-2 / 0.92 + 1e-4], "inconclusive"),
        ([1.1, 1.05**2 / 1.1 + 1e-4], "faster"),
        ([1.1, 1.05**2 / 1.1 - 1e-4], "equal"),
        ([1.0] * 9 + [1.05**-3 - 1e-4], "slower"),
        ([1.0] * 9 + [1.05**-3 + 1e-4], "inconclusive"),
    ],
)
def test_a_probe_differs_by_a_margin_on_the_whole_or_by_three_in_one_number(
    factors: list[float], answer: str
) -> None:
    base, other = of("a", *many([1.0] * len(factors))), of("b", *many(factors))
    assert whole(base, other).answer == answer


@pytest.mark.parametrize(("wide", "answer"), [(2, "equal"), (3, "inconclusive")])
def test_a_probe_is_equal_where_half_of_its_numbers_are(wide: int, answer: str) -> None:
    base = many([1.0] * (2 + wide))
    other = [*base[:2], *(replace(m, low=30.0, high=50.0) for m in base[2:])]
    assert whole(of("a", *base), of("b", *other)).answer == answer


@pytest.mark.parametrize(("good", "answer"), [(2, "inconclusive"), (3, "equal")])
def test_more_than_half_of_the_numbers_have_to_be_comparable(good: int, answer: str) -> None:
    base = many([1.0] * (2 + good))
    other = [replace(base[0], trust=MARKED), replace(base[1], low=0.0), *base[2:]]
    found = whole(of("a", *base), of("b", *other))
    assert found.answer == answer
    if good == 2:
        assert found.why == (
            "1 of 4 numbers are marked, 1 of 4 have no ratio, as a value is not above 0"
        )
    assert (found.ratio, found.disturbed) == (1.0, 1)


def test_a_case_that_failed_takes_all_points_that_its_program_sweeps() -> None:
    base, other = of("a", *many([1.0] * 4)), of("b", *many([1.0] * 3))
    for failed, answer in (
        (Case("stream"), "inconclusive"),
        (Case("stream", (("n", "3"),)), "inconclusive"),
        (Case("stream", (("n", "3"), ("isa", "avx2"))), "equal"),
        (Case("mpi"), "equal"),
    ):
        assert whole(base, replace(other, failed=[failed])).answer == answer


def test_a_mean_that_one_run_lacks_is_unknown() -> None:
    seen = of("a", RATE, samples=(sample(RATE, 40.0),))
    assert judged(seen, of("b", RATE)).mean is None
    assert judged(of("a", RATE), replace(seen, run="b")).mean is None


@pytest.mark.parametrize("zero", [replace(RATE, median=0.0, low=0.0), replace(RATE, low=-1.0)])
def test_what_is_not_above_0_has_no_range(zero: Measurement) -> None:
    for base, other in ((RATE, zero), (zero, RATE)):
        found = judged(of("a", base), of("b", other))
        assert (found.low, found.high, found.disturbed) == (0.0, math.inf, 0)
        assert math.isnan(found.ratio) is (zero.median == 0)


def test_of_many_marks_the_first_is_named() -> None:
    first, second = (
        replace(m, trust=Trust(marks=marks))
        for m, marks in zip(many([1.0, 1.0]), (("hot", "late"), ("loud",)), strict=True)
    )
    base, other = of("a", first, second), of("b", first, second)
    row, _ = side_by_side(base, other, margin=0.05)
    assert (row.why, row.disturbed) == ("not to be trusted: a: hot", 2)
    assert row.marks == ("a: hot", "a: late", "b: hot", "b: late")
    assert whole(base, other).marks == ("a: hot",)
    assert whole(base, other).rounds == 0
