"""Start-up: what is started, how often, and what a start that fails becomes."""

from collections.abc import Callable

from flowos.model import (
    Case,
    Exited,
    Facts,
    Killed,
    Measurement,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.probes.startup import Startup

PROBE = Startup()


def test_a_program_that_does_nothing_is_started_ten_times(node: Callable[..., Facts]) -> None:
    found = PROBE.cases(node(), MeasurementRequest())
    assert not isinstance(found, Unmeasured)
    (case,) = found
    program = PROBE.program(case)
    assert program.starts == 10
    assert program.build is not None
    assert program.build.source == "nothing.c"
    assert PROBE.seconds(case) > 0
    assert PROBE.ceiling(case) is None


def test_without_a_compiler_it_says_what_to_install(node: Callable[..., Facts]) -> None:
    found = PROBE.cases(node(compilers=()), MeasurementRequest())
    assert isinstance(found, Unmeasured)
    assert "gcc" in found.remedy


def test_a_start_that_fails_is_no_time(node: Callable[..., Facts]) -> None:
    found = PROBE.cases(node(), MeasurementRequest())
    assert not isinstance(found, Unmeasured)
    assert PROBE.read(found[0], Outcome(end=Exited(0))) == ()
    for end in (Exited(3), Killed(9)):
        assert isinstance(PROBE.read(found[0], Outcome(end=end)), Unmeasured)


def test_an_environment_that_starts_as_fast_is_not_said_to_take_less_than_nothing() -> None:
    bare, image = (
        Measurement(
            case=Case("startup", (("env", env),)),
            metric="startup",
            unit="second",
            count=1,
            median=median,
            low=median,
            high=median,
            best=median,
        )
        for env, median in (("bare", 0.003), ("image", 0.00299))
    )
    (said,) = PROBE.differences("bare", (bare, image))
    assert said.endswith("image +0.0 ms")
