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


def test_all_pairs_of_cores_are_taken_by_what_they_share(large: Facts) -> None:
    found = pairs_by_distance(large, "normal")
    assert found["core"] == [(0, 1), (4, 5), (8, 9), (12, 13)]
    assert found["cache"] == [(0, 2), (4, 6), (8, 10), (12, 14)]
    assert found["socket"] == [(0, 4), (0, 6), (2, 4), (2, 6), (8, 12), (8, 14), (10, 12), (10, 14)]
    assert len(found["machine"]) == 16


def test_of_many_cores_neighbours_are_taken_over_the_whole_machine(node: MakeNode) -> None:
    """Caches of two cores each, whose numbers do not follow each other."""
    facts = node(sockets=2, cores=16)
    caches = tuple(
        Cache(level=3, kind="unified", size_bytes=1, line_bytes=64, cpus=(n, n + 8))
        for socket in (0, 16)
        for n in range(socket, socket + 8)
    )
    found = pairs_by_distance(replace(facts, caches=caches), "quick")
    assert found["cache"] == [(0, 8), (4, 12), (16, 24), (20, 28)]
    assert sum(map(len, found.values())) == 8 * 7 // 2
    assert len(pairs_by_distance(replace(facts, caches=caches), "full")["cache"]) == 16


def test_only_threads_that_we_may_use_are_taken(large: Facts) -> None:
    assert pairs_by_distance(replace(large, allowed=(1, 9)), "quick") == {"machine": [(1, 9)]}


def test_where_no_cache_is_known_a_socket_counts_for_one(node: MakeNode) -> None:
    facts = replace(node(sockets=2, cores=2), caches=())
    found = pairs_by_distance(facts, "quick")
    assert found["cache"] == [(0, 1), (2, 3)]
    assert set(found) == {"cache", "machine"}


def test_a_case_is_a_distance_and_its_program_has_all_its_pairs(large: Facts) -> None:
    cases = cases_of(large, "quick")
    assert [case.level("distance") for case in cases] == ["core", "cache", "socket", "machine"]
    program = PROBE.program(cases[1])
    assert program.argv == ("--pairs", "0-2,4-6,8-10,12-14", "--repetitions", "5")
    assert program.build is not None
    assert (program.build.source, program.cores) == ("core_latency.c", 2)
    assert 0 < PROBE.seconds(cases[1]) < 1


def test_cores_are_levels_of_a_matrix_and_siblings_a_pair(large: Facts) -> None:
    levels = {"from": "0", "to": "2"}
    reading = {"metric": "latency", "unit": "second", "levels": levels, "values": [5e-8]}
    outcome = Outcome(end=Exited(0), stdout=json.dumps({"readings": [reading]}).encode())
    siblings, cores, *_ = (PROBE.read(case, outcome) for case in cases_of(large))
    assert not isinstance(cores, Unmeasured)
    assert not isinstance(siblings, Unmeasured)
    assert (cores[0].levels, cores[0].values) == ((("from", "0"), ("to", "2")), (5e-8,))
    assert siblings[0].levels == (("pair", "0-2"),)
    assert isinstance(PROBE.read(cases_of(large)[0], Outcome(end=Exited(1))), Unmeasured)


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
