"""A library, a store and room for work of its own for each test."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where images go in this test, and nothing else of anybody's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "room"))
    (tmp_path / "room").mkdir()
    return tmp_path / "data/flowos/images"


@pytest.fixture
def flowos(tmp_path: Path) -> Flowos:
    """The command as a person calls it."""

    def call(*words: str | Path, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [sys.executable, "-m", "flowos", *map(str, words)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=dict(os.environ),
            timeout=300,
        )
        assert done.returncode == code, done.stderr
        return done

    return call


def left(folder: Path) -> set[str]:
    """What lies below, but for folders alone and the store."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.name for path in found if not path.name.startswith(("flowos.db", ".lock"))}
