"""A small data set of real files, and a place for what is cached of it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .object_store import BadRoad, ObjectStore, set_variables
from .shared import make_folder


@pytest.fixture(autouse=True)
def no_cache_stays(tmp_path: Path) -> Iterator[None]:
    """A cache has 256 MiB at least: those of all tests would fill a small disk."""
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """100 samples in four classes."""
    make_folder(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    store = ObjectStore()
    yield store
    store.stop()


@pytest.fixture
def store(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    set_variables(monkeypatch, server.url)
    yield server
    server.forget_all()


@pytest.fixture
def road(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[BadRoad]:
    """The way to the store, which goes wrong where a test says so."""
    road = BadRoad(store)
    set_variables(monkeypatch, road.url)
    yield road
    road.stop()
