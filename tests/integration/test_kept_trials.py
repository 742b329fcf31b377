"""A compiler that worked is not tried again, until anything is another that it took."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos._user_folders import cache_folder
from flowos.engine import here
from flowos.model import Facts, Launch, MeasurementRequest
from flowos.operations._facts import facts, facts_on
from flowos.probes.facts import read_facts

PROGRAMS = Path(read_facts.__code__.co_filename).parent / "programs"


class Compiler:
    """gcc with its own assembler, linker, header and library; counts its calls."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch
        self.path, self.calls = folder / "gcc", folder / "calls"
        gcc = shutil.which("gcc") or "gcc"
        for place in ("bin", "include", "lib"):
            (folder / place).mkdir()
        for name in ("as", "ld"):
            (folder / "bin" / name).symlink_to(shutil.which(name) or name)
        for name, place in (("include/omp.h", "include"), ("libgomp.so", "lib")):
            said = subprocess.run([gcc, f"-print-file-name={name}"], capture_output=True, text=True)
            shutil.copy(said.stdout.strip(), folder / place)
        options = f"-B{folder}/bin/ -isystem {folder}/include -L{folder}/lib"
        self.calls.touch()
        self.write(f'echo >>{self.calls}\nexec {gcc} {options} "$@"')

    def write(self, body: str) -> None:
        self.path.write_text(f"#!/bin/sh\n{body}\n")
        self.path.chmod(0o755)

    def tried(self, before: object = None) -> tuple[dict[str, Any], Any, bool]:
        """What is known of it, what is kept of that, and whether it was called."""
        import collect_software as collect
        from kept_trials import KeptTrials

        calls = len(self.calls.read_text())
        kept = KeptTrials(json.loads(json.dumps(before)))
        answer = kept.answer("gcc", lambda: collect.compiler(self.path, "c", self.scratch))
        return answer, kept.plain(), len(self.calls.read_text()) > calls


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    monkeypatch.syspath_prepend(PROGRAMS)
    for name in ("compiler", "scratch"):
        (tmp_path / name).mkdir()
    made = Compiler(tmp_path / "compiler", tmp_path / "scratch")
    import program_output

    monkeypatch.setattr(program_output, "ENDS_AT", float("inf"))
    return made


def test_what_worked_is_not_tried_again(compiler: Compiler) -> None:
    first, kept, called = compiler.tried()
    assert (first["fails"], first["openmp"], called) == ("", True, True)
    again, still_kept, called = compiler.tried(kept)
    assert (again, still_kept, called) == (first, kept, False)


@pytest.mark.parametrize(
    ("part", "still_builds"),
    [("bin/as", False), ("include/omp.h", True), ("lib/libgomp.so", True), ("gcc", False)],
)
def test_a_compiler_that_broke_is_found(compiler: Compiler, part: str, still_builds: bool) -> None:
    _, kept, _ = compiler.tried()
    broken = compiler.folder / part
    broken.unlink()
    broken.write_text("#!/bin/sh\n#error of the test\nexit 1\n")
    broken.chmod(0o755)
    answer, kept, _ = compiler.tried(kept)
    assert (answer["fails"] == "", answer["openmp"]) == (still_builds, False)
    assert kept == {}


def test_what_fails_is_tried_each_time_so_that_what_is_mended_is_found(compiler: Compiler) -> None:
    header = compiler.folder / "include/omp.h"
    good = header.read_text()
    header.write_text("#error of the test\n")
    _, kept, _ = compiler.tried()
    assert compiler.tried(kept)[2]
    header.write_text(good)
    assert compiler.tried(kept)[0]["openmp"]


def test_openmp_that_is_not_there_is_found_where_it_comes_to_be(compiler: Compiler) -> None:
    """Clang without libomp is usual: each look would compile four programs for nothing."""
    header = compiler.folder / "include/omp.h"
    good = header.read_text()
    header.unlink()
    says = "fatal error: 'omp.h' file not found"
    lacks = f'case "$*" in *-fopenmp*) [ -e {header} ] || {{ echo "{says}" >&2; exit 1; }};; esac'
    compiler.write(f"{lacks}\n{compiler.path.read_text()}")
    answer, kept, _ = compiler.tried()
    assert (answer["fails"], answer["openmp"]) == ("", False)
    assert not compiler.tried(kept)[2]
    header.write_text(good)
    assert compiler.tried(kept)[0]["openmp"]


def test_it_is_tried_again_in_other_surroundings(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kept, _ = compiler.tried()
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    for name in ("JPY_PARENT_PID", "PYOPENCL_HOME", "MPLBACKEND"):  # of a notebook, of packages
        monkeypatch.setenv(name, "/elsewhere")
    assert not compiler.tried(kept)[2]
    monkeypatch.setenv("CPATH", "/elsewhere")
    assert compiler.tried(kept)[2]


@pytest.mark.parametrize("damage", ["all", 7, {"answer": "ok"}, {"answer": "ok", "files": {}}])
def test_what_is_damaged_does_not_count(compiler: Compiler, damage: object) -> None:
    first, kept, _ = compiler.tried()
    damaged = damage if damage == "all" else dict.fromkeys(kept, damage)
    assert compiler.tried(damaged) == (first, kept, True)


def test_the_trials_of_other_surroundings_stay(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kept, _ = compiler.tried()
    with monkeypatch.context() as other:
        other.setenv("CPATH", "/elsewhere")
        _, both, called = compiler.tried(kept)
        assert (len(both), called) == (2, True)
    assert compiler.tried(both)[2] is False


def of_a_pools_node() -> Facts:
    with fo.slice(pool="one") as s:
        (node,) = s.held.nodes
        return facts_on(node, MeasurementRequest(), ())


@pytest.mark.parametrize("look", [facts, of_a_pools_node])
def test_the_users_cache_folder_keeps_it(
    compiler: Compiler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    look: Callable[[], Facts],
) -> None:
    here().run(Launch(argv=("true",)))  # flowos-init has been compiled
    (tmp_path / "cache/flowos").mkdir(parents=True)
    (tmp_path / "cache/flowos/init").symlink_to(cache_folder() / "init")
    (tmp_path / "flowos.toml").write_text('[pools.one]\nkind = "fake"\n')
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (compiler.folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{compiler.folder}:{compiler.folder}/bin")
    first = look()
    assert compiler.path in [c.path for c in first.compilers]
    calls = compiler.calls.read_text()
    assert look().compilers == first.compilers
    assert compiler.calls.read_text() == calls


# --- tools -----------------------------------------------------------------------------------


class Tools:
    """fio, whose library says the version; perf, a script; xhpl, which is not run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.library = folder, folder / "libversion.so"
        self._before: dict[str, Any] | None = None
        self.version("fio-1.0")
        count = f'FILE *f = fopen("{folder}/fio-calls", "a"); fputs("x", f); fclose(f);'
        body = f"const char *version(void);\nint main(void) {{ {count} puts(version()); }}"
        self._compile(folder / "fio", f"#include <stdio.h>\n{body}", str(self.library))
        shutil.copy(folder / "fio", folder / "xhpl")
        (folder / "perf").write_text(f"#!/bin/sh\nprintf x >>{folder}/perf-calls\necho perf 6.1\n")
        (folder / "perf").chmod(0o755)
        (folder / "ldd").symlink_to(shutil.which("ldd") or "ldd")

    def _compile(self, made: Path, source: str, *words: str) -> None:
        made.unlink(missing_ok=True)
        command = ["gcc", "-x", "c", "-", "-x", "none", *words, "-o", str(made)]
        subprocess.run(command, input=source, text=True, check=True)

    def version(self, says: str) -> None:
        source = f'const char *version(void) {{ return "{says}"; }}'
        self._compile(self.library, source, "-shared", "-fPIC")

    def looked(self) -> tuple[dict[str, Any], bool]:
        """Its entries of these tools as the collector gives them, and whether it kept new ones."""
        words = [sys.executable, str(PROGRAMS / "collect_software.py"), "--kept"]
        done = subprocess.run(
            words,
            input=json.dumps(self._before),
            env={**os.environ, "PATH": str(self.folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        answer = json.loads(done.stdout)
        before, kept = self._kept, answer["kept"]
        self._before = self._before if kept is None else kept
        mine = {e["name"]: e for e in answer["tools"] if str(self.folder) in e["path"]}
        return mine, self._kept != before

    @property
    def _kept(self) -> dict[str, Any]:
        """Of these tools: others of the machine may be installed at any time."""
        return {key: each for key, each in (self._before or {}).items() if str(self.folder) in key}

    def calls(self, name: str) -> int:
        return len((self.folder / f"{name}-calls").read_text())


def test_a_tool_is_asked_again_if_it_or_its_library_is_another_and_a_script_always(
    tmp_path: Path,
) -> None:
    tools = Tools(tmp_path)
    first, new = tools.looked()
    assert new
    assert (first["fio"]["says"].strip(), first["fio"]["fails"]) == ("fio-1.0", "")
    assert "libversion.so" in first["xhpl"]["loads"]
    assert tools.looked() == (first, False)
    assert (tools.calls("fio"), tools.calls("perf")) == (1, 2)
    tools.version("fio-2.0")
    second, new = tools.looked()
    assert (second["fio"]["says"].strip(), new) == ("fio-2.0", True)
    tools.library.unlink()
    third, _ = tools.looked()
    assert "libversion.so" in third["fio"]["fails"]
    assert third["xhpl"]["fails"] == f"lacks {tools.library}"
    tools.version("fio-3.0")
    fourth, _ = tools.looked()
    assert (fourth["fio"]["says"].strip(), fourth["xhpl"]["fails"]) == ("fio-3.0", "")
