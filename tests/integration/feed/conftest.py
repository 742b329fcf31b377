"""A small data set of real files, and a place for what is cached of it."""

from pathlib import Path

import pytest

from .shared import make_folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """100 samples in four classes."""
    make_folder(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
