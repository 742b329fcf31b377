"""Where the program of a language is missing, or does not start."""

import os
from pathlib import Path

import pytest

from flowos.engine.bodies import _language_process
from tests.integration.engines.languages import BODIES, X, failure

MISSING = {
    "r": "there is no Rscript: apt-get install r-base-core",
    "julia": "there is no julia: see https://julialang.org/downloads",
}
PROGRAMS = {"r": ("Rscript", "R"), "julia": ("julia", "Julia")}


@pytest.fixture(autouse=True)
def no_idle_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_language_process, "_idle", [])


@pytest.mark.parametrize("language", BODIES)
def test_without_its_program_the_remedy_is_named(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert MISSING[language] in failure(BODIES[language]("x"), X)


@pytest.mark.parametrize("language", BODIES)
def test_a_start_that_fails_names_no_file_of_python(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, called = PROGRAMS[language]
    program = tmp_path / name
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    said = failure(BODIES[language]("x"), X)
    assert f"{called} did not start: it exited with code 3" in said
    assert ".py" not in said
