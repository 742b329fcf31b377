"""Marks of files, and how they are copied."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from flowos.engine.cluster.files_there import OTHER, copy_to, digests_of, mark_of
from flowos.engine.results._file_digest import file_digest


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
