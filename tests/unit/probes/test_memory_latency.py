import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    NumaNode,
    Outcome,
    Unmeasured,
)
from flowos.probes.memory_latency import MEMORY, MemoryLatency

PROBE = MemoryLatency()
MakeNode = Callable[..., Facts]
MIB = 1 << 20


def cases_of(facts: Facts, effort: Effort = "normal") -> tuple[Case, ...]:
    cases = PROBE.cases(facts, MeasurementRequest(effort=effort))
    assert not isinstance(cases, Unmeasured)
    return cases


def with_memories(facts: Facts, *memories: NumaNode) -> Facts:
    return replace(facts, nodes=memories)


@pytest.fixture
def two_nodes(node: MakeNode) -> Facts:
    both = (
        NumaNode(number=n, cpus=tuple(range(4 * n, 4 * n + 4)), memory_bytes=1 << 35)
        for n in range(2)
    )
    return with_memories(node(sockets=2, cores=4), *both)


def answered(*latencies: tuple[int, float]) -> Outcome:
    readings = [
        {"metric": "latency", "unit": "second", "levels": {"bytes": str(size)}, "values": [value]}
        for size, value in latencies
    ]
    return Outcome(end=Exited(0), stdout=json.dumps({"readings": readings}).encode())


def test_a_machine_with_one_memory_has_one_curve_and_binds_nothing(node: MakeNode) -> None:
    (case,) = cases_of(node(), "quick")
    assert case.levels == (("cpu_node", "0"), ("memory_node", "0"))
    program = PROBE.program(case)
    assert program.argv == (
        *("--cpu", "0", "--node", "-1", "--least", "16384", "--most", str(128 * MIB)),
        *("--per-octave", "1", "--repetitions", "3"),
    )
    assert program.build is not None
    assert program.build.source == "memory_latency.c"
    assert program.limit_seconds > 10 * PROBE.seconds(case) > 1


def test_each_numa_node_is_asked_of_each_memory_and_the_first_one_for_a_curve(
    two_nodes: Facts,
) -> None:
    cases = cases_of(two_nodes)
    asked = [(c.detail("cpu"), c.detail("node"), c.detail("least") == "16384") for c in cases]
    assert asked == [("0", "0", True), ("0", "1", False), ("4", "0", False), ("4", "1", False)]
    assert PROBE.seconds(cases[0]) > PROBE.seconds(cases[1])


def test_memory_of_a_gpu_is_none_of_the_cpus_and_memory_without_cpus_is(two_nodes: Facts) -> None:
    gpu = NumaNode(number=2, cpus=(), memory_bytes=1 << 33, kind="GPU")
    fast = NumaNode(number=3, cpus=(), memory_bytes=1 << 33, kind="HBM")
    empty = NumaNode(number=4, cpus=(0,), memory_bytes=0)
    cases = cases_of(with_memories(two_nodes, *two_nodes.nodes, gpu, fast, empty))
    assert {case.level("memory_node") for case in cases} == {"0", "1", "3"}
    assert {case.level("cpu_node") for case in cases} == {"0", "1"}


@pytest.mark.parametrize(
    ("l3", "memory", "most"),
    [
        (8 * MIB, 1 << 36, 64 * MIB),
        (96 * MIB, 1 << 36, 384 * MIB),
        (1152 * MIB, 1 << 40, 2048 * MIB),
        (32 * MIB, 128 * MIB, 32 * MIB),
        (32 * MIB, 1 << 16, 32 << 10),
        (32 * MIB, 0, 128 * MIB),
    ],
)
def test_the_curve_ends_beyond_the_caches_and_within_a_fourth_of_memory(
    node: MakeNode, l3: int, memory: int, most: int
) -> None:
    (case,) = cases_of(node(l3_bytes=l3, memory_bytes=memory))
    assert int(case.detail("most")) == most


def test_memory_is_the_time_at_the_largest_size(two_nodes: Facts) -> None:
    near, far, *_ = cases_of(two_nodes)
    readings = PROBE.read(near, answered((1 << 14, 1e-9), (1 << 27, 9e-8), (1 << 20, 4e-9)))
    assert not isinstance(readings, Unmeasured)
    assert [r.metric for r in readings] == ["latency"] * 3 + [MEMORY]
    assert (readings[-1].values, readings[-1].notes) == ((9e-8,), (("from_bytes", "134217728"),))
    readings = PROBE.read(far, answered((1 << 27, 2e-7)))
    assert not isinstance(readings, Unmeasured)
    assert [(r.metric, r.values) for r in readings] == [(MEMORY, (2e-7,))]


def test_what_the_program_refuses_is_unmeasured(two_nodes: Facts) -> None:
    outcome = Outcome(end=Exited(77), stdout=b'{"cannot": "memory cannot be bound"}')
    answer = PROBE.read(cases_of(two_nodes)[0], outcome)
    assert answer == Unmeasured(reason="memory cannot be bound")


def test_without_a_compiler_the_reason_names_the_remedy(node: MakeNode) -> None:
    answer = PROBE.cases(node(compilers=()), MeasurementRequest())
    assert isinstance(answer, Unmeasured)
    assert "apt install gcc" in answer.remedy


def measured(case: Case, value: float) -> Measurement:
    return Measurement(
        case=case,
        metric=MEMORY,
        unit="second",
        count=1,
        median=value,
        low=value,
        high=value,
        best=value,
    )


def test_what_remote_memory_costs_is_said_in_a_sentence(two_nodes: Facts) -> None:
    cases = cases_of(two_nodes)
    found = [measured(c, v) for c, v in zip(cases, (1e-7, 1.8e-7, 2e-7, 1.1e-7), strict=True)]
    said = "memory of another NUMA node takes up to 2.00x: NUMA node 1 to 0"
    assert PROBE.findings(found) == (said,)
    assert PROBE.findings(found[:1]) == PROBE.findings(found[1:2]) == PROBE.findings([]) == ()
