"""The programs of probes as a flow: what is compiled, and what compiles it anew."""

import re
from dataclasses import replace

from flowos.model import Command
from flowos.probes import Build, flow_of_builds

BUILD = Build(source="clock.c", compiler="/usr/bin/gcc", compiler_version="12", libraries=("-lm",))


def commands_of(*builds: Build) -> list[Command]:
    flow = flow_of_builds(builds)
    assert flow is not None
    bodies = [call.task.body for call in flow.calls]
    assert all(isinstance(body, Command) for body in bodies)
    return bodies  # type: ignore[return-value]


def test_a_program_is_compiled_once_per_key() -> None:
    (command,) = commands_of(BUILD)
    assert command.once == BUILD.key
    assert command.argv[0] == "/usr/bin/gcc"
    assert command.argv[-1] == "-lm"
    assert command.limit_seconds == 120
    assert re.fullmatch(r"clock-[0-9a-f]{16}", BUILD.key)


def test_each_build_is_made_once_however_many_ask_for_it() -> None:
    assert len(commands_of(BUILD, BUILD, Build(source="clock.c", compiler="/usr/bin/clang"))) == 2
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
    (command,) = commands_of(SOLVER)
    sources = [str(word) for word in command.argv if str(word).endswith(".cpp")]
    assert [source.rpartition("/")[2] for source in sources] == [
        "solve_mpi.cpp",
        "exact_sum.cpp",
        "generate.cpp",
    ]
    assert SOLVER.key.startswith("solve_mpi-")
    assert command.limit_seconds == 3 * 120


def test_headers_are_named_from_the_folder_on_where_a_program_says_so() -> None:
    (command,) = commands_of(replace(SOLVER, include_folder=True))
    (flag,) = (str(word) for word in command.argv if str(word).startswith("-I"))
    assert flag.endswith("flowos/solver/native")
    assert not SOLVER.include_flags


def test_the_key_changes_with_the_other_sources() -> None:
    fewer = replace(SOLVER, also=("base/exact_sum.cpp",))
    assert fewer.key != SOLVER.key
