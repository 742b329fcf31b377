"""A probe's program as a flow: what is built once, what runs alone, what the words become."""

from dataclasses import replace

from flowos.model import Command, Flow, Gang, Task
from flowos.probes import Build, Program, flow_of, flow_of_builds

BUILD = Build(source="clock.c", compiler="/usr/bin/gcc", compiler_version="12", libraries=("-lm",))


def tasks_of(flow: Flow) -> list[Task]:
    return [call.task for call in flow.calls]


def command_of(task: Task) -> Command:
    body = task.body.command if isinstance(task.body, Gang) else task.body
    assert isinstance(body, Command)
    return body


def test_a_program_without_a_build_is_one_command_in_its_scratch_folder() -> None:
    flow = flow_of(Program(argv=("fio", "--folder={scratch}")), "case", scratch="/s")
    (task,) = tasks_of(flow)
    assert command_of(task).argv == ("fio", "--folder=/s")
    assert task.needs.alone
    assert [p.spec.name for p in flow.outputs] == ["outcome"]


def test_a_program_with_a_build_is_compiled_once_per_key_and_then_run() -> None:
    build, run = tasks_of(flow_of(Program(argv=("--cpus", "0"), build=BUILD), "case"))
    assert command_of(build).once == BUILD.key
    assert command_of(build).argv[0] == "/usr/bin/gcc"
    assert command_of(build).argv[-1] == "-lm"
    assert command_of(run).argv[1:] == ("--cpus", "0")
    assert not command_of(run).once


def test_an_mpi_program_is_a_gang_of_its_ranks() -> None:
    program = Program(argv=(), build=BUILD, ranks=2, mpi_family="openmpi", starter="mpirun")
    run = tasks_of(flow_of(program, "case"))[-1]
    assert isinstance(run.body, Gang)
    assert (run.body.mpi, run.body.starter, run.needs.ranks) == ("openmpi", "mpirun", 2)


def test_each_build_is_made_once_however_many_ask_for_it() -> None:
    flow = flow_of_builds([BUILD, BUILD, Build(source="clock.c", compiler="/usr/bin/clang")])
    assert flow is not None
    assert len(tasks_of(flow)) == 2
    assert flow_of_builds([]) is None


def test_the_key_changes_with_compiler_flags_libraries_and_version() -> None:
    others = [
        Build(source="clock.c", compiler="/usr/bin/gcc", compiler_version="13", libraries=("-lm",)),
        Build(source="clock.c", compiler="/usr/bin/gcc", compiler_version="12"),
        Build(source="flops.c", compiler="/usr/bin/gcc", compiler_version="12", libraries=("-lm",)),
    ]
    assert len({BUILD.key, *(b.key for b in others)}) == 4


SOLVER = Build(
    source="mpi/solve_mpi.cpp",
    also=("base/exact_sum.cpp", "matrix/generate.cpp"),
    folder="solver/native",
    compiler="mpicxx",
)


def test_a_program_of_several_sources_is_compiled_from_all_of_them() -> None:
    build, _ = tasks_of(flow_of(Program(argv=(), build=SOLVER), "case"))
    sources = [str(word) for word in command_of(build).argv if str(word).endswith(".cpp")]
    assert [source.rpartition("/")[2] for source in sources] == [
        "solve_mpi.cpp",
        "exact_sum.cpp",
        "generate.cpp",
    ]
    assert SOLVER.key.startswith("solve_mpi-")


def test_headers_are_named_from_the_folder_on_where_a_program_says_so() -> None:
    build, _ = tasks_of(flow_of(Program(argv=(), build=replace(SOLVER, include_folder=True)), "c"))
    (flag,) = (str(word) for word in command_of(build).argv if str(word).startswith("-I"))
    assert flag.endswith("flowos/solver/native")
    assert not SOLVER.include_flags


def test_the_key_changes_with_the_other_sources() -> None:
    fewer = replace(SOLVER, also=("base/exact_sum.cpp",))
    assert fewer.key != SOLVER.key
