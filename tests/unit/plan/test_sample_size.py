"""How many more rounds would tell: an estimate that comes true."""

import math
from dataclasses import replace
from random import Random

import pytest

from flowos.model import Case, Sample, Verdict
from flowos.plan import compare, rounds_to_decide

A, B = (Case("p", (("with", level),)) for level in "ab")


def compared(ratio: float, spread: float, rounds: int, seed: int) -> Verdict:
    random = Random(seed)
    seen = []
    for number in range(rounds):
        shift = random.gauss(0, spread)
        for case, true in ((A, 1.0), (B, ratio * math.exp(shift))) * 2:
            seen.append(
                Sample(run="r", case=case, round=number, metric="m", unit="1/s", values=(true,))
            )
    (only,) = compare(seen, axis="with", base="a", margin=0.03, looks=1)
    return only


@pytest.mark.parametrize(("ratio", "spread"), [(0.9, 0.12), (1.08, 0.08), (1.0, 0.05)])
def test_the_rounds_foretold_tell_in_most_trials(ratio: float, spread: float) -> None:
    open_ones = [
        v for s in range(60) if (v := compared(ratio, spread, 6, s)).answer == "inconclusive"
    ]
    needed = sorted(rounds_to_decide(v) or math.inf for v in open_ones)
    middle = needed[len(needed) // 2]
    assert 6 < middle < 400
    told = [compared(ratio, spread, round(1.5 * middle), 100 + s).answer for s in range(60)]
    assert sum(answer != "inconclusive" for answer in told) >= 30


def test_what_is_told_or_was_never_interleaved_or_is_out_of_reach_needs_no_rounds() -> None:
    open_one = replace(
        compared(0.5, 0.0, 4, 0), ratio=0.99, low=0.8, high=1.2, answer="inconclusive"
    )
    assert rounds_to_decide(compared(0.5, 0.0, 4, 0)) is None
    assert rounds_to_decide(replace(open_one, rounds=0)) is None
    assert rounds_to_decide(replace(open_one, ratio=0.985, low=0.3, high=3.2)) is None
    assert rounds_to_decide(open_one) is not None


def test_too_few_rounds_need_the_least_number() -> None:
    assert rounds_to_decide(compared(0.9, 0.1, 2, 1)) == 4


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (0.5, math.inf), (0.0, math.inf)])
def test_an_interval_without_an_end_needs_the_least_number(low: float, high: float) -> None:
    assert rounds_to_decide(replace(compared(0.9, 0.1, 2, 1), low=low, high=high)) == 4


def test_what_a_narrow_interval_leaves_open_needs_a_round_more() -> None:
    narrow = replace(compared(1.0, 0.0, 8, 1), low=0.999, high=1.001, answer="inconclusive")
    assert rounds_to_decide(replace(narrow, needed=0)) == 9
