"""Marks of files, and how they are copied."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flowos.engine import file_digest
from flowos.engine.cluster.files_there import (
    OTHER,
    _is_in_memory,
    _known,
    copy_to,
    digests_of,
    mark_of,
)


def test_digests_are_of_the_program_and_of_words_that_are_files_as_they_are_now(
    tmp_path: Path,
) -> None:
    tool, data = tmp_path / "tool", tmp_path / "data"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    for text in ("one", "three"):
        data.write_text(text)
        words = "\0".join(["tool", "data", str(data), str(tmp_path), f"{data}.gone"])
        found = digests_of(words, str(tmp_path)).split()
        assert found == [file_digest(each).hex() for each in (tool, data)]
    assert digests_of("tool", "/none") == ""
    assert digests_of(str(data), "") == digests_of(f"none\0{data}", "")


@pytest.mark.parametrize("later", [0.0, 60.0])
def test_a_file_of_equal_size_and_time_has_the_digest_of_what_it_holds_now(
    tmp_path: Path, later: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """later: so many seconds after it was written it is looked at."""
    now = time.time
    monkeypatch.setattr("flowos.engine.cluster.files_there.time.time", lambda: now() + later)
    data = tmp_path / "data"
    for text in ("aaaa", "bbbb", "cccc"):
        data.write_text(text)
        os.utime(data, (1, 1))
        for _ in range(2):
            assert digests_of(f"none\0{data}", "") == file_digest(data).hex()


def test_what_is_remembered_of_a_file_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data := tmp_path / "data").write_text("data")
    words, now = f"none\0{data}", time.time
    monkeypatch.setattr("flowos.engine.cluster.files_there._is_in_memory", lambda _: False)
    before, hits = digests_of(words, ""), _known.cache_info().hits
    monkeypatch.setattr("flowos.engine.cluster.files_there.time.time", lambda: now() + 60)
    assert [digests_of(words, "") for _ in range(2)] == [before] * 2
    assert _known.cache_info().hits == hits + 1


def test_a_file_in_memory_is_read_each_time() -> None:
    assert _is_in_memory(Path("/dev/shm").stat().st_dev)
    assert not _is_in_memory(Path("/proc").stat().st_dev)


def test_why_a_file_cannot_be_read_is_said() -> None:
    assert digests_of("none\0/proc/self/mem", "") == "![Errno 5] Input/output error"


def test_a_file_that_has_changed_or_is_gone_has_another_mark(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("same")
    marks = [mark_of(str(file))]
    os.utime(file, ns=(1, 1))
    marks.append(mark_of(str(file)))
    file.write_text("longer")
    os.utime(file, ns=(1, 1))
    marks.append(mark_of(str(file)))
    file.unlink()
    marks.append(mark_of(str(file)))
    assert len(set(marks)) == 4
    assert marks[-1] == ""


def _write(folder: Path) -> None:
    (folder / "in/file").write_text("longer")


def _link(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("elsewhere")


def _move(folder: Path) -> None:
    (folder / "in/file").rename(folder / "file")


@pytest.mark.parametrize("change", [_write, _link, _move])
def test_a_folder_in_which_something_has_changed_has_another_mark(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/file").write_text("one")
    (tmp_path / "link").symlink_to("nowhere")
    before = mark_of(str(tmp_path))
    assert mark_of(str(tmp_path)) == before
    change(tmp_path)
    assert mark_of(str(tmp_path)) != before


def test_what_is_no_file_is_another_thing() -> None:
    assert mark_of("/dev/null") == OTHER


def test_copies_keep_their_mark(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/file").write_text("one")
    for name in ("in", "in/file"):
        to = tmp_path / "copy" / Path(name).name
        to.parent.mkdir(exist_ok=True)
        assert copy_to(str(tmp_path / name), str(to)) == ""
        assert mark_of(str(to)) == mark_of(str(tmp_path / name))


def test_what_cannot_be_copied_is_said(tmp_path: Path) -> None:
    assert copy_to(str(tmp_path / "none"), str(tmp_path / "to")) == "No such file or directory"
