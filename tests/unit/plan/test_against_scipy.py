"""The statistics of `plan`, compared with their counterparts in SciPy."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import scipy
from hypothesis import assume, given
from hypothesis import strategies as st

from flowos.model import Case, Measurement, Sample, Verdict
from flowos.plan import (
    NoiseModel,
    Numbers,
    SimulatedMachine,
    by_probe,
    rounds_to_decide,
    side_by_side,
    summarize,
    wilson,
)
from flowos.plan._answer import RARE, SEEN, UNSEEN, processes_for
from flowos.plan._compare import MEDIAN_ERROR, deviation_inside
from flowos.plan._few import noise_of
from flowos.plan._intervals import Interval, interval, student, student_quantile
from flowos.plan._pairs import Pair, Round, Turns
from flowos.plan._sample_size import _reach
from flowos.plan._tails import Tail, chance_of, tail_of

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.96, 0.98, 0.9875, 0.99, 0.9975]
levels = st.sampled_from(LEVELS) | st.floats(0.01, 0.999)
numbers = st.floats(-1e3, 1e3).map(lambda value: round(value, 6))
samples = st.lists(numbers, min_size=2, max_size=30)


def ends(found: Interval) -> tuple[float, float]:
    return found.low, found.high


def turns(logs: Sequence[float], *, interleaved: bool = False) -> Turns:
    return Turns(logs=tuple(logs), means=tuple(logs), marked=False, interleaved=interleaved)


def summary_of(probe: str, values: Sequence[float], number: int = 0) -> Measurement:
    case = Case(probe, (("number", str(number)),))
    sample = Sample(run="r", case=case, round=0, metric="m", unit="1/s", values=tuple(values))
    (found,) = summarize([sample])
    return found


def a_round(base: Sequence[float], other: Sequence[float], *, interleaved: bool = False) -> Round:
    return Round(
        ("r", 0), turns(base, interleaved=interleaved), turns(other, interleaved=interleaved)
    )


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 31, 100, 399])
@pytest.mark.parametrize("level", [*LEVELS, 0.0, 0.001, 0.9999, 0.999999])
def test_student_quantiles(level: float, freedom: int) -> None:
    expected = scipy.stats.t.ppf((1 + level) / 2, freedom)
    assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("freedom", [1, 3, 4, 5, 100])
def test_student_quantiles_near_0_where_the_density_is_flat(freedom: int) -> None:
    """By the density: SciPy 1.17's own quantile is off by 1e-4 here, for 4 degrees of freedom."""
    expected = 1e-6 / (2 * scipy.stats.t.pdf(0, freedom))
    assert student_quantile(1e-6, freedom) == pytest.approx(expected, rel=1e-9)


@given(level=levels, freedom=st.integers(1, 1000))
def test_student_quantiles_of_any_level_and_freedom(level: float, freedom: int) -> None:
    expected = scipy.stats.t.interval(level, freedom)[1]
    assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-9)


@given(values=samples, level=levels)
def test_the_interval_of_a_mean(values: list[float], level: float) -> None:
    assume(np.ptp(values) > 1e-3)
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(level)
    found = student(values, level)
    assert ends(found) == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-9)
    assert found.centre == pytest.approx(np.mean(values), abs=1e-9)


@given(values=samples, level=levels, deviation=st.floats(0, 1e4))
def test_the_interval_of_a_mean_with_a_known_deviation(
    values: list[float], level: float, deviation: float
) -> None:
    scale = max(float(np.std(values, ddof=1)), deviation) / math.sqrt(len(values))
    assume(scale > 1e-6)
    expected = scipy.stats.t.interval(level, len(values) - 1, loc=np.mean(values), scale=scale)
    assert ends(student(values, level, deviation)) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(
    values=st.lists(st.integers(-60, 60), min_size=2, max_size=40, unique=True),
    centre=st.integers(-60, 60),
    level=levels,
)
def test_the_interval_holds_a_centre_unless_wilcoxons_signed_rank_test_rejects_it(
    values: list[int], centre: int, level: float
) -> None:
    """A quarter off the integers no difference is 0, and no two are equally large."""
    error, count = 1 - level, len(values)
    least = 2 * 0.5**count
    assume(not math.isclose(least, error))
    found = interval(values, level)
    if least > error:
        assert found == student(values, level)
        return
    off = centre + 0.25
    p = scipy.stats.wilcoxon(np.array(values) - off, method="exact").pvalue
    assume(not math.isclose(p, error))
    assert (found.low <= off <= found.high) == (p > error)


@given(values=st.lists(numbers, min_size=10, max_size=30))
def test_its_centre_is_the_median_of_the_pairwise_means(values: list[float]) -> None:
    first, second = np.triu_indices(len(values))
    means = (np.array(values)[first] + np.array(values)[second]) / 2
    assert interval(values, 0.95).centre == pytest.approx(np.median(means), abs=1e-12)


@given(trials=st.integers(1, 2000), share=st.floats(0, 1), level=st.sampled_from(LEVELS))
def test_the_score_interval_of_a_share(trials: int, share: float, level: float) -> None:
    hits = round(share * trials)
    expected = scipy.stats.binomtest(hits, trials).proportion_ci(level, method="wilson")
    found = wilson(hits, trials, scipy.stats.norm.ppf((1 + level) / 2))
    assert found == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)


def test_its_default_is_of_95_percent() -> None:
    expected = scipy.stats.binomtest(7, 50).proportion_ci(0.95, method="wilson")
    assert wilson(7, 50) == pytest.approx((expected.low, expected.high), abs=1e-5)


@given(ours=st.integers(0, 40), theirs=st.integers(0, 40))
def test_differences_of_one_are_the_sign_test(ours: int, theirs: int) -> None:
    assume(ours + theirs > 0)
    expected = scipy.stats.binomtest(ours, ours + theirs).pvalue
    assert chance_of([1] * ours + [-1] * theirs + [0]) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=8))
def test_differences_of_any_size_are_a_permutation_test_of_their_signs(
    differences: list[int],
) -> None:
    expected = scipy.stats.permutation_test(
        (np.array(differences),),
        lambda values, axis: np.abs(np.sum(values, axis=axis)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=math.inf,
        vectorized=True,
    ).pvalue
    assert chance_of(differences) == pytest.approx(expected, rel=1e-9)


@given(excesses=samples, level=levels)
def test_the_mean_time_has_the_interval_of_a_mean(excesses: list[float], level: float) -> None:
    assume(np.ptp(excesses) > 1e-3)
    seen = tuple(excesses)
    tail = Tail(excesses=seen, base=0, other=0, chance=1.0, p90=0.0, costs=())
    expected = scipy.stats.ttest_1samp(excesses, 0.0).confidence_interval(level)
    mirrored = [-np.sign(end) * np.log1p(abs(end)) for end in (expected.high, expected.low)]
    assert ends(tail.mean(level)) == pytest.approx(mirrored, rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40))
def test_nine_in_ten_turns(lags: list[float]) -> None:
    positive, negative = (
        scipy.stats.mstats.mquantiles(np.maximum(side, 0), 0.9, alphap=1, betap=1)[0]
        for side in (np.array(lags), -np.array(lags))
    )
    found = tail_of([[a_round([0.0] * len(lags), lags)]], 0.0)
    assert found.p90 == pytest.approx(positive - negative, abs=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=4, max_size=40))
def test_turns_side_by_side_lie_apart_by_the_range_between_their_quartiles(
    differences: list[float],
) -> None:
    found = a_round([0.0] * len(differences), differences, interleaved=True)
    low, high = scipy.stats.mstats.mquantiles(differences, [0.25, 0.75], alphap=0, betap=0)
    assert found.inner == pytest.approx(high - low, abs=1e-9)
    expected = (
        math.sqrt(math.pi / 2 / len(differences)) * (high - low) / (2 * scipy.stats.norm.ppf(0.75))
    )
    assert deviation_inside([found]) == pytest.approx(expected, rel=1e-4, abs=1e-9)


@given(st.lists(st.floats(0, 5), min_size=8, max_size=40))
def test_the_usual_noise_is_the_ninth_decile(apart: list[float]) -> None:
    rounds = tuple(a_round([0.0, d], [0.0, 0.0]) for d in apart)
    pair = Pair(probe="p", base="a", other="b", rest=(), metric="m", rounds=rounds)
    expected = scipy.stats.mstats.mquantiles(apart, 0.9, alphap=1, betap=1)[0]
    assert noise_of([pair]).usual == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=12))
def test_the_deviation_of_a_round_is_the_standard_error_of_students_test(
    logs: list[tuple[float, float]],
) -> None:
    base, other = zip(*logs, strict=True)
    assume(min(np.ptp(base), np.ptp(other)) > 1e-3)
    assume(abs(np.mean(base) - np.mean(other)) > 1e-3)
    expected = (np.mean(base) - np.mean(other)) / scipy.stats.ttest_ind(base, other).statistic
    assert deviation_inside([a_round(base, other)]) == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.floats(0.1, 1e9), min_size=1, max_size=40))
def test_median_and_quartiles_of_a_number(values: list[float]) -> None:
    found = summary_of("p", values)
    expected = scipy.stats.mstats.mquantiles(values, [0.25, 0.5, 0.75], alphap=1, betap=1)
    assert (found.low, found.median, found.high) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_ratio_of_a_probe_is_a_geometric_mean(count: int) -> None:
    ratios = np.random.default_rng(count).uniform(0.5, 2.0, count)
    base, other = (
        Numbers(run=run, measurements=[summary_of("p", [at], n) for n, at in enumerate(values)])
        for run, values in (("a", [1.0] * count), ("b", ratios))
    )
    (found,) = by_probe(side_by_side(base, other, margin=0.03), base, other, margin=0.03)
    assert found.ratio == pytest.approx(scipy.stats.gmean(ratios))


@pytest.mark.parametrize(("stalls", "error"), [(0, UNSEEN), (1, SEEN), (2, SEEN), (9, SEEN)])
def test_as_many_processes_as_show_that_stalls_are_rare(stalls: int, error: float) -> None:
    enough = processes_for(stalls)
    few, more = (scipy.stats.binom.cdf(stalls, n, RARE) for n in (enough, enough - 1))
    assert few <= error < more


@given(st.integers(2, 400))
def test_half_an_interval_in_deviations(rounds: int) -> None:
    _, expected = scipy.stats.t.interval(1 - MEDIAN_ERROR, rounds - 1, scale=1 / math.sqrt(rounds))
    assert _reach(rounds) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rounds", [9, 10, 57, 400, 401])
@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.01])
def test_as_many_rounds_tell_as_narrow_the_interval_to_what_is_to_be_told(
    ratio: float, rounds: int
) -> None:
    """Half the interval has to be within the ratio's distance from 1, or the rest of the margin."""
    half = {n: scipy.stats.t.interval(0.96, n - 1, scale=1 / math.sqrt(n))[1] for n in (8, rounds)}
    off = abs(math.log(ratio))
    reach = max(off, math.log(1.03) - off) * half[8] / half[rounds] * (1 - 1e-6)
    seen = Verdict(
        probe="p",
        axis="with",
        base="a",
        other="b",
        rest=(),
        metric="m",
        ratio=ratio,
        low=ratio / math.exp(reach),
        high=ratio * math.exp(reach),
        margin=0.03,
        rounds=8,
        answer="inconclusive",
    )
    assert rounds_to_decide(seen) == (rounds if rounds <= 400 else None)


@pytest.mark.parametrize("freedom", [0, 1, 4])
def test_simulated_noise_has_its_distribution(freedom: int) -> None:
    noise = NoiseModel(spread=0.03, freedom=freedom, spikes=0, wander=0, regime=1)
    machine = SimulatedMachine(1, noise)
    logs = [math.log(machine.measure(1.0)) / 0.03 for _ in range(3000)]
    expected = scipy.stats.t(freedom) if freedom else scipy.stats.norm
    assert scipy.stats.kstest(logs, expected.cdf).pvalue > 0.01


def test_simulated_spikes_are_exponential() -> None:
    noise = NoiseModel(spread=0, freedom=0, spikes=1, spike=0.15, wander=0, regime=1)
    machine = SimulatedMachine(1, noise)
    logs = [math.log(machine.measure(1.0)) for _ in range(3000)]
    assert scipy.stats.kstest(logs, scipy.stats.expon(scale=0.15).cdf).pvalue > 0.01
