import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import get_args

import pytest

from flowos.model import (
    Case,
    Compiler,
    Effort,
    Exited,
    Facts,
    LogicalCpu,
    MeasurementRequest,
    Mpi,
    Outcome,
    Sample,
    Trust,
    Unmeasured,
)
from flowos.plan import NOISE_THRESHOLDS, summarize
from flowos.probes.mpi import MpiPairs
from tests.unit.probes.conftest import H200

PROBE = MpiPairs()
NORMAL = MeasurementRequest()
MPIS = (
    Mpi(
        name="Open MPI 4.1.4",
        family="openmpi",
        version="4.1.4",
        compiler=PurePath("/usr/bin/mpicc.openmpi"),
        mpirun=PurePath("/usr/bin/mpirun.openmpi"),
    ),
    Mpi(
        name="MPICH 4.0.2",
        family="mpich",
        version="4.0.2",
        compiler=PurePath("/usr/bin/mpicc.mpich"),
        mpirun=PurePath("/usr/bin/mpiexec.mpich"),
    ),
)
NODE = Facts(
    host="n",
    system="Linux",
    kernel="6",
    architecture="x86_64",
    cpu_model="?",
    cpus=tuple(LogicalCpu(number=n, core=n, socket=0, node=0) for n in range(2)),
    allowed=(0, 1),
    mpis=MPIS,
)


TWELVE = replace(
    NODE,
    cpus=tuple(LogicalCpu(number=n, core=n, socket=0, node=0) for n in range(12)),
    allowed=tuple(range(12)),
)
MVAPICH = replace(MPIS[1], name="MVAPICH2 2.3.7", family="mvapich")


def cases(facts: Facts = NODE, request: MeasurementRequest = NORMAL) -> tuple[Case, ...]:
    found = PROBE.cases(facts, request)
    assert not isinstance(found, Unmeasured)
    return found


def test_each_mpi_is_a_case_started_by_its_own_starter_with_two_ranks() -> None:
    found = cases()
    assert [c.level("mpi") for c in found] == ["Open MPI 4.1.4", "MPICH 4.0.2"]
    program = PROBE.program(found[1])
    assert (program.ranks, program.cores, program.mpi_family, program.mpirun) == (
        2,
        1,
        "mpich",
        "/usr/bin/mpiexec.mpich",
    )
    assert program.build is not None
    assert (program.build.source, program.build.compiler) == (
        "mpi_pairs.c",
        "/usr/bin/mpicc.mpich",
    )
    assert program.argv == ("9", "0.004")
    assert program.limit_seconds > PROBE.seconds(found[1])


def test_between_two_nodes_quick_takes_two_sizes_with_one_mpi_and_one_core_is_enough() -> None:
    one = replace(NODE, allowed=(0,))
    (short,) = cases(one, MeasurementRequest(effort="quick", nodes=2))
    assert PROBE.program(short).argv == ("5", "0.002", "1048576", "8", "1048576")
    (quick, _) = cases(NODE, MeasurementRequest(effort="quick"))
    assert PROBE.seconds(short) < PROBE.seconds(quick)
    both = cases(one, MeasurementRequest(nodes=2))
    assert [PROBE.program(case).argv for case in both] == [("9", "0.004")] * 2


@pytest.mark.parametrize(
    ("facts", "request_", "counts"),
    [
        (NODE, NORMAL, []),
        (TWELVE, NORMAL, ["2", "4", "6"] * 2),
        (TWELVE, MeasurementRequest(effort="quick"), ["6"]),
        (TWELVE, MeasurementRequest(nodes=2), ["2", "4", "8", "12"] * 2),
        (NODE, MeasurementRequest(nodes=2, effort="quick"), ["2"]),
    ],
)
def test_several_pairs_take_the_cores_of_a_node_or_of_two(
    facts: Facts, request_: MeasurementRequest, counts: list[str]
) -> None:
    found = [case for case in cases(facts, request_) if case.level("pairs")]
    assert [case.level("pairs") for case in found] == counts
    for case in found:
        assert PROBE.program(case).ranks == 2 * int(case.level("pairs"))
        assert int(PROBE.program(case).argv[2]) <= 1 << 20, "a link that all share"
        assert PROBE.seconds(case) < 3


def test_messages_come_from_a_gpu_where_there_is_one_as_the_mpi_is_asked_to_send_them() -> None:
    one = replace(NODE, cuda=(H200,), mpis=(*MPIS, MVAPICH))
    found = [case for case in cases(one) if case.level("buffers")]
    assert [case.level("buffers") for case in found] == ["GPU"] * 3
    assert PROBE.program(found[0]).argv == ("--gpu", "9", "0.004")
    assert PROBE.program(found[0]).variables == ()
    assert PROBE.program(found[1]).variables == (("MPIR_CVAR_ENABLE_GPU", "1"),)
    (quick,) = [
        case for case in cases(one, MeasurementRequest(effort="quick")) if case.level("buffers")
    ]
    assert PROBE.program(quick).argv == ("--gpu", "5", "0.002", "1048576", "8", "1048576")
    assert PROBE.seconds(quick) < 5


def test_between_nodes_each_way_from_gpu_to_gpu_that_an_mpi_offers_is_a_level() -> None:
    two = replace(NODE, cuda=(H200,), mpis=(MVAPICH, MPIS[1]))
    found = {
        (case.level("mpi"), case.level("buffers")): PROBE.program(case).variables
        for case in cases(two, MeasurementRequest(nodes=2))
        if case.level("buffers")
    }
    cuda = ("MV2_USE_CUDA", "1")
    assert found == {
        (MVAPICH.name, "GPU, hybrid"): (cuda, ("MV2_USE_GPUDIRECT", "1")),
        (MVAPICH.name, "GPU, GDR"): (
            cuda,
            ("MV2_USE_GPUDIRECT", "1"),
            ("MV2_GPUDIRECT_LIMIT", str(1 << 30)),
        ),
        (MVAPICH.name, "GPU, pipeline"): (cuda, ("MV2_USE_GPUDIRECT", "0")),
        (MPIS[1].name, "GPU"): (("MPIR_CVAR_ENABLE_GPU", "1"),),
    }
    quick = cases(two, MeasurementRequest(nodes=2, effort="quick"))
    assert [case.level("buffers") for case in quick if case.level("buffers")] == ["GPU, hybrid"]


def test_with_full_effort_each_mpi_is_compiled_by_each_compiler() -> None:
    gcc, clang = (
        Compiler(
            name=name, family="other", language="c", version=version, path=PurePath("/bin", name)
        )
        for name, version in (("gcc-12", "12.2"), ("clang-16", "16.0"))
    )
    cxx = replace(gcc, name="g++", language="c++")
    other = replace(MPIS[0], name="other", family="other")
    facts = replace(NODE, compilers=(gcc, clang, cxx), mpis=(*MPIS, other))
    full = MeasurementRequest(effort="full")
    found = [case for case in cases(facts, full) if case.level("compiler")]
    builds = [PROBE.program(case).build for case in found]
    assert [(build.compiler, *build.flags) for build in builds if build] == [
        ("env", f"{variable}=/bin/{name}", wrapper, "-O2")
        for variable, wrapper in (
            ("OMPI_CC", "/usr/bin/mpicc.openmpi"),
            ("MPICH_CC", "/usr/bin/mpicc.mpich"),
        )
        for name in ("gcc-12", "clang-16")
    ]
    assert len({build.key for build in builds if build}) == 4
    assert PROBE.rounds(cases(facts, full)) == 4, "as verdicts need"
    assert PROBE.rounds(cases(facts)) == 1
    alone = replace(facts, compilers=(gcc,))
    assert not [case for case in cases(alone, full) if case.level("compiler")]
    assert not [case for case in cases(facts) if case.level("compiler")]


LATENCY, BANDWIDTH = ("latency", "8", "second"), ("bandwidth", "1048576", "byte/s")


def turns(
    key: tuple[str, str, str], value: float, compiler: str = "", rounds: int = 5
) -> list[Sample]:
    """Two in each round, in which all cases are slowed down alike."""
    metric, size, unit = key
    case = Case("mpi", (("mpi", "mpich"), *((("compiler", compiler),) * bool(compiler))))
    return [
        Sample(
            run="r",
            case=case.at(bytes=size),
            round=number,
            metric=metric,
            unit=unit,
            values=(value * (1 + 0.1 * number + 0.001 * turn),),
        )
        for number in range(rounds)
        for turn in range(2)
    ]


def said(samples: Sequence[Sample], marked: str = "none") -> tuple[str, ...]:
    """marked: the compiler whose numbers are."""
    found = [
        replace(m, trust=Trust(marks=("busy",) * (m.case.level("compiler") == marked)))
        for m in summarize(samples)
    ]
    return PROBE.findings_between(found, samples, NOISE_THRESHOLDS)


def test_the_best_pair_is_said_with_a_verdict_on_each_other() -> None:
    times = [
        *turns(LATENCY, 2e-7),
        *turns(LATENCY, 1e-7, "gcc"),
        *turns(("latency", "1", "second"), 1e-9),
    ]
    rates = [
        *turns(BANDWIDTH, 8e9),
        *turns(BANDWIDTH, 8.01e9, "gcc"),
        *turns(BANDWIDTH, 6e9, "clang"),
    ]
    assert said([*times, *rates], "clang") == (
        "best latency of 8 bytes: 0.12 us by mpich and gcc; the others are so many times as good:"
        " mpich 0.50 (0.50 to 0.50), slower",
        "best bandwidth of 1048576 bytes: 9.62 GB/s by mpich and gcc; the others are so many times"
        " as good: mpich 1.00 (1.00 to 1.00), equal in the median; mpich and clang 0.75 (0.75 to"
        " 0.75), slower [marked]",
    )
    assert said(turns(LATENCY, 2e-7)) == ()
    assert said([]) == ()


def test_a_pair_that_is_not_decided_is_said_so_with_what_decides() -> None:
    once = [*turns(LATENCY, 1.1e-7, rounds=1), *turns(LATENCY, 1e-7, "gcc", rounds=1)]
    assert said(once, "gcc") == (
        "best latency of 8 bytes: 0.1 us by mpich and gcc [marked]; the others are so many"
        " times as good: mpich 0.91, inconclusive (both ran in 1 of the 4 whole rounds needed);"
        " more rounds decide: --minutes",
    )
    apart = [*turns(LATENCY, 1e-7, rounds=1), *turns(LATENCY, 2e-7, "gcc", rounds=4)[6:]]
    (line,) = said(apart)
    assert "good: mpich and gcc, inconclusive (" in line


def test_between_environments_two_ranks_are_compared_alone() -> None:
    found = PROBE.compared(replace(TWELVE, cuda=(H200,)), MeasurementRequest(effort="full"))
    assert not isinstance(found, Unmeasured)
    assert [each.case.levels for each in found] == [(("mpi", mpi.name),) for mpi in MPIS]


def test_an_mpi_that_takes_no_memory_of_a_gpu_says_so() -> None:
    stdout = b'{"cannot": "this MPI is not CUDA-aware", "remedy": "use another"}\n'
    answer = read(Outcome(end=Exited(77), stdout=stdout, stderr=b"Exit code:    77\n"))
    assert answer == Unmeasured(reason="this MPI is not CUDA-aware", remedy="use another")


def test_quick_takes_less_time_than_normal_and_normal_less_than_full() -> None:
    times = [
        PROBE.seconds(cases(NODE, MeasurementRequest(effort=effort))[0])
        for effort in get_args(Effort)
    ]
    assert times == sorted(set(times))
    assert times[0] < 3


def test_no_mpi_says_what_to_install() -> None:
    found = PROBE.cases(replace(NODE, mpis=()), MeasurementRequest())
    assert isinstance(found, Unmeasured)
    assert "apt install openmpi-bin" in found.remedy


@pytest.mark.parametrize(
    ("facts", "cores"),
    [
        (replace(NODE, allowed=(0,)), "1"),
        (replace(NODE, quota_cpus=1.5), "1.5"),
    ],
)
def test_two_busy_ranks_are_not_put_on_less_than_two_cores(facts: Facts, cores: str) -> None:
    found = PROBE.cases(facts, MeasurementRequest())
    assert isinstance(found, Unmeasured)
    assert found.reason.endswith(f"here are {cores}")


def read(outcome: Outcome) -> object:
    found = PROBE.cases(NODE, MeasurementRequest())
    assert not isinstance(found, Unmeasured)
    return PROBE.read(found[0], outcome)


def answered(cpus: str) -> Outcome:
    reading = {
        "metric": "latency",
        "unit": "second",
        "levels": {"bytes": "8"},
        "notes": {"cpus": cpus},
        "values": [1.1e-7, 1.2e-7],
    }
    return Outcome(end=Exited(0), stdout=json.dumps({"readings": [reading]}).encode())


def test_the_sizes_are_levels_of_the_readings() -> None:
    readings = read(answered("0 1"))
    assert isinstance(readings, tuple)
    assert readings[0].levels == (("bytes", "8"),)
    assert dict(readings[0].notes) == {"cpus": "0 1"}


def test_ranks_that_were_not_bound_are_noted() -> None:
    readings = read(answered("0* 1*"))
    assert isinstance(readings, tuple)
    assert dict(readings[0].notes)["suspicious"] == "the ranks were not bound to a core each"


def test_the_programs_own_complaint_is_found_below_the_starters_words() -> None:
    stderr = b"mpi_pairs: latency of 8 bytes: wrong data came\n-----\nmpirun noticed that ...\n"
    readings = read(Outcome(end=Exited(1), stderr=stderr))
    assert readings == Unmeasured(reason="latency of 8 bytes: wrong data came")


def test_a_starter_that_fails_by_itself_is_quoted() -> None:
    readings = read(Outcome(end=Exited(213), stderr=b"There are not enough slots available\n"))
    assert isinstance(readings, Unmeasured)
    assert "not enough slots" in readings.reason


def test_every_chart_is_over_the_message_size_and_names_a_metric_of_the_program() -> None:
    assert {chart.x for chart in PROBE.info.charts} == {"bytes"}
    of_two = ("latency", "bandwidth", "bidirectional_bandwidth", "allreduce")
    of_pairs = ("multi_pair_bandwidth", "message_rate")
    assert [chart.metrics for chart in PROBE.info.charts] == [
        (metric,) for metric in (*of_two, *of_pairs, *(f"gpu_{metric}" for metric in of_two))
    ]
    assert PROBE.ceiling(cases()[0]) is None
