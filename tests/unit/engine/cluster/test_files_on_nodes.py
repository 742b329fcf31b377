"""Which files of this machine a node sees under the same path, by what it says of them."""

import os
from pathlib import Path

import pytest

from flowos.engine import Here
from flowos.engine.cluster import files_there
from flowos.engine.cluster._node_files import NodeFiles, StagedFiles
from flowos.engine.environments._shared_copies import SharedCopies

TIME = (1_700_000_000, 1_700_000_000)
ASKED = {0: files_there.look_at, 1: files_there.copy_to, 4: files_there.digest_of}


class OwnTmp(NodeFiles):
    """Of a node that has a folder of its own where this machine has `here`."""

    def __init__(self, tmp_path: Path) -> None:
        self.here, self.there, shared = (tmp_path / name for name in ("here", "there", "shared"))
        for folder in (self.here, self.there, shared):
            folder.mkdir()
        super().__init__(Here("n1"), StagedFiles(shared, SharedCopies(lambda: shared)))
        self.asked: list[int] = []

    def _ask(self, number: int, *words: str) -> str:
        self.asked.append(number)
        moved = (word.replace(f"{self.here}/", f"{self.there}/") for word in words)
        return ASKED[number](*moved)  # type: ignore[operator, no-any-return]

    def both(self, name: str, here: str, there: str) -> Path:
        """A file with two contents, of one time of change."""
        for folder, text in ((self.here, here), (self.there, there)):
            (folder / name).write_text(text)
            os.utime(folder / name, TIME)
        return self.here / name


@pytest.fixture
def node(tmp_path: Path) -> OwnTmp:
    return OwnTmp(tmp_path)


def test_a_file_of_equal_size_and_time_but_other_content_is_copied(node: OwnTmp) -> None:
    file = node.both("mesh", "ours", "else")
    copy = node.stage_in(file, [])
    assert copy != file
    assert copy.read_text() == "ours"


def test_one_node_of_several_that_has_other_content_is_enough(node: OwnTmp, tmp_path: Path) -> None:
    (tmp_path / "n2").mkdir()
    other = OwnTmp(tmp_path / "n2")
    other.here = node.here
    file = node.both("mesh", "ours", "ours")
    (other.there / "mesh").write_text("else")
    os.utime(other.there / "mesh", TIME)
    assert node.stage_in(file, []) == file
    assert node.stage_in(file, [other]).read_text() == "ours"
    assert node.stage_in(file, [other]) != file


def test_a_copy_with_all_of_it_is_seen_and_read_once(node: OwnTmp) -> None:
    file = node.both("mesh", "ours", "ours")
    assert [node.stage_in(file, []) for _ in range(3)] == [file] * 3
    assert node.asked == [0, 4]


def test_what_replaces_a_file_with_equal_size_and_time_is_asked_about_anew(node: OwnTmp) -> None:
    file = node.both("mesh", "ours", "ours")
    assert node.stage_in(file, []) == file
    file.write_text("new!")
    os.utime(file, TIME)
    assert node.stage_in(file, []).read_text() == "new!"


def test_the_same_file_is_seen_unread(node: OwnTmp) -> None:
    (node.here / "data").write_text("large")
    os.link(node.here / "data", node.there / "data")
    assert node.stage_in(node.here / "data", []) == node.here / "data"
    assert node.asked == [0]


def test_a_place_in_whole_seconds_tells_no_file_from_another(
    node: OwnTmp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two images of a file system have files of equal numbers and times."""
    monkeypatch.setattr(files_there, "_SECOND_NS", 1)
    assert files_there.look_at(str(file := node.both("mesh", "ours", "else"))).endswith("|")
    assert node.stage_in(file, []) != file


@pytest.mark.parametrize("there", [None, "longer", "later"])
def test_a_file_that_is_not_there_or_has_another_size_or_time_is_copied_unread(
    node: OwnTmp, there: str | None
) -> None:
    file = node.both("mesh", "later", there or "")
    if there is None:
        (node.there / "mesh").unlink()
    elif there == "later":
        os.utime(node.there / "mesh", (1, 1))
    assert node.stage_in(file, []).read_text() == "later"
    assert node.asked == [0]


def test_a_folder_is_seen_by_sizes_and_times_of_all_in_it(node: OwnTmp) -> None:
    for folder in (node.here, node.there):
        (folder / "case").mkdir()
    node.both("case/mesh", "ours", "ours")
    assert node.stage_in(node.here / "case", []) == node.here / "case"
    os.utime(node.there / "case/mesh", (1, 1))
    (node.here / "case/more").touch()
    assert node.stage_in(node.here / "case", []) != node.here / "case"


def test_what_cannot_be_read_has_no_digest(node: OwnTmp) -> None:
    assert files_there.digest_of(str(node.there / "none")) == ""


def test_what_a_node_has_with_other_content_is_brought_and_what_is_here_stays(
    node: OwnTmp,
) -> None:
    same, other = node.both("same", "ours", "ours"), node.both("other", "ours", "else")
    before = same.stat().st_ino
    assert [node.stage_out(same), node.stage_out(other)] == [same, other]
    assert (same.stat().st_ino, other.read_text()) == (before, "else")
    assert node.stage_out(node.here / "none") is None
