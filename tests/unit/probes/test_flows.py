"""The programs of probes as a flow: what is compiled, and what compiles it anew."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowos.model import Command, In, Out
from flowos.probes import Build, _build, flow_of_builds, program_of_task

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
        replace(BUILD, processor="avx2"),
    ]
    assert len({BUILD.key, *(b.key for b in others)}) == 5


SOLVER = Build(
    source="mpi/solve_mpi.cpp",
    also=("base/exact_sum.cpp", "matrix/generate.cpp"),
    folder="solver/native",
    compiler="mpicxx",
    libraries=("-ldl",),
)
SHARING = replace(SOLVER, also_compiler=("/usr/bin/g++", "-g"), also_version="12.2.0")


def written(command: Command) -> str:
    """The file's name in the cache, and the last part of each word."""
    named = (w.name if isinstance(w, In | Out) else str(w).rpartition("/")[2] for w in command.argv)
    assert command.once
    return " ".join((command.once.rpartition("-")[0], "=", *named))


def test_each_source_is_compiled_by_itself_the_programs_own_first() -> None:
    assert [written(command) for command in commands_of(SOLVER)] == [
        "solve_mpi = mpicxx -O2 -c solve_mpi.cpp -o object.o",
        "exact_sum = mpicxx -O2 -c exact_sum.cpp -o object.o",
        "generate = mpicxx -O2 -c generate.cpp -o object.o",
        "solve_mpi = mpicxx -O2 object 1 object 2 object 3 -o binary -ldl",
    ]
    assert {command.limit_seconds for command in commands_of(SOLVER)} == {120.0}
    assert SOLVER.key.startswith("solve_mpi-")


def test_a_compiler_that_is_given_all_sources_has_time_for_each() -> None:
    assert SOLVER.limit_seconds == 360.0


def test_programs_share_the_objects_of_one_compiler_and_not_those_of_their_own() -> None:
    other = replace(SHARING, compiler="mpicxx.mpich")
    found = [written(command) for command in commands_of(SHARING, BUILD, other)]
    assert found == [
        "solve_mpi = mpicxx -O2 -c solve_mpi.cpp -o object.o",
        "solve_mpi = mpicxx.mpich -O2 -c solve_mpi.cpp -o object.o",
        "clock = gcc -O2 clock.c -o binary -lm",
        "exact_sum = g++ -g -O2 -c exact_sum.cpp -o object.o",
        "generate = g++ -g -O2 -c generate.cpp -o object.o",
        "solve_mpi = mpicxx -O2 object 1 object 2 object 3 -o binary -ldl",
        "solve_mpi = mpicxx.mpich -O2 object 1 object 2 object 3 -o binary -ldl",
    ]


def test_the_binaries_come_out_in_the_order_of_the_programs_and_name_their_tasks() -> None:
    flow = flow_of_builds([SHARING, BUILD, replace(SHARING, compiler="mpicxx.mpich")])
    assert flow is not None
    made = [port.call.task for port in flow.outputs if port.call]
    assert [task.name for task in made] == [
        f"build {SHARING.key}",
        f"build {BUILD.key}",
        f"build {replace(SHARING, compiler='mpicxx.mpich').key}",
    ]
    assert f"build {SHARING.key}: matrix/generate.cpp" in [call.task.name for call in flow.calls]
    of = [program_of_task(call.task.name) for call in flow.calls]
    assert set(of) == {program_of_task(task.name) for task in made}


def test_headers_are_named_from_the_folder_on_where_a_program_says_so() -> None:
    *compiled, _ = commands_of(replace(SOLVER, include_folder=True))
    for command in compiled:
        (flag,) = (str(word) for word in command.argv if str(word).startswith("-I"))
        assert flag.endswith("flowos/solver/native")
    assert not SOLVER.include_flags


def test_the_key_changes_with_the_other_sources() -> None:
    fewer = replace(SOLVER, also=("base/exact_sum.cpp",))
    assert fewer.key != SOLVER.key


def objects_of(build: Build) -> tuple[str, ...]:
    return tuple(each.key for each in build.objects)


@pytest.mark.parametrize(
    "change",
    [
        {"flags": ("-O3",)},
        {"also_compiler": ("/usr/bin/clang++",)},
        {"also_compiler": ("/usr/bin/g++",)},
        {"also_version": "13"},
        {"processor": "avx2"},
    ],
    ids=str,
)
def test_an_object_changes_with_what_it_is_compiled_by_and_for(
    change: dict[str, Any],
) -> None:
    other = replace(SHARING, **change)
    assert not set(objects_of(SHARING)[1:]) & set(objects_of(other)[1:])
    assert other.key != SHARING.key


def test_an_object_of_the_library_does_not_change_with_the_mpi() -> None:
    other = replace(SHARING, compiler="mpicxx.mpich", compiler_version="4.0", libraries=())
    assert objects_of(SHARING)[1:] == objects_of(other)[1:]
    assert objects_of(SHARING)[0] != objects_of(other)[0]


def test_without_a_compiler_of_their_own_the_other_sources_are_compiled_as_the_first() -> None:
    other = replace(SOLVER, compiler_version="4.1.5")
    assert not set(objects_of(SOLVER)) & set(objects_of(other))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a program of two sources."""
    for name in ("own/a.cpp", "own/a.h", "lib/b.cpp", "lib/b.h", "lib/deep/c.h", "lib/notes.txt"):
        file = tmp_path / "programs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"// {name}\n")
    monkeypatch.setattr(_build, "files", lambda _: tmp_path)
    return tmp_path / "programs"


TWO = Build(source="own/a.cpp", also=("lib/b.cpp",), folder="programs", compiler="c++")


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("header", ["own/a.h", "lib/b.h", "lib/deep/c.h"])
def test_keys_change_with_headers_next_to_the_sources_or_all_in_the_folder(
    package: Path, header: str, *, below: bool
) -> None:
    build = replace(TWO, include_folder=below)
    before = build.key, objects_of(build)
    (package / "lib/notes.txt").write_text("changed")
    assert (build.key, objects_of(build)) == before
    (package / header).write_text("// changed")
    counts = below or "deep" not in header
    assert (build.key != before[0]) == counts
    assert bool(set(objects_of(build)) - set(before[1])) == counts


def test_a_source_that_changes_leaves_the_objects_of_the_others(package: Path) -> None:
    before = TWO.key, *objects_of(TWO)
    (package / "own/a.cpp").write_text("// changed")
    now = TWO.key, *objects_of(TWO)
    assert [a == b for a, b in zip(before, now, strict=True)] == [False, False, True]
