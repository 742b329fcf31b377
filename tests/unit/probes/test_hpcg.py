"""HPCG: the size of its boxes, how an xhpcg that is installed is started, and what it says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    Killed,
    MeasureError,
    MeasurementRequest,
    Mpi,
    Outcome,
    Tool,
    Unmeasured,
)
from flowos.probes._cores import NO_COMPILER
from flowos.probes.hpcg import BYTES_PER_ROW, OWN, XHPCG, Hpcg, size_for

MakeNode = Callable[..., Facts]
DATA = Path(__file__).parents[2] / "data/hpcg"
PROBE = Hpcg()
TOOL = Tool(name="xhpcg", version="", path=PurePath("/opt/xhpcg"), mpi="openmpi")
MPI = Mpi(
    name="Open MPI",
    family="openmpi",
    version="4",
    compiler=PurePath("/usr/bin/mpicc"),
    mpirun=PurePath("/usr/bin/mpirun"),
)


def asked(facts: Facts, effort: Effort = "quick") -> tuple[Case, ...] | Unmeasured:
    return PROBE.cases(facts, MeasurementRequest(effort=effort, probes=("hpcg",)))


def cases(facts: Facts, effort: Effort = "quick") -> tuple[Case, ...]:
    found = asked(facts, effort)
    assert not isinstance(found, Unmeasured)
    return found


def test_it_is_measured_by_name_and_needs_a_compiler_or_an_xhpcg(node: MakeNode) -> None:
    assert PROBE.cases(node(), MeasurementRequest()) == ()
    assert asked(node(compilers=())) == NO_COMPILER
    installed = replace(node(compilers=()), tools=(TOOL,))
    assert [case.level("solver") for case in cases(installed)] == [XHPCG]
    assert [case.level("solver") for case in cases(replace(node(), tools=(TOOL,)))] == [OWN, XHPCG]


def test_a_box_is_larger_than_the_caches_and_smaller_than_memory(node: MakeNode) -> None:
    assert size_for(node(l3_bytes=1 << 20), "quick") == 48
    large = node(l3_bytes=256 << 20)
    assert 2 * size_for(large, "quick") ** 3 * BYTES_PER_ROW >= 2 * (256 << 20)
    assert size_for(node(l3_bytes=1 << 20, memory_bytes=64 << 20), "quick") == 24
    assert size_for(node(memory_bytes=0, l3_bytes=1 << 20), "normal") == 64


def test_full_effort_takes_the_share_of_memory_that_hpcg_asks_for(node: MakeNode) -> None:
    for memory in (8 << 30, 64 << 30):
        size = size_for(node(memory_bytes=memory), "full")
        assert size % 8 == 0
        assert 0.25 <= 2 * size**3 * BYTES_PER_ROW / memory <= 0.4


def test_too_little_memory_is_said(node: MakeNode) -> None:
    found = asked(node(memory_bytes=8 << 20))
    assert found == Unmeasured(reason="too little memory for 16x16x16 rows a core")


def test_our_program_gets_the_cores_and_the_triad_bounds_its_traffic(node: MakeNode) -> None:
    (case,) = cases(node(sockets=2, cores=2, l3_bytes=1 << 20))
    program = PROBE.program(case)
    assert program.argv == ("--cpus", "0,1,2,3", "--seconds", "1", "--size", "48")
    assert program.cores == 4
    assert 1 < PROBE.seconds(case) < 5
    ceiling = PROBE.ceiling(case)
    assert ceiling is not None
    assert ceiling.label == "stream metric=triad threads=4"


def test_xhpcg_gets_the_same_box_for_each_rank(node: MakeNode) -> None:
    case = cases(replace(node(cores=4, l3_bytes=1 << 20), tools=(TOOL,), mpis=(MPI,)))[-1]
    program = PROBE.program(case)
    assert (program.ranks, program.cores, program.mpi_family) == (4, 1, "openmpi")
    assert "HPCG benchmark input file\nwritten by FlowOS\n48 48 48\n1\n" in program.argv
    assert program.argv[-1] == "/opt/xhpcg"
    assert PROBE.seconds(case) > PROBE.seconds(cases(node(cores=4, l3_bytes=1 << 20))[0])


# --- what xhpcg says -------------------------------------------------------------------------

CASE = Case("hpcg", (("solver", XHPCG),))


def said(text: str) -> Outcome:
    return Outcome(end=Exited(0), stdout=text.encode())


def test_a_valid_run_is_its_rating() -> None:
    found = PROBE.read(CASE, said((DATA / "valid.txt").read_text()))
    assert not isinstance(found, Unmeasured)
    (reading,) = found
    assert (reading.metric, reading.unit) == ("flops", "flop/s")
    assert reading.values == pytest.approx((0.0506268e9,))
    assert dict(reading.notes) == {"version": "3.1", "residual": "1.26595e-16"}


def test_the_yaml_of_version_3_0_is_read_too() -> None:
    found = PROBE.read(CASE, said("  HPCG result is VALID with a GFLOP/s rating of: 1.5\n"))
    assert not isinstance(found, Unmeasured)
    assert (found[0].values, found[0].notes) == ((1.5e9,), ())


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (said((DATA / "invalid.txt").read_text()), "invalid: Departure from Symmetry"),
        (said("HPCG result is=INVALID.\n"), "invalid: it says no more"),
        (Outcome(end=Killed(9)), "xhpcg ended by"),
        (Outcome(end=Exited(1)), "xhpcg ended by"),
    ],
)
def test_an_invalid_run_is_no_number(outcome: Outcome, reason: str) -> None:
    found = PROBE.read(CASE, outcome)
    assert isinstance(found, Unmeasured)
    assert reason in found.reason


@pytest.mark.parametrize("text", ["", "\xff", "HPCG result is VALID with a GFLOP/s rating of=x\n"])
def test_what_is_no_report_of_hpcg_is_an_error(text: str) -> None:
    with pytest.raises(MeasureError, match="cannot be read"):
        PROBE.read(CASE, said(text))


def test_an_answer_of_our_own_program_is_read_as_all_are() -> None:
    found = PROBE.read(Case("hpcg"), Outcome(end=Exited(1), stderr=b"not symmetric\n"))
    assert isinstance(found, Unmeasured)
    assert "not symmetric" in found.reason
