"""What to set, and what it is worth: the usual level against the best, the greatest gain first."""

import math
from dataclasses import replace

import pytest

from flowos.model import Advice, Answer, Case, Measurement, Trust, Verdict
from flowos.probes import TuningGain, merged_advice, undecided
from flowos.probes._advice import advice

BEST = Case(
    "stream",
    (
        ("compiler", "gcc-12"),
        ("flags", "O3-native"),
        ("stores", "nt"),
        ("places", "cores"),
        ("bind", "spread"),
        ("pages", "huge"),
        ("threads", "2"),
    ),
    details=(("flags", "-O3 -march=native"),),
)


def changed(axis: str, level: str, ratio: float, answer: Answer = "slower") -> Verdict:
    return Verdict(
        probe="stream",
        axis=axis,
        base=BEST.level(axis),
        other=level,
        rest=(),
        metric="triad",
        ratio=ratio,
        low=ratio,
        high=ratio,
        margin=0.03,
        rounds=8,
        answer=answer,
    )


def found(*settings: Verdict) -> tuple[Advice, ...]:
    return advice(TuningGain(metric="triad", best=BEST, contenders=(), settings=settings))


@pytest.mark.parametrize(
    ("axis", "level", "says"),
    [
        ("stores", "plain", "`-qopt-streaming-stores=always`"),
        ("flags", "O2", "compile with `-O3 -march=native`"),
        ("pages", "system", "`export GLIBC_TUNABLES=glibc.malloc.hugetlb=1`"),
        ("places", "sockets", "`export OMP_PLACES=cores OMP_PROC_BIND=spread`"),
        ("bind", "close", "`export OMP_PLACES=cores OMP_PROC_BIND=spread`"),
        ("threads", "4", "`export OMP_NUM_THREADS=2`"),
        ("compiler", "clang-16", "take compiler gcc-12"),
    ],
)
def test_a_setting_that_is_worth_something_is_told_with_its_command(
    axis: str, level: str, says: str
) -> None:
    (one,) = found(changed(axis, level, 0.5))
    assert says in one.do
    assert one.gain == 2.0
    assert f"compared with {axis} {level}" in one.why
    assert one.trusted


def test_what_is_not_slower_or_not_usual_is_no_advice() -> None:
    assert found(changed("stores", "plain", 0.99, "equal")) == ()
    assert found(changed("flags", "O3-native-512", 0.5)) == ()
    assert found(changed("threads", "1", 0.5)) == ()
    assert found(changed("stores", "plain", math.nan)) == ()
    assert found(changed("stores", "plain", 0.0)) == ()


def test_the_worst_placement_stands_for_both_of_its_axes() -> None:
    (one,) = found(changed("places", "sockets", 0.8), changed("bind", "close", 0.5))
    assert one.gain == 2.0
    (doubted,) = found(replace(changed("stores", "plain", 0.5), disturbed=3))
    assert not doubted.trusted


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
OPEN = changed("stores", "plain", 0.9, "inconclusive")


@pytest.mark.parametrize(
    ("measured", "settings", "why"),
    [
        ((), (), ""),
        ((number(),), (), "only one setting was measured, so there is nothing to compare it with"),
        ((number(BEST, "busy"), number(OTHER, "busy")), (), "none of the numbers can be trusted"),
        ((number(), number(OTHER)), (OPEN, OPEN), "none of the 2 comparisons of settings was"),
        ((number(), number(OTHER)), (OPEN, changed("threads", "1", 1.0, "equal")), ""),
        ((number(), number(OTHER, "busy")), (), ""),
    ],
)
def test_why_no_setting_could_be_judged(
    measured: tuple[Measurement, ...], settings: tuple[Verdict, ...], why: str
) -> None:
    said = undecided(measured, settings)
    assert said.startswith(why)
    assert bool(said) == bool(why)
