"""The cases of a probe put together: what they tell on the whole."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from flowos.model import Case, MachineState, Sample, Verdict
from flowos.plan import compare, geomean_verdict

QUIET = MachineState(others_cpus=0.0)
DISTURBED = MachineState(others_cpus=1.5)


def seen(
    ratios: Sequence[float],
    count: int,
    spread: float = 0.0,
    seed: int = 1,
    state: MachineState = QUIET,
) -> list[Sample]:
    """`count` rounds A B B A of each case; the cases differ in size, and in b's ratio over a."""
    random = Random(seed)
    return [
        Sample(
            run="r",
            case=Case("p").at(env=env, size=str(size)),
            round=number,
            metric="rate",
            unit="byte/s",
            values=(10**size * true * math.exp(random.gauss(0, spread)),),
            state=state,
        )
        for number in range(count)
        for size, ratio in enumerate(ratios)
        for env, true in (("a", 1.0), ("b", ratio), ("b", ratio), ("a", 1.0))
    ]


def verdict(samples: Sequence[Sample], margin: float = 0.03) -> Verdict:
    (only,) = geomean_verdict(samples, axis="env", base="a", margin=margin)
    return only


def test_the_ratio_is_the_geometric_mean_over_the_cases() -> None:
    found = verdict(seen([0.5, 1.0, 0.5 * 0.9**3], 4))
    assert found.ratio == pytest.approx((0.25 * 0.9**3) ** (1 / 3))
    assert (found.probe, found.metric, found.rest) == ("geomean", "p", ())
    assert (found.answer, found.rounds) == ("slower", 4)
    assert found.why == "geometric mean of 3 of 3 cases"


def test_of_one_case_it_is_that_case() -> None:
    samples = seen([0.9], 4, spread=0.01)
    (alone,) = compare(samples, axis="env", base="a", margin=0.03)
    whole = verdict(samples)
    assert (whole.ratio, whole.low, whole.high) == pytest.approx(
        (alone.ratio, alone.low, alone.high)
    )


def test_noisy_cases_tell_together_what_none_tells_by_itself() -> None:
    samples = seen([1.0] * 16, 16, spread=0.08, seed=2)
    alone = compare(samples, axis="env", base="a", margin=0.03)
    assert all(v.answer == "inconclusive" for v in alone)
    assert verdict(samples).answer == "equal"


def test_turns_that_differ_inside_rounds_that_agree_widen_the_interval() -> None:
    """Turns d above and below their mean: a round has a deviation of d, and the mean of three cases
    that of their squares' sum. 5.8409 is Student's t for 3 degrees of freedom and 99 %.
    """
    samples = [
        replace(
            s, values=(s.values[0] * math.exp((0.1, 0.2, 0.3)[n // 4 % 3] * (0, 1, -1, 0)[n % 4]),)
        )
        for n, s in enumerate(seen([1.0, 1.0, 1.0], 4))
    ]
    found = verdict(samples)
    reach = 5.8409 * math.sqrt(0.01 + 0.04 + 0.09) / 3 / math.sqrt(4)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((-reach, reach), rel=1e-4)


def test_a_case_that_lacks_rounds_shifts_nothing() -> None:
    whole = seen([0.9, 1.0, 1.1], 8)
    lacking = [s for s in whole if s.case.level("size") != "0" or s.round < 4]
    assert verdict(lacking).ratio == pytest.approx(verdict(whole).ratio)
    assert verdict(lacking).rounds == 8


def test_a_case_with_too_few_rounds_is_left_out_and_counted() -> None:
    whole = seen([0.5, 1.0, 1.0], 8)
    lacking = [s for s in whole if s.case.level("size") != "0" or s.round < 3]
    found = verdict(lacking)
    assert found.ratio == pytest.approx(1.0)
    assert found.why.startswith("geometric mean of 2 of 3 cases")


def test_rounds_that_few_cases_have_are_not_used() -> None:
    whole = seen([1.0, 1.0, 1.0], 8)
    lacking = [s for s in whole if s.case.level("size") == "0" or s.round < 4]
    assert verdict(lacking).rounds == 4


@pytest.mark.parametrize("count", [0, 3])
def test_without_enough_rounds_nothing_is_told(count: int) -> None:
    samples = [s for s in seen([1.0, 1.0], 4) if s.round < count or s.case.level("env") == "a"]
    samples += [s for s in seen([1.0, 1.0], 1) if s.case.level("env") == "b"]
    found = verdict(samples)
    assert math.isnan(found.ratio)
    assert (found.low, found.high) == (0.0, math.inf)
    assert (found.rounds, found.answer) == (0, "inconclusive")


def test_rounds_that_were_all_disturbed_are_used_and_counted() -> None:
    assert verdict(seen([1.0, 1.0], 4, state=DISTURBED)).disturbed == 4


@pytest.mark.no_cover
@pytest.mark.parametrize("count", [4, 8, 16])
def test_the_true_ratio_lies_outside_in_at_most_one_of_eighty(count: int) -> None:
    true, trials = 0.98, 400
    outside = 0
    for seed in range(trials):
        found = verdict(seen([true] * 5, count, spread=0.05, seed=seed))
        outside += not found.low <= true <= found.high
    assert outside <= 2 * trials / 80
