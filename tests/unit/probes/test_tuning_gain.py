import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from flowos.model import Answer, Case, MachineState, Sample
from flowos.plan import compare
from flowos.probes import TuningGain, in_words, tuning_gain
from flowos.probes._tuning_gain import _alike

AXES = ("compiler", "flags", "stores")


def case(*levels: str) -> Case:
    return Case("stream", levels=tuple(zip(AXES, levels, strict=True)))


def sweep(rates: Mapping[tuple[str, str, str], float], rounds: int = 6) -> list[Sample]:
    """Two turns of every case in each round, with a drift of the whole machine over the rounds."""
    return [
        Sample(
            run="r",
            case=case(*levels),
            round=number,
            metric="triad",
            unit="byte/s",
            values=(rate * (1 + 0.2 * number) * (1 + 0.001 * ((number + turn) % 3)),),
        )
        for number in range(rounds)
        for turn in range(2)
        for levels, rate in rates.items()
    ]


FACTORIAL = {
    (compiler, flags, stores): base * gain * past
    for compiler, base in (("gcc", 40e9), ("clang", 40.2e9))
    for flags, gain in (("O3", 1.0), ("O2", 0.85))
    for stores, past in (("nt", 1.4), ("plain", 1.0))
}


def test_the_best_setting_is_found_and_each_of_its_settings_has_its_worth() -> None:
    found = tuning_gain(sweep(FACTORIAL), "triad")
    assert found is not None
    assert found.best == case("clang", "O3", "nt")
    ratios = {(v.axis, v.other): round(v.ratio, 2) for v in found.settings}
    assert ratios[("stores", "plain")] == 0.71
    assert ratios[("flags", "O2")] == 0.85
    assert all(v.rest == _rest(found.best, v.axis) for v in found.settings)
    plain = next(v for v in found.settings if v.other == "plain")
    assert 0.70 < plain.low <= plain.high < 0.73
    assert plain.answer == "slower"


def test_a_case_that_cannot_be_told_from_the_best_is_named_beside_it() -> None:
    found = tuning_gain(sweep(FACTORIAL), "triad")
    assert found is not None
    assert found.contenders == (case("gcc", "O3", "nt"),)
    assert "no measurable difference from it: stream compiler=gcc flags=O3 stores=nt" in in_words(
        found, "57 GB/s"
    )
    more = in_words(replace(found, contenders=found.contenders * 3), "57 GB/s")
    assert more[1:] == (
        "no measurable difference from it: stream compiler=gcc flags=O3 stores=nt and 2 more",
    )


def test_flags_of_its_own_let_a_compilers_best_case_stand_for_it() -> None:
    rates = {**FACTORIAL, ("nvc", "fast", "nt"): 45e9, ("nvc", "fast", "plain"): 30e9}
    found = tuning_gain(sweep(rates), "triad")
    assert found is not None
    nvc = next(v for v in found.settings if v.other == "nvc")
    assert nvc.rest == (("flags", "fast"), ("stores", "nt"))
    assert math.isclose(nvc.ratio, 45 / (40.2 * 1.4), rel_tol=0.01)
    assert (nvc.base, nvc.answer) == ("clang", "slower")


def test_a_setting_measured_elsewhere_only_says_where() -> None:
    rates = {
        ("gcc", "O3", "nt"): 60e9,
        ("gcc", "O3", "plain"): 40e9,
        ("clang", "O3", "plain"): 44e9,
    }
    found = tuning_gain(sweep(rates), "triad")
    assert found is not None
    clang = next(v for v in found.settings if v.other == "clang")
    assert (clang.base, clang.rest) == ("gcc", (("flags", "O3"), ("stores", "plain")))
    assert clang.answer == "faster"


@pytest.mark.parametrize(
    ("low", "high", "answer", "contender"),
    [
        (1 / 1.25, 1.25, "inconclusive", True),
        (1 / 1.25 - 1e-9, 1.25, "inconclusive", False),
        (1 / 1.25, 1.25 + 1e-9, "inconclusive", False),
        (1.1, 1.6, "faster", True),
        (0.9, 0.99, "slower", True),
        (0.7, 0.79, "slower", False),
    ],
)
def test_a_rival_is_faster_or_within_the_margin(
    low: float, high: float, answer: Answer, contender: bool
) -> None:
    verdict = gain_of_two().settings[0]
    found = replace(verdict, low=low, high=high, margin=0.25, answer=answer)
    assert _alike(found) is contender


def gain_of_two() -> TuningGain:
    found = tuning_gain(sweep({("gcc", "O3", "nt"): 60e9, ("clang", "O3", "nt"): 50e9}), "triad")
    assert found is not None
    return found


def test_a_sweep_is_looked_at_once() -> None:
    """So that its intervals have the whole error, not a part for each look."""
    rates = {("gcc", "O3", "nt"): 60e9, ("clang", "O3", "nt"): 50e9, ("icx", "O2", "nt"): 55e9}
    samples = [replace(s, values=(s.values[0] * (1 + 0.01 * (s.round % 3)),)) for s in sweep(rates)]
    found = tuning_gain(samples, "triad")
    assert found is not None
    expected = {
        v.other: (v.low, v.high)
        for v in compare(by_compiler(samples), axis="compiler", base="gcc", margin=0.03, looks=1)
    }
    assert {v.other: (v.low, v.high) for v in found.settings if v.axis == "compiler"} == expected


def by_compiler(samples: list[Sample]) -> list[Sample]:
    """With the compiler as the only level."""
    return [
        replace(s, case=Case("stream", levels=(("compiler", s.case.level("compiler")),)))
        for s in samples
    ]


def test_what_is_not_above_0_is_no_rate_and_small_rates_are() -> None:
    good = [one(name, n, rate) for n in (0, 1) for name, rate in (("gcc", 0.5), ("clang", 0.4))]
    found = tuning_gain([*good, one("clang", 2, 0.0), one("icx", 2, -1.0)], "triad")
    assert found is not None
    assert found.best == case("gcc", "O3", "nt")
    assert [v.other for v in found.settings] == ["clang"]
    assert tuning_gain([one("gcc", 0, 0.0)], "triad") is None


def test_too_few_rounds_give_a_ratio_but_no_claim() -> None:
    found = tuning_gain(sweep(FACTORIAL, rounds=1), "triad")
    assert found is not None
    assert {v.answer for v in found.settings} == {"inconclusive"}
    assert {(v.low, v.high) for v in found.settings} == {(0.0, math.inf)}
    assert found.settings[0].ratio > 0


def test_one_case_alone_is_the_best_and_no_setting_has_a_worth() -> None:
    found = tuning_gain(sweep({("gcc", "O3", "nt"): 60e9}), "triad")
    assert found is not None
    assert (found.settings, found.contenders) == ((), ())
    assert in_words(found, "90.1 GB/s") == (
        "best triad: 90.1 GB/s with compiler gcc, flags O3, stores nt",
    )


def one(name: str, number: int, rate: float, state: MachineState = MachineState()) -> Sample:  # noqa: B008 - frozen
    return Sample(
        run="r",
        case=case(name, "O3", "nt"),
        round=number,
        metric="triad",
        unit="byte/s",
        values=(rate,),
        state=state,
    )


def test_a_fast_minute_does_not_make_the_cases_of_that_minute_the_best() -> None:
    both = [one(name, n, rate) for n in (0, 1) for name, rate in (("gcc", 100), ("clang", 95))]
    repeated_when_fast = [one("clang", n, 142) for n in (2, 3, 4)]
    found = tuning_gain(both + repeated_when_fast, "triad")
    assert found is not None
    assert found.best == case("gcc", "O3", "nt")


def test_disturbed_samples_do_not_choose_the_best_while_calm_ones_hold_every_case() -> None:
    stolen = MachineState(steal_share=0.5)
    calm = [one("gcc", 0, 100), one("clang", 0, 95)]
    disturbed = [one("gcc", n, 50, stolen) for n in (1, 2)]
    disturbed += [one("clang", n, 90, stolen) for n in (1, 2)]
    found = tuning_gain(calm + disturbed, "triad")
    assert found is not None
    assert found.best == case("gcc", "O3", "nt")
    all_disturbed = tuning_gain(disturbed, "triad")
    assert all_disturbed is not None
    assert all_disturbed.best == case("clang", "O3", "nt")


def test_other_metrics_do_not_count() -> None:
    assert tuning_gain(sweep(FACTORIAL), "copy") is None


def _rest(best: Case, axis: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in best.levels if pair[0] != axis)
