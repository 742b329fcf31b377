"""A library, a store and room for work of its own for each test."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty image library for the test, apart from the user's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "room"))
    (tmp_path / "room").mkdir()
    return tmp_path / "data/flowos/images"


@pytest.fixture
def variables(library: Path) -> dict[str, str]:  # noqa: ARG001 - it sets them
    return dict(os.environ)


def left(folder: Path) -> set[str]:
    """What lies below, but for folders alone and the store."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.name for path in found if not path.name.startswith(("flowos.db", ".lock"))}
