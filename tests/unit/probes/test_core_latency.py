import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import (
    Cache,
    Case,
    Effort,
    Exited,
    Facts,
    MeasurementRequest,
    Outcome,
    Unmeasured,
)
from flowos.probes.core_latency import CoreLatency, pairs_by_distance

PROBE = CoreLatency()
MakeNode = Callable[..., Facts]


def cases_of(facts: Facts, effort: Effort = "normal") -> tuple[Case, ...]:
    cases = PROBE.cases(facts, MeasurementRequest(effort=effort))
    assert not isinstance(cases, Unmeasured)
    return cases


@pytest.fixture
def large(node: MakeNode) -> Facts:
    """Two sockets, each of two L3 with two cores of two threads: 0 to 7, and 8 to 15."""
    facts = node(sockets=2, cores=8)
    cpus = tuple(replace(cpu, core=cpu.number // 2, socket=cpu.number // 8) for cpu in facts.cpus)
    caches = tuple(
        Cache(level=3, kind="unified", size_bytes=1, line_bytes=64, cpus=tuple(range(n, n + 4)))
        for n in range(0, 16, 4)
    )
    small = Cache(level=2, kind="unified", size_bytes=1, line_bytes=64, cpus=(0, 1))
    return replace(facts, cpus=cpus, caches=(small, *caches))


def test_pairs_of_each_distance_are_taken_over_the_whole_machine(large: Facts) -> None:
    assert pairs_by_distance(large, 2) == {
        "core": [(0, 1), (8, 9)],
        "cache": [(0, 2), (8, 10)],
        "socket": [(0, 4), (8, 12)],
        "machine": [(0, 8), (4, 8)],
    }
    assert len(pairs_by_distance(large, 32)["core"]) == 8


def test_only_threads_that_we_may_use_are_taken(large: Facts) -> None:
    assert pairs_by_distance(replace(large, allowed=(1, 9)), 4) == {"machine": [(1, 9)]}


def test_where_no_cache_is_known_a_socket_counts_for_one(node: MakeNode) -> None:
    facts = replace(node(sockets=2, cores=2), caches=())
    assert pairs_by_distance(facts, 1) == {"cache": [(0, 1)], "machine": [(0, 2)]}


def test_a_case_is_a_distance_and_its_program_has_all_its_pairs(large: Facts) -> None:
    cases = cases_of(large, "quick")
    assert [case.level("distance") for case in cases] == ["core", "cache", "socket", "machine"]
    program = PROBE.program(cases[1])
    assert program.argv == ("--pairs", "0-2,8-10", "--repetitions", "5")
    assert program.build is not None
    assert (program.build.source, program.cores) == ("core_latency.c", 2)
    assert 0 < PROBE.seconds(cases[1]) < 1


def test_readings_carry_the_pair(large: Facts) -> None:
    reading = {"metric": "latency", "unit": "second", "levels": {"pair": "0-2"}, "values": [5e-8]}
    outcome = Outcome(end=Exited(0), stdout=json.dumps({"readings": [reading]}).encode())
    readings = PROBE.read(cases_of(large)[1], outcome)
    assert not isinstance(readings, Unmeasured)
    assert (readings[0].levels, readings[0].values) == ((("pair", "0-2"),), (5e-8,))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"compilers": ()}, "no C compiler"),
        ({"cores": 1}, "two hardware threads are needed"),
        ({"cores": 4, "quota_cpus": 1.5}, "two threads that wait busily need two cores, here are"),
    ],
)
def test_what_is_needed_is_said(node: MakeNode, facts: dict[str, object], reason: str) -> None:
    answer = PROBE.cases(node(**facts), MeasurementRequest())
    assert isinstance(answer, Unmeasured)
    assert reason in answer.reason
