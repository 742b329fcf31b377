"""Files that are written together are there whole, or those from before stay."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flowos.operations._files import write_together


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def held(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


def test_files_are_made_with_their_folder(tmp_path: Path) -> None:
    made = write_together(tmp_path / "a/b", {"x": "1", "y": "ü"})
    assert made == (tmp_path / "a/b/x", tmp_path / "a/b/y")
    assert held(tmp_path / "a/b") == {"x": "1", "y": "ü"}


def test_where_one_cannot_be_written_all_of_before_stay_and_nothing_is_left(tmp_path: Path) -> None:
    before = {"x": "old", "y": "old"}
    write_together(tmp_path, before)
    with files_of_at_most(1000), pytest.raises(OSError, match="File too large"):
        write_together(tmp_path, {"x": "new", "y": "n" * 2000})
    assert held(tmp_path) == before
