"""Advice of all probes: the greatest gain first; and why no setting could be judged."""

from dataclasses import replace

import pytest

from flowos.model import Advice, Case, Measurement, Trust, Verdict
from flowos.probes import merged_advice, undecided

BEST = Case("stream", (("stores", "nt"), ("threads", "2")))


def test_the_greatest_gain_is_first_and_one_deed_is_told_once() -> None:
    one = Advice(do="`export A=1`", gain=2.0, why="blis")
    more = (replace(one, gain=5.7, why="blis-pthread"), Advice(do="b", gain=3.0, why="b"))
    assert [(a.do, a.gain, a.why) for a in merged_advice((one, *more))] == [
        ("`export A=1`", 5.7, "blis-pthread; and 1 more alike"),
        ("b", 3.0, "b"),
    ]


def number(case: Case = BEST, *marks: str) -> Measurement:
    return Measurement(
        case=case,
        metric="triad",
        unit="byte/s",
        count=1,
        median=1.0,
        low=1.0,
        high=1.0,
        best=1.0,
        trust=Trust(marks=marks),
    )


OTHER = BEST.at(stores="plain")
OPEN = Verdict(
    probe="stream",
    axis="stores",
    base="nt",
    other="plain",
    rest=(),
    metric="triad",
    ratio=0.9,
    low=0.8,
    high=1.1,
    margin=0.03,
    rounds=8,
    answer="inconclusive",
)


@pytest.mark.parametrize(
    ("measured", "settings", "why"),
    [
        ((), (), ""),
        ((number(),), (), "only one setting was measured, so there is nothing to compare it with"),
        ((number(BEST, "busy"), number(OTHER, "busy")), (), "none of the numbers can be trusted"),
        ((number(), number(OTHER)), (OPEN, OPEN), "none of the 2 comparisons of settings was"),
        ((number(), number(OTHER)), (OPEN, replace(OPEN, answer="equal")), ""),
        ((number(), number(OTHER, "busy")), (), ""),
    ],
)
def test_why_no_setting_could_be_judged(
    measured: tuple[Measurement, ...], settings: tuple[Verdict, ...], why: str
) -> None:
    said = undecided(measured, settings)
    assert said.startswith(why)
    assert bool(said) == bool(why)
