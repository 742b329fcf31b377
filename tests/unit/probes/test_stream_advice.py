"""What to set for STREAM, and what it is worth: the usual level against the best."""

import math
from dataclasses import replace

import pytest

from flowos.model import Advice, Answer, Case, Verdict
from flowos.probes import TuningGain
from flowos.probes._stream_advice import advice

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
