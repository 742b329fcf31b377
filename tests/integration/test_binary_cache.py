"""Programs that are compiled ahead: progress, what is shared and kept, errors."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, cast

import pytest

from flowos.engine import Node, here
from flowos.model import (
    BARE,
    Environment,
    Facts,
    FlowosError,
    Image,
    Launch,
    MeasureError,
    Progress,
)
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.operations.measure._environments import PreparedEnvironment, bare_on
from flowos.probes import Build, _build, best_compiler, built_by

SOURCES = {
    "mpi/main.c": '#include <stdio.h>\n#include "lib/answer.h"\n'
    'int main(void) { printf("%d of %s", answer() + more(), MPI); return 0; }',
    "lib/answer.c": '#include "lib/answer.h"\n'
    "#ifdef MPI\n#error the library knows the MPI\n#endif\nint answer(void) { return 40; }",
    "lib/more.c": "int more(void) { return 2; }",
    "lib/answer.h": "int answer(void);\nint more(void);",
}


CacheIn = Callable[[Path], BinaryCache]


@pytest.fixture
def cache_in(looked_once: Facts) -> CacheIn:
    return lambda folder: BinaryCache(bare_on(here(), looked_once, folder, folder))


def test_it_says_which_of_them_is_built_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_once: Facts, cache_in: CacheIn
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler = best_compiler(looked_once)
    assert compiler is not None
    build = built_by("nothing.c", compiler, ("-O0",))
    told: list[Progress] = []
    cache = cache_in(tmp_path)
    cache.build_ahead((build, replace(build, flags=("-O1",))), told.append)
    assert [each.doing for each in told] == ["building 1 of 2: nothing", "building 2 of 2: nothing"]


class Compilers:
    """A compiler and the wrappers of two MPIs around it; each notes what it is called with."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.plain = self._script(folder / "plaincc", 'cc "$@"')
        self.one = self._script(folder / "one-cc", 'cc \'-DMPI="one"\' "$@"')
        self.two = self._script(folder / "two-cc", 'cc \'-DMPI="two"\' "$@"')

    def _script(self, path: Path, command: str) -> str:
        path.write_text(f'#!/bin/sh\necho "{path.name} $*" >>{self.calls}\nexec {command}\n')
        path.chmod(0o755)
        return str(path)

    def called(self) -> list[str]:
        """Each call as the compiler and the source that it was given; of a link, the program."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        named = [(line.split()[0], [w for w in line.split() if w.endswith(".c")]) for line in lines]
        return sorted(f"{by} {PurePath(*given).name or 'links'}" for by, given in named)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program of three sources, in the package's place."""
    for name, text in SOURCES.items():
        file = tmp_path / "package/native" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    monkeypatch.setattr(_build, "files", lambda _: tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "package/native"


@pytest.fixture
def compilers(tmp_path: Path) -> Compilers:
    return Compilers(tmp_path)


@pytest.fixture
def programs(sources: Path, compilers: Compilers) -> tuple[Build, Build]:
    """The same program by the wrappers of two MPIs."""
    assert sources.exists()
    first = Build(
        source="mpi/main.c",
        also=("lib/answer.c", "lib/more.c"),
        folder="native",
        include_folder=True,
        compiler=compilers.one,
        also_compiler=(compilers.plain,),
        also_version="12",
    )
    return first, replace(first, compiler=compilers.two)


def printed(binary: Path) -> str:
    return subprocess.run([binary], capture_output=True, text=True, check=True).stdout


ALL_CALLS = [
    *("one-cc links", "one-cc main.c", "plaincc answer.c", "plaincc more.c"),
    *("two-cc links", "two-cc main.c"),
]


def test_what_uses_no_mpi_is_compiled_once_for_all_of_them(
    tmp_path: Path, cache_in: CacheIn, programs: tuple[Build, Build], compilers: Compilers
) -> None:
    told: list[Progress] = []
    cache = cache_in(tmp_path)
    cache.build_ahead(programs, told.append)
    assert [printed(cache.built(build)) for build in programs] == ["42 of one", "42 of two"]
    assert compilers.called() == ALL_CALLS
    assert [each.doing for each in told] == ["building 1 of 2: main", "building 2 of 2: main"]


def test_a_program_that_is_asked_for_later_finds_the_objects_in_the_cache(
    tmp_path: Path,
    cache_in: CacheIn,
    programs: tuple[Build, Build],
    compilers: Compilers,
    sources: Path,
) -> None:
    for build in programs:
        cache_in(tmp_path).built(build)
    assert compilers.called() == ALL_CALLS
    (sources / "lib/more.c").write_text("int more(void) { return 3; }\n")
    assert printed(cache_in(tmp_path).built(programs[0])) == "43 of one"
    again = ["one-cc links", "plaincc more.c"]
    assert compilers.called() == sorted([*ALL_CALLS, *again])


def test_a_source_that_does_not_compile_is_one_message_and_tried_once_for_each_program(
    tmp_path: Path,
    cache_in: CacheIn,
    programs: tuple[Build, Build],
    compilers: Compilers,
    sources: Path,
) -> None:
    (sources / "lib/more.c").write_text("int more(void) { return }\n")
    cache = cache_in(tmp_path)
    for build in programs:
        for _ in range(2):
            with pytest.raises(FlowosError, match=r"^task 'build main-\w+: lib/more.c': ") as said:
                cache.built(build)
            assert "more.c:1:25: error: expected expression" in str(said.value)
            assert str(said.value).endswith("; given nothing")
    assert compilers.called().count("plaincc more.c") == 2
    assert not [call for call in compilers.called() if "links" in call]


class Elsewhere:
    """This machine as another node, where what is in an image starts without one."""

    is_here = False

    def __init__(self) -> None:
        self._here = here()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here, name)

    def prepare(self, launch: Launch, **options: Any) -> Any:
        return self._here.prepare(replace(launch, env=BARE), **options)


@pytest.fixture(params=["node", "image"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, looked_once: Facts
) -> PreparedEnvironment:
    folder = tmp_path / "there"
    folder.mkdir()
    made = bare_on(cast(Node, Elsewhere()), looked_once, folder, tmp_path)
    image = Image(form="folder", digest="sha256:0", source=PurePath("/image"))
    env = Environment(image=image, runtime="bwrap") if request.param == "image" else made.env
    return replace(made, env=env)


def test_on_another_node_and_in_an_image_sources_are_compiled_there_and_shared_too(
    place: PreparedEnvironment,
    programs: tuple[Build, Build],
    compilers: Compilers,
) -> None:
    cache = BinaryCache(place)
    for _ in range(2):
        made = [cache.built_in(place, build) for build in programs]
    assert [printed(binary) for binary in made] == ["42 of one", "42 of two"]
    assert {binary.parent for binary in made} == {place.folder}
    assert compilers.called() == ALL_CALLS


def test_there_a_source_that_does_not_compile_is_one_message_too(
    place: PreparedEnvironment,
    programs: tuple[Build, Build],
    compilers: Compilers,
    sources: Path,
) -> None:
    (sources / "mpi/main.c").write_text("#error no main\n")
    cache, says = BinaryCache(place), "^bare: mpi/main.c cannot be compiled: .*#error no main"
    for _ in range(2):
        with pytest.raises(MeasureError, match=says):
            cache.built_in(place, programs[0])
    assert compilers.called().count("one-cc main.c") == 1


def test_a_source_that_is_edited_while_it_is_compiled_gives_a_program(
    sources: Path, programs: tuple[Build, Build], tmp_path: Path, cache_in: CacheIn
) -> None:
    edits = tmp_path / "edits-cc"
    edits.write_text(
        f"#!/bin/sh\necho '/**/' >>{sources}/lib/answer.h\nexec {programs[0].compiler} \"$@\"\n"
    )
    edits.chmod(0o755)
    program = cache_in(tmp_path).built(replace(programs[0], compiler=str(edits)))
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"42 of one"
