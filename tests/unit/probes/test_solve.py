"""The solver's probe: which points are measured, how they are run, what is read and concluded."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.model import (
    Case,
    Effort,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Unmeasured,
)
from flowos.probes import Build
from flowos.probes._scaling import scaling_over_nodes
from flowos.probes._solve_findings import PROBLEM, equal_answers
from flowos.probes.solve import (
    GRIDS,
    Solve,
    circuit,
    core_counts,
    layouts,
    poisson,
)

PROBE = Solve()
Node = Callable[..., Facts]


def mpi(family: str) -> Mpi:
    return Mpi(
        name=family,
        family="openmpi" if family == "openmpi" else "mpich",
        version="4.1.4",
        compiler=PurePath(f"/usr/bin/mpicc.{family}"),
        mpirun=PurePath(f"/usr/bin/mpirun.{family}"),
        cxx=PurePath(f"/usr/bin/mpicxx.{family}"),
    )


MPIS = (mpi("openmpi"), mpi("mpich"))


@pytest.fixture
def here(node: Node) -> Callable[..., Facts]:
    return lambda *sizes, **more: replace(node(*sizes, **more), mpis=MPIS)


def cases(facts: Facts, effort: str = "normal") -> tuple[Case, ...]:
    found = PROBE.cases(facts, MeasurementRequest(effort=effort))  # type: ignore[arg-type]
    assert not isinstance(found, Unmeasured)
    return found


def told(found: tuple[Case, ...]) -> list[tuple[str, ...]]:
    axes = ("problem", "setting", "mpi", "layout", "cores")
    return [tuple(case.level(axis) for axis in axes) for case in found]


def test_without_a_cxx_compiler_of_an_mpi_it_says_what_to_install(node: Node) -> None:
    for mpis in ((), (replace(MPIS[0], cxx=None),)):
        found = PROBE.cases(replace(node(), mpis=mpis), MeasurementRequest())
        assert isinstance(found, Unmeasured)
        assert "g++" in found.remedy


def test_quick_is_poisson_on_one_core_and_on_all_by_the_first_mpi(here: Node) -> None:
    assert told(cases(here(), "quick")) == [
        ("poisson", "default", "openmpi", "threads", "1"),
        ("poisson", "default", "openmpi", "threads", "2"),
        ("poisson", "default", "openmpi", "ranks", "2"),
    ]


def test_normal_adds_each_other_mpi_the_papers_setting_and_the_circuit(here: Node) -> None:
    found = told(cases(here()))
    assert found[:3] == told(cases(here(), "quick"))
    assert found[3:5] == [
        ("poisson", "default", "mpich", "ranks", "2"),
        ("poisson", "paper", "openmpi", "ranks", "2"),
    ]
    assert {problem for problem, *_ in found[5:]} == {"g3like"}


def test_full_is_everything_with_everything_on_the_papers_grid(here: Node) -> None:
    found = cases(here(), "full")
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 3
    assert {c.level("size") for c in found if c.level("problem") == "poisson"} == {"256x256x512"}


def builds_of(facts: Facts) -> tuple[Build, Build]:
    """The programs of Open MPI and MPICH."""
    found = {case.level("mpi"): PROBE.program(case).build for case in cases(facts)}
    first, second = found["openmpi"], found["mpich"]
    assert first
    assert second
    return first, second


def test_the_library_is_compiled_once_for_mpis_that_call_one_compiler(node: Node) -> None:
    calls = {"cxx_calls": ("/usr/bin/g++", "-DX=a b"), "cxx_version": "12.2.0"}
    mpis = tuple(replace(each, **calls) for each in MPIS)  # type: ignore[arg-type]
    first, second = builds_of(replace(node(), mpis=mpis))
    assert first.objects[1:] == second.objects[1:]
    assert first.objects[0] != second.objects[0]
    assert first.objects[1].compiler == ("/usr/bin/g++", "-DX=a b")
    assert (first.compiler_version, first.also_version) == ("4.1.4 12.2.0", "12.2.0")


def test_each_mpi_compiles_the_library_itself_where_it_is_not_known_what_it_calls(
    here: Callable[..., Facts],
) -> None:
    first, second = builds_of(here())
    assert {each.compiler for each in first.objects} == {("/usr/bin/mpicxx.openmpi",)}
    assert not {each.key for each in first.objects} & {each.key for each in second.objects}
    assert first.compiler_version == "4.1.4"


def over_nodes(facts: Facts, nodes: int = 4, effort: Effort = "normal") -> tuple[Case, ...]:
    found = PROBE.cases(facts, MeasurementRequest(effort=effort, nodes=nodes))
    assert not isinstance(found, Unmeasured)
    return found


def test_over_nodes_it_is_the_papers_setting_with_two_ranks_on_each(here: Node) -> None:
    found = over_nodes(here(1, 8), nodes=6, effort="quick")
    assert [case.level("nodes") for case in found] == ["1", "2", "4", "6"]
    for case in found:
        nodes = int(case.level("nodes"))
        assert (case.level("setting"), case.level("layout")) == ("paper", "2 ranks")
        program = PROBE.program(case)
        assert (program.ranks, program.nodes, program.cores) == (2 * nodes, nodes, 4)
        assert case.level("cores") == str(8 * nodes)


def test_over_nodes_of_one_core_there_is_a_rank_on_each(here: Node) -> None:
    found = over_nodes(here(1, 1), nodes=2, effort="quick")
    assert [PROBE.program(case).ranks for case in found] == [1, 2]
    assert {case.level("layout") for case in found} == {"threads"}


def test_over_nodes_normal_and_full_have_both_problems_in_both_settings(here: Node) -> None:
    normal, full = (over_nodes(here(), effort=effort) for effort in ("normal", "full"))
    for found in (normal, full):
        assert len(found) == len(set(found)) == 2 * 2 * 3
    assert {c.level("size") for c in full if c.level("problem") == "poisson"} == {"256x256x512"}


def test_for_nodes_it_is_not_compiled_for_the_processor_of_this_machine(here: Node) -> None:
    build = PROBE.program(over_nodes(here())[0]).build
    assert build is not None
    assert not any("native" in flag for flag in build.flags)
    assert all(build.flags)


def test_each_node_has_cpus_of_the_same_numbers(here: Node) -> None:
    case = over_nodes(here(1, 4))[2]
    assert case.level("cores") == "16"
    for cpus, is_suspicious in (("4", False), ("3", True)):
        readings = PROBE.read(case, answer(cpus=cpus))
        assert not isinstance(readings, Unmeasured)
        assert ("suspicious" in dict(readings[0].notes)) == is_suspicious


def test_normal_fits_a_minute_and_a_half_on_two_cores_in_two_turns(here: Node) -> None:
    times = [2 * sum(map(PROBE.seconds, cases(here(), e))) for e in ("quick", "normal", "full")]
    assert times[0] < 12
    assert times[1] < 90
    assert times == sorted(times)


def test_cores_are_shared_out_to_threads_to_ranks_and_as_the_paper_does() -> None:
    assert layouts(1) == (("threads", 1, 1),)
    assert layouts(3) == (("threads", 1, 3), ("ranks", 3, 1))
    assert layouts(8) == (("threads", 1, 8), ("ranks", 8, 1), ("2 ranks", 2, 4))


def test_counts_go_by_doubling_to_all_cores_or_the_quota(here: Node) -> None:
    assert core_counts(here(1, 6)) == (1, 2, 4, 6)
    assert core_counts(here(1, 8, quota_cpus=3.5)) == (1, 2, 3)
    assert core_counts(here(1, 2, quota_cpus=0.5)) == (1,)


def test_the_grid_grows_with_the_caches_and_shrinks_with_the_memory(here: Node) -> None:
    assert poisson(here(), MeasurementRequest()).size == "128x128x128"
    assert poisson(here(l3_bytes=768 << 20), MeasurementRequest()).size == "256x256x512"
    assert poisson(here(2, 64, l3_bytes=64 << 30), MeasurementRequest()).rows <= 64 << 30
    assert poisson(here(memory_bytes=512 << 20), MeasurementRequest()).size == "96x96x96"
    assert poisson(here(memory_bytes=1 << 20), MeasurementRequest()).size == "96x96x96"
    assert poisson(replace(here(), memory_bytes=0), MeasurementRequest()).size == "128x128x128"


@pytest.mark.parametrize(
    ("memory_gb", "cores", "size"),
    [
        (24, 2, "256x256x512"),
        (16, 2, "256x256x512"),
        (12, 2, "256x256x256"),
        (48, 16, "256x256x512"),
        (32, 16, "256x256x256"),
        (8, 1, "256x256x256"),
    ],
)
def test_the_papers_grid_is_left_out_only_where_all_ranks_would_not_hold_it(
    here: Node, memory_gb: int, cores: int, size: str
) -> None:
    facts = here(1, cores, memory_bytes=memory_gb << 30)
    assert poisson(facts, MeasurementRequest(effort="full")).size == size


def test_a_cache_larger_than_every_grid_takes_the_largest_that_memory_holds(here: Node) -> None:
    facts = here(l3_bytes=1 << 40, memory_bytes=1 << 50)
    z, y, x = GRIDS[-1]
    assert poisson(facts, MeasurementRequest()).size == f"{x}x{y}x{z}"


def test_a_persons_matrix_stands_for_the_circuit_under_its_own_name() -> None:
    assert circuit(MeasurementRequest()).name == "g3like"
    own = circuit(MeasurementRequest(matrix=PurePath("/data/G3_circuit.mtx")))
    assert (own.word, own.name, own.size) == ("/data/G3_circuit.mtx", "G3_circuit", "")


def test_the_program_is_built_from_the_librarys_sources_by_the_mpis_cxx(here: Node) -> None:
    case = cases(here())[4]
    program = PROBE.program(case)
    assert program.build is not None
    assert program.build.source == "mpi/solve_mpi.cpp"
    assert program.build.compiler == "/usr/bin/mpicxx.openmpi"
    assert "-ffp-contract=off" in program.build.flags
    assert not any("fast-math" in flag for flag in program.build.flags)
    assert program.build.flags[-1] == "-march=native"
    assert all(source.is_file() for source in program.build.sources)
    (flag,) = program.build.include_flags
    assert (Path(flag.removeprefix("-I")) / "krylov/solver.h").is_file()
    assert (program.ranks, program.cores, program.mpi_family) == (2, 1, "openmpi")
    assert program.mpirun == "/usr/bin/mpirun.openmpi"
    assert dict(program.variables)["OMP_NUM_THREADS"] == "1"
    assert program.argv[0] == "poisson:128x128x128"
    assert " ".join(program.argv).count("--block-rows 32 --colours 20") == 1
    assert program.limit_seconds > PROBE.seconds(case)


def test_arm_takes_its_own_spelling_of_native(here: Node) -> None:
    build = PROBE.program(cases(replace(here(), architecture="aarch64"))[0]).build
    assert build is not None
    assert build.flags[-1] == "-mcpu=native"


def answer(cpus: str = "2", x: str = "0123456789abcdef") -> Outcome:
    reading = {
        "metric": "total",
        "unit": "second",
        "values": [0.5],
        "notes": {"cpus": cpus, "x": x},
    }
    return Outcome(end=Exited(0), stdout=json.dumps({"readings": [reading]}).encode())


def test_the_solver_is_called_what_it_is() -> None:
    assert PROBE.info.title == "Sparse solver (conjugate gradients)"


def test_a_good_answer_is_read_without_doubts(here: Node) -> None:
    readings = PROBE.read(cases(here())[1], answer())
    assert not isinstance(readings, Unmeasured)
    assert "suspicious" not in dict(readings[0].notes)


def test_threads_that_shared_a_cpu_are_noted(here: Node) -> None:
    readings = PROBE.read(cases(here())[1], answer(cpus="1"))
    assert not isinstance(readings, Unmeasured)
    assert dict(readings[0].notes)["suspicious"] == "2 threads were seen on 1 cpus"


def test_the_programs_own_complaint_is_found_below_the_starters_words(here: Node) -> None:
    stderr = b"solve_mpi: it did not converge\n-----\nmpirun noticed that ...\n"
    readings = PROBE.read(cases(here())[0], Outcome(end=Exited(1), stderr=stderr))
    assert readings == Unmeasured(reason="it did not converge")


def test_a_starter_that_fails_by_itself_is_quoted(here: Node) -> None:
    readings = PROBE.read(cases(here())[0], Outcome(end=Exited(213), stderr=b"no slots\n"))
    assert isinstance(readings, Unmeasured)
    assert "no slots" in readings.reason


def test_the_triad_of_as_many_cores_bounds_it(here: Node) -> None:
    ceiling = PROBE.ceiling(cases(here())[2])
    assert ceiling == Case("solve", levels=(("cores", "2"), ("metric", "triad")))


def test_the_charts_draw_axes_that_the_cases_have(here: Node) -> None:
    axes = {axis for axis, _ in over_nodes(here())[0].levels}
    for chart in PROBE.info.charts:
        assert {chart.x, *chart.series, *chart.facets} <= axes


def measured(x: str, cores: str, metric: str = "total") -> Measurement:
    case = Case(
        "solve",
        levels=(
            ("problem", "poisson"),
            ("size", "8x8x8"),
            ("setting", "default"),
            ("cores", cores),
        ),
        details=(("x", x),),
    )
    return Measurement(
        case=case,
        metric=metric,
        unit="second",
        count=1,
        median=1.0,
        low=1.0,
        high=1.0,
        best=1.0,
    )


def test_that_x_is_the_same_everywhere_is_said_and_so_is_that_it_is_not() -> None:
    others = [measured("b", "4", "setup"), measured("", "8")]
    assert equal_answers([measured("a", "1"), measured("a", "2"), *others]) == (
        "solve poisson 8x8x8 default: x is the same to the last bit in all 2 cases (hash a)",
    )
    (said,) = equal_answers([measured("a", "1"), measured("b", "2")])
    assert "x is NOT the same" in said
    assert "cores=1 differs from" in said
    assert equal_answers([measured("", "1")]) == ()


def test_the_same_x_comes_after_as_many_iterations() -> None:
    one = measured("a", "1")
    took = replace(one, case=replace(one.case, details=(*one.case.details, ("iterations", "123"))))
    (said,) = equal_answers([took])
    assert said.endswith("(hash a, after 123 iterations)")


def of_nodes(nodes: int, seconds: float, **levels: str) -> Measurement:
    found = measured("a", "2")
    case = found.case.at(nodes=str(nodes), mpi="Open MPI", **levels)
    return replace(found, case=case, median=seconds)


def scaled(found: list[Measurement], *, weak: bool = False) -> tuple[str, ...]:
    return tuple(scaling_over_nodes(found, "total", (*PROBLEM, "mpi"), weak=weak))


def test_weak_scaling_is_efficient_where_twice_the_work_takes_as_long() -> None:
    (said,) = scaled([of_nodes(1, 4.0), of_nodes(2, 4.0), of_nodes(4, 5.0)], weak=True)
    assert said.endswith("1 node 4 s, 2 nodes 4 s (100% efficient), 4 nodes 5 s (80% efficient)")


def test_scaling_is_efficient_where_twice_the_nodes_take_half_the_time() -> None:
    found = [of_nodes(4, 4.0), of_nodes(1, 8.0), of_nodes(2, 4.0)]
    assert scaled(found) == (
        "solve poisson 8x8x8 default Open MPI: 1 node 8 s, 2 nodes 4 s (100% efficient),"
        " 4 nodes 4 s (50% efficient)",
    )


def test_scaling_begins_with_the_fewest_nodes_that_were_measured() -> None:
    (said,) = scaled([of_nodes(4, 3.0), of_nodes(2, 4.0)])
    assert said.endswith("2 nodes 4 s, 4 nodes 3 s (67% efficient)")


def test_scaling_of_each_setting_is_said_apart_and_none_of_one_count() -> None:
    paper = [of_nodes(n, 1.0, setting="paper") for n in (1, 2)]
    assert len(scaled([*paper, *(of_nodes(n, 1.0) for n in (1, 2))])) == 2
    assert not scaled([paper[0], of_nodes(1, 1.0), measured("a", "2")])
