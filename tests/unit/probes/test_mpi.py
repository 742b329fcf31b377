import json
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import Exited, Facts, LogicalCpu, MeasurementRequest, Mpi, Outcome, Unmeasured
from flowos.probes.mpi import MpiPairs

PROBE = MpiPairs()
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


def test_each_mpi_is_a_case_started_by_its_own_starter_with_two_ranks() -> None:
    found = PROBE.cases(NODE, MeasurementRequest())
    assert not isinstance(found, Unmeasured)
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
    (short,) = PROBE.cases(one, MeasurementRequest(effort="quick", nodes=2)) or ()  # type: ignore[misc]
    assert PROBE.program(short).argv == ("5", "0.002", "1048576", "8", "1048576")
    (quick, _) = PROBE.cases(NODE, MeasurementRequest(effort="quick")) or ()  # type: ignore[misc]
    assert PROBE.seconds(short) < PROBE.seconds(quick)
    both = PROBE.cases(NODE, MeasurementRequest(nodes=2))
    assert not isinstance(both, Unmeasured)
    assert [PROBE.program(case).argv for case in both] == [("9", "0.004")] * 2


def test_quick_takes_less_time_than_normal_and_normal_less_than_full() -> None:
    times = []
    for effort in ("quick", "normal", "full"):
        found = PROBE.cases(NODE, MeasurementRequest(effort=effort))
        assert not isinstance(found, Unmeasured)
        times.append(PROBE.seconds(found[0]))
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
    assert dict(readings[0].notes)["suspect"] == "the ranks were not bound to a core each"


def test_the_programs_own_complaint_is_found_below_the_starters_words() -> None:
    stderr = b"mpi_pairs: latency of 8 bytes: wrong data came\n-----\nmpirun noticed that ...\n"
    readings = read(Outcome(end=Exited(1), stderr=stderr))
    assert readings == Unmeasured(reason="latency of 8 bytes: wrong data came")


def test_a_starter_that_fails_by_itself_is_quoted() -> None:
    readings = read(Outcome(end=Exited(213), stderr=b"There are not enough slots available\n"))
    assert isinstance(readings, Unmeasured)
    assert "not enough slots" in readings.reason


def test_every_chart_is_over_the_message_size() -> None:
    found = PROBE.cases(NODE, MeasurementRequest())
    assert not isinstance(found, Unmeasured)
    assert {chart.x for chart in PROBE.info.charts} == {"bytes"}
    assert [chart.metrics for chart in PROBE.info.charts] == [
        ("latency",),
        ("bandwidth",),
        ("allreduce",),
    ]
    assert PROBE.ceiling(found[0]) is None
