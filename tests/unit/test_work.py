"""How a run's time is used: rounds until it is out, where more of them tell more."""

import math

from flowos.model import Case, Design, Sample
from flowos.operations.measure._time import as_often_as_time_allows
from flowos.plan import next_round

CASES = tuple(Case("flops", (("cores", n),)) for n in "12")


def part(*cases: Case) -> Design:
    seconds = dict.fromkeys(cases, 1.0)
    return Design(cases=cases, seconds=seconds)


def rounds_in(design: Design, seconds: float) -> int:
    seen: list[Sample] = []
    number = 0
    while turns := next_round(design, seen, seconds):
        number += 1
        seconds -= len(turns)
        seen += [
            Sample(run="r", case=c, round=number, metric="m", unit="1/s", values=(1.0,))
            for c in turns
        ]
    return number


def test_a_time_that_was_asked_for_is_used_up_by_more_rounds() -> None:
    assert rounds_in(part(*CASES), 100) == 1
    assert rounds_in(as_often_as_time_allows(part(*CASES)), 100) == 25


def test_a_case_by_itself_is_not_repeated_for_nothing() -> None:
    assert rounds_in(as_often_as_time_allows(part(CASES[0])), math.inf) == 1
