"""Summary: median, spread, shares of ceilings, and the marks that a number carries."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowos.model import Case, MachineState, Measurement, Sample, Share
from flowos.plan import summarize

GEMM = Case("gemm", (("cores", "1"), ("n", "512")))
PEAK = Case("flops", (("cores", "1"),))
PEAK_512 = PEAK.at(isa="avx512f")
PEAK_AVX = PEAK.at(isa="avx2")
UNKNOWN = MachineState()
DISTURBED = MachineState(others_cpus=1.0)


def sample(
    case: Case,
    *values: float,
    metric: str = "rate",
    unit: str = "flop/s",
    state: MachineState = UNKNOWN,
) -> Sample:
    return Sample(run="r", case=case, round=0, metric=metric, unit=unit, values=values, state=state)


def of(case: Case, found: tuple[Measurement, ...]) -> Measurement:
    return next(m for m in found if m.case == case)


def ceiling_of(case: Case) -> Case | None:
    return PEAK if case.probe == "gemm" else None


def test_a_number_is_the_median_with_its_quartiles_best_and_count() -> None:
    (m,) = summarize([sample(GEMM, 1, 2, 3), sample(GEMM, 4, 5)])
    assert (m.median, m.low, m.high, m.best, m.count) == (3, 2, 4, 5, 5)
    assert m.trust.good


def test_the_best_time_is_the_shortest() -> None:
    (m,) = summarize([sample(GEMM, 3, 1, 2, unit="second")])
    assert m.best == 1


def test_one_value_is_its_own_spread() -> None:
    (m,) = summarize([sample(GEMM, 7)])
    assert (m.low, m.median, m.high) == (7, 7, 7)


def test_values_that_are_not_finite_do_not_count_and_are_marked() -> None:
    (m,) = summarize([sample(GEMM, math.nan, 2, math.inf), sample(GEMM, math.nan)])
    assert (m.median, m.count) == (2, 1)
    assert m.trust.marks == ("3 of 4 values are not finite numbers, and left out",)
    assert summarize([sample(GEMM, math.nan), sample(GEMM)]) == ()


def test_disturbed_samples_give_way_to_undisturbed_ones() -> None:
    (m,) = summarize([sample(GEMM, 1, 1, state=DISTURBED), sample(GEMM, 10)])
    assert (m.median, m.count) == (10, 1)
    assert m.trust.good


def test_where_all_samples_are_disturbed_the_number_is_marked() -> None:
    (m,) = summarize([sample(GEMM, 1, state=DISTURBED), sample(GEMM, 3, state=DISTURBED)])
    assert m.median == 2
    assert m.trust.marks == ("other processes kept 1.00 cpus busy (in 2 of 2 samples)",)


def test_the_ceiling_is_the_best_of_all_cases_within_it() -> None:
    found = summarize(
        [sample(PEAK_AVX, 60, 65), sample(PEAK_512, 90, 100), sample(GEMM, 80)],
        ceiling_of=ceiling_of,
    )
    assert of(GEMM, found).shares == (
        Share(kind="measured", of="flops cores=1", ceiling=100, value=0.8),
    )
    assert of(PEAK_512, found).shares == ()


def test_a_share_is_of_the_number_that_stands_for_the_ceiling() -> None:
    found = summarize(
        [sample(PEAK, 90, 100), sample(PEAK, 150, state=DISTURBED), sample(GEMM, 80)],
        ceiling_of=ceiling_of,
    )
    assert of(GEMM, found).shares[0].ceiling == of(PEAK, found).best == 100


def test_a_ceiling_that_names_its_metric_is_that_metric() -> None:
    found = summarize(
        [sample(PEAK, 100, metric="fma"), sample(PEAK, 900, metric="other"), sample(GEMM, 80)],
        ceiling_of=lambda case: PEAK.at(metric="fma") if case == GEMM else None,
    )
    assert of(GEMM, found).shares[0].ceiling == 100


def test_a_ceiling_of_another_unit_or_one_not_measured_gives_no_share() -> None:
    (m, _) = summarize([sample(GEMM, 80), sample(PEAK, 5, unit="Hz")], ceiling_of=ceiling_of)
    assert m.shares == ()


@pytest.mark.parametrize(("rate", "good"), [(102, True), (102.1, False), (103, False)])
def test_a_number_above_its_measured_ceiling_is_marked(rate: float, good: bool) -> None:
    found = summarize([sample(PEAK, 100), sample(GEMM, rate)], ceiling_of=ceiling_of)
    trust = of(GEMM, found).trust
    assert trust.good is good
    assert good or trust.marks == (f"{rate:.0f}% of flops cores=1: above its ceiling",)


def test_a_nominal_ceiling_stands_beside_the_measured_one_and_may_be_exceeded() -> None:
    (m,) = summarize([sample(GEMM, 80)], nominal_of=lambda _case, unit: (f"sheet {unit}", 40.0))
    assert m.shares == (Share(kind="nominal", of="sheet flop/s", ceiling=40, value=2),)
    assert m.trust.good


def test_a_time_reaches_its_floor_from_above() -> None:
    (m,) = summarize([sample(GEMM, 0.5, unit="second")], nominal_of=lambda *_: ("sheet", 0.125))
    assert m.shares[0].value == 0.25


@pytest.mark.parametrize(("value", "ceiling"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)])
def test_a_share_without_meaning_is_left_out(value: float, ceiling: float) -> None:
    (m,) = summarize([sample(GEMM, value)], nominal_of=lambda *_: ("sheet", ceiling))
    assert m.shares == ()


ANY = st.floats(-1e300, 1e300) | st.sampled_from([math.nan, math.inf, -math.inf])


@given(st.lists(st.lists(ANY, max_size=9), max_size=5))
def test_any_values_can_be_summarized(rows: list[list[float]]) -> None:
    for m in summarize([sample(GEMM, *row) for row in rows], nominal_of=lambda *_: ("x", 1.0)):
        assert m.low <= m.median <= m.high
        assert m.count == sum(math.isfinite(v) for row in rows for v in row)
