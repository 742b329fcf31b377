"""Programs that ran side by side: what weighs on all turns alike does not weigh on the ratio."""

import math
from dataclasses import replace
from random import Random

import pytest

from flowos.model import Case, Sample, Verdict
from flowos.plan import compare, geomean_verdict

A = Case("p", (("with", "a"),))
B = Case("p", (("with", "b"),))


def taken(case: Case, number: int, values: list[float]) -> Sample:
    return Sample(
        run="r",
        case=case,
        round=number,
        metric="m",
        unit="byte/s",
        values=tuple(values),
        interleaved=True,
    )


def rounds(count: int, ratio: float, seed: int, spikes: float = 0.0) -> list[Sample]:
    """Sixteen turns each, of a machine whose speed wanders by a factor, with 1 % of own noise."""
    random = Random(seed)
    seen: list[Sample] = []
    for number in range(count):
        shared = [random.gauss(0, 0.3) for _ in range(16)]
        for case, true in ((A, 1.0), (B, ratio)):
            own = [random.gauss(0, 0.01) - (random.random() < spikes) for _ in shared]
            logs = [s + o for s, o in zip(shared, own, strict=True)]
            seen.append(taken(case, number, [true * math.exp(x) for x in logs]))
    return seen


def verdict(seen: list[Sample]) -> Verdict:
    (only,) = compare(seen, axis="with", base="a", margin=0.03)
    return only


@pytest.mark.parametrize(
    ("count", "ratio", "answer"),
    [(29, 1.0, "equal"), (4, 0.93, "slower"), (8, 0.93, "slower"), (4, 1.075, "faster")],
)
def test_what_all_turns_share_does_not_hide_a_difference(
    count: int, ratio: float, answer: str
) -> None:
    found = [verdict(rounds(count, ratio, seed)) for seed in range(20)]
    assert sum(v.answer == answer for v in found) >= 19
    assert all(abs(math.log(v.ratio / ratio)) < 0.02 for v in found)


def test_the_same_values_as_runs_of_their_own_tell_nothing() -> None:
    alone = [
        replace(s, values=(value,), interleaved=False)
        for s in rounds(8, 1.0, seed=1)
        for value in s.values[:2]
    ]
    shuffled = [replace(s, round=s.round + (s.case == B)) for s in alone]
    assert verdict(shuffled).answer == "inconclusive"


def test_a_few_turns_that_were_disturbed_do_not_move_the_ratio() -> None:
    assert verdict(rounds(32, 1.0, seed=2, spikes=0.005)).answer == "equal"


def test_on_the_whole_the_rounds_of_all_cases_count() -> None:
    seen = [replace(s, metric=metric) for metric in "mn" for s in rounds(32, 1.0, seed=ord(metric))]
    (found,) = geomean_verdict(seen, axis="with", base="a", margin=0.03)
    assert (found.answer, found.rounds) == ("equal", 32)


@pytest.mark.parametrize("broken", [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0], [math.nan] * 4])
def test_values_that_have_no_partner_are_no_round(broken: list[float]) -> None:
    whole = [taken(case, n, [1.0, 1.01, 0.99, 1.0]) for n in range(29) for case in (A, B)]
    found = verdict([*whole, taken(A, 29, [1.0] * 4), taken(B, 29, broken)])
    assert (found.answer, found.rounds) == ("equal", 29)
