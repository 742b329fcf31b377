"""Digests of files and folders: what makes another one, and what is remembered."""

import mmap
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from flowos.engine import NoDigest, file_digest
from flowos.engine.results import _file_digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    (made / "inner").mkdir(parents=True)
    (made / "inner/file").write_text("1")
    return made


def test_a_folder_changes_with_what_a_link_out_of_it_leads_to(folder: Path) -> None:
    outside = folder.with_name("outside")
    outside.mkdir()
    (outside / "data").write_text("1")
    (folder / "file").symlink_to("../outside/data")
    (folder / "inner/all").symlink_to(outside)
    seen = [file_digest(folder)]
    (outside / "data").write_text("22")
    seen.append(file_digest(folder))
    (outside / "more").write_text("")
    seen.append(file_digest(folder))
    assert len(set(seen)) == 3
    assert file_digest(folder) == seen[-1]


def test_links_in_a_circle_and_to_nothing_have_a_digest(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    for link, to in (
        (folder / "up", ".."),
        (folder / "self", "self"),
        (folder / "gone", "nothing"),
        (folder / "inner/other", other),
        (other / "back", folder),
        (other / "again", other),
    ):
        link.symlink_to(to)
    first = file_digest(folder)
    (folder / "gone").unlink()
    (folder / "gone").symlink_to("nothing else")
    assert file_digest(folder) != first


def test_a_link_to_a_device_has_none(folder: Path) -> None:
    (folder / "device").symlink_to("/dev/null")
    with pytest.raises(NoDigest, match="no regular file"):
        file_digest(folder)


def test_a_file_in_memory_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written through a mapping moves no time there."""
    monkeypatch.setattr(_file_digest, "_YOUNG_SECONDS", -1.0)
    with TemporaryDirectory(dir="/dev/shm") as name:
        file = Path(name) / "data"
        file.write_bytes(bytes(100))
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 100) as mapped:
            mapped[0] = 1  # the first one moves it
            first, before = file_digest(file), file.stat().st_mtime_ns
            mapped[1] = 1
            assert file.stat().st_mtime_ns == before
            assert file_digest(file) != first
