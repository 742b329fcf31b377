"""Linpack: which systems are solved by which solver, and what an xhpl that is installed says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.model import (
    Blas,
    Case,
    Effort,
    Exited,
    Facts,
    Killed,
    MeasureError,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Tool,
    Unmeasured,
)
from flowos.probes import pool_words
from flowos.probes._cores import NO_COMPILER
from flowos.probes._hpl_answer import hpl_input
from flowos.probes._ranks import process_grid
from flowos.probes.hpl import NO_BLAS, Hpl, sizes_for

MakeNode = Callable[..., Facts]
DATA = Path(__file__).parents[2] / "data/hpl"
PROBE = Hpl()
OPENBLAS = Blas(name="numpy", family="openblas", version="1", path=PurePath("/usr/lib/libnumpy.so"))
BLIS, NETLIB = (
    replace(OPENBLAS, name="blis", family="blis"),
    replace(OPENBLAS, name="netlib", family="other"),
)
XHPL = Tool(name="xhpl", version="", path=PurePath("/opt/xhpl"), mpi="mpich")
INTEL = Mpi(
    name="Intel MPI",
    family="intel",
    version="2021",
    compiler=PurePath("/opt/mpicc"),
    mpirun=PurePath("/opt/mpirun"),
)


def cases(facts: Facts, effort: Effort = "normal") -> tuple[Case, ...]:
    found = PROBE.cases(facts, MeasurementRequest(effort=effort, probes=("hpl",)))
    assert not isinstance(found, Unmeasured)
    return found


def xhpl_of(facts: Facts, **of: object) -> Case:
    return cases(replace(facts, tools=(XHPL,), **of))[-1]  # type: ignore[arg-type]


def test_it_is_measured_by_name_by_each_library_the_one_with_lapack_first(node: MakeNode) -> None:
    facts = node(blas=(BLIS, NETLIB, OPENBLAS))
    assert PROBE.cases(facts, MeasurementRequest()) == ()
    assert [case.level("solver") for case in cases(facts)] == ["numpy", "netlib", "blis"]
    assert [case.level("solver") for case in cases(facts, "quick")] == ["numpy"]


@pytest.mark.parametrize(
    ("facts", "why"), [({"compilers": (), "blas": (OPENBLAS,)}, NO_COMPILER), ({}, NO_BLAS)]
)
def test_what_is_needed_is_said(node: MakeNode, facts: dict[str, object], why: Unmeasured) -> None:
    assert PROBE.cases(node(**facts), MeasurementRequest(probes=("hpl",))) == why


def test_sizes_double_up_to_the_share_of_memory_and_full_effort_takes_hpls(node: MakeNode) -> None:
    large = node(memory_bytes=64 << 30)
    assert sizes_for(large, "quick") == (1000, 2000, 4000, 8000)
    assert sizes_for(large, "normal")[-1] == 32000
    *doubled, last = sizes_for(large, "full")
    assert doubled == [1000, 2000, 4000, 8000, 16000, 32000]
    assert 0.79 < 8 * last**2 / (64 << 30) < 0.8


def test_a_tiny_machine_gets_a_tiny_system(node: MakeNode) -> None:
    assert sizes_for(node(memory_bytes=1 << 20), "quick") == (114,)
    assert sizes_for(node(memory_bytes=1 << 16), "full") == (80,)
    assert sizes_for(node(memory_bytes=0), "quick")[-1] == 8000


def test_the_library_solves_on_all_cores_below_their_ceiling(node: MakeNode) -> None:
    (case,) = cases(node(sockets=2, cores=2, blas=(OPENBLAS,)), "quick")
    program = PROBE.program(case)
    assert program.argv[:2] == ("--library", "/usr/lib/libnumpy.so")
    assert program.argv[-4:] == ("--sizes", "1000,2000,4000,8000", "--seconds", "3.00")
    assert (program.cores, program.opens) == (4, ("/usr/lib/libnumpy.so",))
    assert ("OPENBLAS_NUM_THREADS", "4") in program.variables
    assert 3 <= PROBE.seconds(case) <= 5
    ceiling = PROBE.ceiling(case)
    assert ceiling is not None
    assert ceiling.label == "flops cores=4 isa=avx512f type=f64"


def test_without_known_instructions_the_ceiling_is_the_best_of_all(node: MakeNode) -> None:
    ceiling = PROBE.ceiling(cases(node(blas=(OPENBLAS,), instruction_sets=()))[0])
    assert ceiling is not None
    assert ceiling.label == "flops cores=2 type=f64"


def test_xhpl_runs_with_a_rank_on_each_core_by_an_mpirun_of_its_family(node: MakeNode) -> None:
    case = xhpl_of(node(sockets=2, cores=3, compilers=()), mpis=(INTEL,))
    program = PROBE.program(case)
    assert (program.ranks, program.cores, program.mpi_family) == (6, 1, "intel")
    assert program.mpirun == "/opt/mpirun"
    assert ("OMP_NUM_THREADS", "1") in program.variables
    assert program.argv[-1] == "/opt/xhpl"
    assert hpl_input([1000, 2000, 4000, 8000], (2, 3)) in program.argv


def test_xhpl_without_an_mpirun_that_fits_is_one_process_of_many_threads(node: MakeNode) -> None:
    program = PROBE.program(xhpl_of(node(cores=4)))
    assert (program.ranks, program.cores, program.mpi_family) == (1, 4, "")
    assert ("OMP_NUM_THREADS", "4") in program.variables


def test_xhpl_gets_what_slow_cores_solve_in_time(node: MakeNode) -> None:
    assert xhpl_of(node(cores=1)).detail("sizes") == "1000,2000,4000"
    assert xhpl_of(node(cores=1, memory_bytes=1 << 20)).detail("sizes") == "181"


def test_a_grid_of_ranks_is_nearly_a_square() -> None:
    assert [process_grid(n) for n in (1, 2, 6, 7, 64, 96)] == [
        (1, 1),
        (1, 2),
        (2, 3),
        (1, 7),
        (8, 8),
        (8, 12),
    ]


# --- what xhpl says --------------------------------------------------------------------------


CASE = Case("hpl", (("solver", "xhpl"),), (("sizes", "100,200"),))


def said(name: str, **changed: str) -> Outcome:
    text = (DATA / f"{name}.txt").read_text()
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    return Outcome(end=Exited(0), stdout=text.encode())


def test_each_size_that_passed_is_a_rate_and_a_time() -> None:
    found = PROBE.read(CASE, said("passed"))
    assert not isinstance(found, Unmeasured)
    assert [(r.metric, dict(r.levels)["n"]) for r in found] == [
        ("flops", "100"),
        ("time", "100"),
        ("flops", "200"),
        ("time", "200"),
    ]
    assert dict(found[2].notes) == {"residual": "9.88538612e-03", "nb": "192"}
    counted = 2 / 3 * 200**3 + 1.5 * 200**2
    assert found[2].values[0] * found[3].values[0] == pytest.approx(counted)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (said("failed"), "N 100 did not pass: its scaled residual is"),
        (said("passed", **{"9.88538612e-03": "-nan"}), "N 200 did not pass: its scaled residual"),
        (said("passed", **{"9.88538612e-03": "1.7e+01"}), "is 1.7e+01, where less than 16 is"),
        (replace(said("refused"), end=Exited(1)), "Need at least 4 processes for these tests"),
        (Outcome(end=Killed(9)), "xhpl ended by"),
        (Outcome(end=Exited(127)), "xhpl ended by"),
    ],
)
def test_what_did_not_pass_is_no_number(outcome: Outcome, reason: str) -> None:
    found = PROBE.read(CASE, outcome)
    assert isinstance(found, Unmeasured)
    assert reason in found.reason


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(end=Exited(0)),
        Outcome(end=Exited(0), stdout=b"\xff" * 900),
        said("passed", **{" 200 ": " 300 "}),
        said("passed", **{"PASSED": "SKIPPED"}),
    ],
)
def test_what_is_no_answer_of_hpl_is_an_error(outcome: Outcome) -> None:
    with pytest.raises(MeasureError, match="xhpl's answer for N"):
        PROBE.read(CASE, outcome)


def test_an_answer_of_our_own_program_is_read_as_all_are() -> None:
    found = PROBE.read(Case("hpl"), Outcome(end=Exited(1), stderr=b"n 10: wrong solution\n"))
    assert isinstance(found, Unmeasured)
    assert "wrong solution" in found.reason


# --- conclusions -----------------------------------------------------------------------------


def measured(n: int, metric: str = "flops", *, sizes: str = "1000,2000,4000") -> Measurement:
    case = Case(
        "hpl",
        (("cores", "2"), ("solver", "numpy"), ("n", str(n))),
        (("memory", str(8 * 5000**2)), ("sizes", sizes), ("seconds", "3.00")),
    )
    return Measurement(
        case=case, metric=metric, unit="flop/s", count=1, median=1e9, low=1e9, high=1e9, best=1e9
    )


def test_the_share_of_memory_is_said_and_what_hpl_asks() -> None:
    assert PROBE.findings(()) == ()
    (small,) = PROBE.findings((measured(1000), measured(1000, "time")))
    assert small.startswith("hpl: the largest N, 1000, took 4.00% of the memory; a rating")
    (large,) = PROBE.findings((measured(1000), measured(4500)))
    assert large == "hpl: the largest N, 4500, took 81.00% of the memory"


def test_sizes_without_time_or_memory_are_told() -> None:
    ((case, why),) = PROBE.left_out((measured(1000), measured(1000, "time")))
    assert case.label == "hpl cores=2 solver=numpy n=2000, 4000"
    assert "longer than the 3 s that a solver has, or more memory than is free" in why.reason
    assert why.remedy == "flowos measure --full --only flops,hpl"


def test_the_remedy_measures_on_the_nodes_that_were_measured() -> None:
    ((_, why),) = PROBE.left_out((measured(1000),), pool_words("my hpc", 1))
    assert why.remedy == "flowos measure --full --only flops,hpl --pool 'my hpc' --nodes 1"
