from collections.abc import Callable

import pytest

from flowos.model import Case, Effort, Exited, Facts, MeasurementRequest, Outcome, Unmeasured
from flowos.probes._cores import core_sets
from flowos.probes.clock import Clock

PROBE = Clock()
MakeNode = Callable[..., Facts]


@pytest.fixture
def only_case(node: MakeNode) -> Callable[..., Case]:
    def of(effort: Effort = "normal", **facts: int) -> Case:
        cases = PROBE.cases(node(**facts), MeasurementRequest(effort=effort))
        assert not isinstance(cases, Unmeasured)
        (case,) = cases
        return case

    return of


def answered(stdout: str) -> Outcome:
    return Outcome(end=Exited(0), stdout=stdout.encode())


def test_the_first_and_last_core_of_each_socket_are_asked(only_case: Callable[..., Case]) -> None:
    assert only_case(cores=20, sockets=2).detail("cpus") == "0,19,20,39"
    assert only_case(cores=1).detail("cpus") == "0"


def test_many_sockets_are_asked_of_at_most_eight_cpus(only_case: Callable[..., Case]) -> None:
    assert only_case(cores=8, sockets=8).detail("cpus") == "0,7,8,15,16,23,24,31"


def test_both_kinds_of_cores_are_asked(node: MakeNode) -> None:
    cases = PROBE.cases(node(cores=6, efficiency=(4, 5)), MeasurementRequest())
    assert not isinstance(cases, Unmeasured)
    assert cases[0].detail("cpus") == "0,3,4,5"


def test_the_program_is_compiled_by_the_compiler_found_and_asked_for_the_cpus(
    only_case: Callable[..., Case],
) -> None:
    case = only_case(effort="quick")
    program = PROBE.program(case)
    assert program.argv == ("--cpus", "0,1", "--repetitions", "7")
    assert program.build is not None
    assert (program.build.source, program.build.compiler) == ("clock.c", "/usr/bin/gcc")
    assert program.build.compiler_version == "12.2.0"
    assert 0 < PROBE.seconds(case) < 1


def test_without_a_compiler_the_reason_names_the_remedy(node: MakeNode) -> None:
    answer = PROBE.cases(node(compilers=()), MeasurementRequest())
    assert isinstance(answer, Unmeasured)
    assert "apt install gcc" in answer.remedy


def test_readings_carry_the_cpu(only_case: Callable[..., Case]) -> None:
    text = (
        '{"readings": [{"metric": "clock", "unit": "Hz", "levels": {"cpu": "1"}, "values": [4e9]}]}'
    )
    readings = PROBE.read(only_case(), answered(text))
    assert not isinstance(readings, Unmeasured)
    assert (readings[0].metric, readings[0].levels) == ("clock", (("cpu", "1"),))


def test_a_wrong_sum_of_the_program_is_no_reading(only_case: Callable[..., Case]) -> None:
    outcome = Outcome(end=Exited(1), stderr=b"dependent adds gave a wrong sum")
    answer = PROBE.read(only_case(), outcome)
    assert isinstance(answer, Unmeasured)
    assert "wrong sum" in answer.reason


def test_nothing_bounds_a_clock(only_case: Callable[..., Case]) -> None:
    assert PROBE.ceiling(only_case()) is None


def test_core_sets_are_one_core_one_socket_and_all_each_once(node: MakeNode) -> None:
    assert core_sets(node(sockets=2, cores=2)) == ((0,), (0, 1), (0, 1, 2, 3))
    assert core_sets(node(cores=2)) == ((0,), (0, 1))
    assert core_sets(node(cores=1)) == ((0,),)


def test_a_quota_bounds_the_busy_threads(node: MakeNode) -> None:
    assert core_sets(node(cores=4, quota_cpus=1.5)) == ((0,),)
    assert core_sets(node(cores=4, quota_cpus=3.0)) == ((0,), (0, 1, 2))
    assert core_sets(node(cores=4, quota_cpus=0.5)) == ((0,),)


def test_one_core_means_a_performance_core(node: MakeNode) -> None:
    assert core_sets(node(cores=4, efficiency=(0, 1)))[0] == (2,)
