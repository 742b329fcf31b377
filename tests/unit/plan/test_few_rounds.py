"""One to three rounds: only differences that no noise explains are decided."""

import math
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from flowos.model import Case, Design, Sample, Verdict
from flowos.plan import NoiseModel, SimulatedMachine, compare, simulate

A, B = (Case("p", (("isa", level),)) for level in "ab")


def round_of(a: Case, b: Case, four: tuple[float, ...], number: int = 0) -> list[Sample]:
    return [
        Sample(run="r", case=case, round=number, metric="m", unit="flop/s", values=(value,))
        for case, value in zip((a, b, b, a), four, strict=True)
    ]


def verdicts(seen: list[Sample], margin: float = 0.03) -> list[Verdict]:
    return list(compare(seen, axis="isa", base="a", margin=margin, looks=1))


def swept(ratio: float, count: int, spread: float = 0.01, outlier: int = 0) -> list[Sample]:
    """One round of so many sizes, each with both levels; `outlier` of them change inside a case."""
    random = Random(1)
    seen: list[Sample] = []
    for n in range(count):
        first = 2.5 if n < outlier else 1.0
        four = [v * random.uniform(1, 1 + spread) for v in (first, ratio, ratio, 1.0)]
        seen += round_of(A.at(n=str(n)), B.at(n=str(n)), tuple(four))
    return seen


def test_what_one_metric_is_disturbed_by_hides_no_factor_of_another() -> None:
    outlier = [replace(s, metric="small products") for s in swept(2.0, 12, outlier=12)]
    answers = {v.metric: v.answer for v in verdicts([*outlier, *swept(2.0, 12)])}
    assert answers == {"m": "faster", "small products": "inconclusive"}


def test_what_disturbs_all_cores_hides_no_factor_of_a_single_one() -> None:
    seen = [
        replace(s, case=s.case.at(cores=cores))
        for cores, outlier in (("1", 0), ("2", 12))
        for s in swept(2.0, 12, outlier=outlier)
    ]
    answers = {dict(v.rest)["cores"]: v.answer for v in verdicts(seen)}
    assert answers == {"1": "faster", "2": "inconclusive"}


@pytest.mark.parametrize("wild", [0, 6])
def test_few_rounds_on_each_number_of_cores_are_taken_together(wild: int) -> None:
    """Six rounds of cases on one core and six on two, as one round of flops gives: eight count."""
    seen = [
        replace(s, case=s.case.at(cores=cores))
        for cores, count in (("1", 0), ("2", wild))
        for s in swept(2.0, 6, outlier=count)
    ]
    assert {v.answer for v in verdicts(seen)} == {"inconclusive" if wild else "faster"}


@pytest.mark.parametrize("ratio", [4.05, 2.0, 1 / 2.0])
def test_one_round_tells_a_factor_where_all_cases_of_the_run_agree_with_themselves(
    ratio: float,
) -> None:
    for v in verdicts(swept(ratio, 8)):
        assert v.answer == ("faster" if ratio > 1 else "slower")
        assert v.low < ratio < v.high
        assert "decided from few rounds" in v.why


@pytest.mark.parametrize(("ratio", "told"), [(1.22, False), (1.3, True)])
def test_a_factor_within_any_noise_is_not_told_from_one_round(ratio: float, told: bool) -> None:
    assert {v.answer for v in verdicts(swept(ratio, 8))} == {"faster" if told else "inconclusive"}


@pytest.mark.parametrize(("ratio", "told"), [(2.5, False), (2.95, False), (3.2, True)])
def test_two_cases_by_themselves_need_a_factor_beyond_the_regimes_of_a_machine(
    ratio: float, told: bool
) -> None:
    (v,) = verdicts(round_of(A, B, (1, ratio, ratio, 1)))
    assert v.answer == ("faster" if told else "inconclusive")
    assert told or "both ran in 1 of the 4 whole rounds needed" in v.why


def test_where_cases_differ_from_themselves_a_factor_is_not_told() -> None:
    assert {v.answer for v in verdicts(swept(2.0, 10, outlier=3))} == {"inconclusive"}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    ("apart", "ratio", "told"),
    [
        (0.08, 1.55, False),
        (0.08, 1.7, True),
        (0.4, 4.4, False),
        (0.4, 4.6, True),
        (0.6, 5.9, False),
        (0.6, 6.2, True),
    ],
)
def test_a_factor_has_to_be_five_times_what_turns_of_a_case_differ_by_or_twice_and_beyond_three(
    apart: float, ratio: float, told: bool, own: bool
) -> None:
    """Turns of the base lie apart, in the first case or in all others."""
    seen: list[Sample] = []
    for n in range(20):
        last = math.exp(apart) if (n == 0) == own else 1.0
        size = str(n)
        least = ratio if own else ratio / math.exp(apart)
        seen += round_of(A.at(n=size), B.at(n=size), (1.0, least, least, last))
    assert verdicts(seen)[0].answer == ("faster" if told else "inconclusive")


def test_one_disturbed_case_of_many_takes_only_its_own_answer() -> None:
    answers = [v.answer for v in verdicts(swept(2.0, 20, outlier=1))]
    assert answers == ["inconclusive"] + ["faster"] * 19


def test_turns_that_do_not_agree_on_a_side_tell_nothing() -> None:
    (v,) = verdicts([*round_of(A, B, (1, 9, 9, 1)), *round_of(A, B, (9, 1, 1, 9), 1)])
    assert v.answer == "inconclusive"


def test_no_margin_makes_few_rounds_equal() -> None:
    assert {v.answer for v in verdicts(swept(1.3, 8), margin=0.9)} <= {"inconclusive", "faster"}


SPREAD = NoiseModel(spread=0.15, freedom=0, spikes=0, wander=0, regime=1)
SCATTERED = {
    "normal": SPREAD,
    "heavy tails": replace(SPREAD, freedom=4),
    "spikes": replace(SPREAD, spread=0.02, spikes=0.3, spike=0.5),
    "walk": replace(SPREAD, spread=0.02, memory=1.0, memory_step=0.15),
    "regimes": replace(SPREAD, spread=0.02, regime=2.5, regime_seconds=4.0),
    "rhythm": replace(SPREAD, spread=0.02, sine=0.1, sine_turns=8 / 3),
}


def of_twelve_sizes(noise: NoiseModel, ratio: float, rounds: int) -> Counter[str]:
    """The answers for twelve sizes, whose turns follow each other as in a run, 40 times."""
    answers: Counter[str] = Counter()
    sizes = [(A.at(n=str(n)), B.at(n=str(n))) for n in range(12)]
    design = Design(cases=tuple(c for pair in sizes for c in pair), min_rounds=rounds)
    took = {case: factor for pair in sizes for case, factor in zip(pair, (ratio, 1.0), strict=True)}
    for seed in range(40):
        seen = simulate(design, took, SimulatedMachine(seed, noise), rounds)
        answers.update(v.answer for v in verdicts(list(seen)))
    return answers


@pytest.mark.no_cover
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("noise", SCATTERED.values(), ids=list(SCATTERED))
def test_equal_cases_that_scatter_are_not_told_from_few_rounds(
    noise: NoiseModel, rounds: int
) -> None:
    answers = of_twelve_sizes(noise, 1.0, rounds)
    assert answers["faster"] + answers["slower"] <= 0.01 * answers.total()


@pytest.mark.no_cover
@pytest.mark.parametrize(("kind", "least"), [("normal", 0.75), ("heavy tails", 0.5)])
def test_a_factor_of_four_is_told_though_turns_lie_half_apart(kind: str, least: float) -> None:
    """Nine in ten rounds stay within 0.4 in logarithms, so that they lie up to 1.5 apart."""
    answers = of_twelve_sizes(SCATTERED[kind], 4.0, 1)
    assert answers["faster"] >= least * answers.total()
    assert not answers["slower"]


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("seconds", [2.0, 6.0, 30.0])
def test_equal_cases_on_a_machine_with_two_regimes_are_not_told_from_few_rounds(
    rounds: int, seconds: float
) -> None:
    noise = NoiseModel(spread=0.03, regime=2.5, regime_seconds=seconds)
    design = Design(cases=(A, B), axis="isa", base="a", looks=(rounds,))
    answers: Counter[str] = Counter()
    for seed in range(200):
        d = replace(design, axis="", min_rounds=rounds)
        seen = list(simulate(d, {A: 1.0, B: 1.0}, SimulatedMachine(seed, noise), rounds))
        answers.update(v.answer for v in verdicts(seen))
    assert answers["slower"] + answers["faster"] <= 10


@pytest.mark.parametrize("seconds", [0.3, 2.0, 30.0])
def test_equal_levels_that_one_program_sweeps_are_not_told_from_one_round(seconds: float) -> None:
    """Sixteen pairs of levels a process, two processes: as the flops probe does in a normal run."""
    noise = NoiseModel(spread=0.02, regime=2.5, regime_seconds=seconds)
    wrong = 0
    for seed in range(100):
        machine = SimulatedMachine(seed, noise, turn_seconds=0.1)
        seen: list[Sample] = []
        for _process in range(2):
            for n in range(16):
                for case in (A, B):
                    took = machine.measure(1.0)
                    seen += [replace(_sample(case.at(n=str(n))), values=(1 / took,))]
        wrong += sum(v.answer != "inconclusive" for v in verdicts(seen))
    assert wrong <= 0.05 * 16 * 100


def _sample(case: Case) -> Sample:
    return Sample(run="r", case=case, round=0, metric="m", unit="flop/s", values=())
