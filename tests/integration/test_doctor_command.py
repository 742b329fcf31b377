"""`flowos doctor` as a person calls it, on this machine and on one without a compiler."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.cli import main
from flowos.cli.doctor import lines_of, signs
from flowos.engine import here
from flowos.model import Facts, from_plain
from flowos.operations.doctor import compiler_checks, engine_checks, language_checks, tool_checks
from flowos.probes import probes_for
from flowos.probes.facts import read_facts
from tests.integration.conftest import called_here


@pytest.fixture(scope="module")
def answered() -> subprocess.CompletedProcess[str]:
    """`flowos doctor --json`; flowos-init has been compiled, as it is in the wheel."""
    return called_here(["doctor", "--json"], Path.cwd(), dict(os.environ))


@pytest.fixture
def without_compilers(
    answered: object,  # noqa: ARG001 - before
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PATH leads to nothing, as on a machine where only Python was installed."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_this_machine_can_measure_and_every_probe_answers(
    answered: "subprocess.CompletedProcess[str]",
) -> None:
    assert answered.returncode == 0
    answer = json.loads(answered.stdout)
    assert answer["can_measure"] is True
    asked = [check["name"] for check in answer["checks"] if check["group"] == "measure"]
    assert asked == [probe.name for probe in probes_for() if not probe.info.asked]
    assert from_plain(Facts, answer["facts"]).allowed == tuple(sorted(os.sched_getaffinity(0)))


def test_the_table_fits_80_columns_and_names_every_check(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert lines[-1] == "flowos measure can run."
    for name in ("stream", "C compiler", "direct I/O"):
        assert [line for line in lines if f" {name} " in line]


def test_what_is_to_be_measured_anew_on_a_node_of_a_pool_is_so_there(
    answered: "subprocess.CompletedProcess[str]",
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    (tmp_path / "flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')

    def commands(said: str) -> list[str]:
        missing = json.loads(said)["facts"]["missing"]
        return [m["remedy"] for m in missing if m["remedy"].startswith("flowos measure ")]

    if not (here := commands(answered.stdout)):
        pytest.skip("this machine says all that is asked of it")
    assert main(["doctor", "--pool", "two", "--json"]) in (0, 1)
    assert commands(capsys.readouterr().out) == [f"{each} --pool two --nodes 1" for each in here]


@pytest.mark.usefixtures("without_compilers")
def test_without_a_compiler_the_exit_code_is_1_and_the_command_that_mends_it_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("flowos measure cannot run yet")
    assert "nothing can be measured" in out
    assert "gcc" in out


def test_a_home_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("gcc", "as", "ld"):  # without a home all that is found is tried each time
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", "/dev/null")  # root may write the others
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert main(["doctor", "--json"]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["C compiler"]["works"]
    cache = checks["cache folder"]
    assert cache["says"] == (
        "/dev/null/.cache/flowos cannot be written: no program that measures can be compiled"
    )
    assert "XDG_CACHE_HOME" in cache["remedy"]
    assert main(["list"]) == 0
    assert capsys.readouterr().out.startswith("no run is kept yet")


def test_a_scratch_folder_that_is_not_there_is_one_clear_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--scratch", "/absent/folder"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "no such folder" in said.err
    assert len(said.err.splitlines()) == 1


def test_a_terminal_without_utf_8_gets_plain_letters() -> None:
    words = [sys.executable, "-m", "flowos", "doctor"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, capture_output=True, env=environment, check=True)
    assert done.stdout.isascii()
    assert b"  ok C compiler" in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no-such-encoding", None])
def test_signs_are_plain_where_the_encoding_has_no_others(encoding: str | None) -> None:
    assert signs(encoding) == ("ok", "no", "->")


def test_signs_are_drawn_where_they_can_be() -> None:
    assert signs("utf-8") == ("✓", "✗", "→")


def test_long_names_stand_on_a_line_of_their_own() -> None:
    from flowos.operations.doctor import Diagnosis
    from flowos.probes.doctor import Check

    path = "/opt/a/long/folder/bin/mpicc"
    checks = (Check(group="use", name=path, works=False, says="left out", remedy="mend it"),)
    diagnosis = Diagnosis(facts=read_facts({}), checks=checks, can_measure=True)
    lines = list(lines_of(diagnosis, "ascii"))
    at = lines.index(f"  no {path}")
    assert [line.strip() for line in lines[at + 1 : at + 3]] == ["left out", "-> mend it"]


def test_a_session_that_nobody_here_can_judge_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Left by a killed process of another pid namespace, as of a container that shares /tmp."""
    left = here().folder().parent / f"left-{os.getpid()}"
    (left / "0").mkdir(parents=True)
    try:
        (left / "0/started.0").write_text("1 2 1 1 0")
        assert main(["doctor"]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert f"{left} is left alone: its process is gone, but what that began may run on" in out
        assert f"if nothing of it runs any more: rm -r {left}" in out
    finally:
        shutil.rmtree(left)


@pytest.mark.parametrize("width", [80, 60])
def test_a_machine_of_a_long_name_fits_too(width: int) -> None:
    from flowos.operations._extras import extras
    from flowos.operations.doctor import Diagnosis
    from flowos.probes.doctor import Check

    facts = replace(read_facts({}), cpu_model="Processor (R) of some name " * 3, kernel="6.18-a-b")
    says = "of what was found, and it is long enough for two lines " * 2
    checks = (*extras(), Check(group="use", name="a name of it", works=True, says=says))
    shown = lines_of(Diagnosis(facts=facts, checks=checks, can_measure=True), "utf-8", width)
    assert width - 10 < max(map(len, shown)) <= width


def test_what_runs_kernels_is_named_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    node = replace(here().facts(), gpus=("0",))
    opencl, cuda = engine_checks(node)
    assert (opencl.works, cuda.works) == (True, True)
    assert opencl.says.startswith("opencl-pocl-0 (")
    assert cuda.says.startswith("NVRTC 1")
    assert len(list(engine_checks(replace(node, gpus=())))) == 1
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    for check in engine_checks(node):
        assert not check.works
        assert check.says.startswith(f"tasks of fo.{check.name.lower()} do not run: ")
        assert check.remedy == f"pip install 'flowos-hpc[{check.name.lower()}]'"


def test_what_runs_bodies_in_r_and_julia_is_named_and_where_one_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    r, julia = language_checks()
    assert (r.says, r.remedy) == ("there is no Rscript", "as root: apt-get install r-base-core")
    assert julia.name == "bodies in Julia"
    assert julia.says == "there is no julia"
    assert julia.remedy.endswith("https://julialang.org/downloads")
    for name in ("Rscript", "julia"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert [each.says for each in language_checks()] == ["run by Rscript", "run by julia"]
    assert all(each.works and not each.remedy for each in language_checks())


def test_what_compiles_bodies_and_finds_devices_is_named_and_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CXX", "FC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = {
        check.name: (check.says, check.remedy) for check in (*compiler_checks(), *tool_checks())
    }
    assert told == {
        "bodies in C++": (
            "there is no C++ compiler",
            "as root: apt-get install g++, or name one in CXX",
        ),
        "bodies in Fortran": (
            "there is no Fortran compiler",
            "as root: apt-get install gfortran, or name one in FC",
        ),
        "OpenCL devices": (
            "not listed: there is no clinfo",
            "as root: apt-get install clinfo",
        ),
        "boards with FPGAs": (
            "not found and loaded: there is no openFPGALoader",
            "as root: apt-get install openfpgaloader",
        ),
    }
    for name in ("g++", "gfortran", "clinfo", "openFPGALoader"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = (*compiler_checks(), *tool_checks())
    assert all(each.works and not each.remedy for each in found)
    assert [each.says for each in found] == [
        f"compiled by {tmp_path}/g++",
        f"compiled by {tmp_path}/gfortran",
        "listed by clinfo",
        "found and loaded by openFPGALoader",
    ]


def test_doctor_says_what_compiles_bodies_and_finds_devices(
    answered: "subprocess.CompletedProcess[str]",
) -> None:
    names = {check["name"] for check in json.loads(answered.stdout)["checks"]}
    assert {"bodies in C++", "bodies in Fortran", "OpenCL devices", "boards with FPGAs"} <= names
