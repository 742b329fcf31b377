"""A folder on storage that is measured on another node: shared, or of that node alone."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, cast

import pytest

from flowos.engine import Node, here
from flowos.model import BARE, Facts, Launch, MeasurementRequest, UsageError
from flowos.operations._scratch import scratch_on
from flowos.operations.measure._prepare import ready_run

NOWHERE = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)


class Apart:
    """This machine as another node; what is called there as `folder` lies elsewhere."""

    is_here = False
    name = "n1"

    def __init__(self, folder: Path, there: Path, others: Sequence[Node] = ()) -> None:
        self._folder, self._there, self._others = str(folder), str(there), tuple(others)

    def neighbours(self) -> tuple[Node, ...]:
        return self._others

    def variables(self, _: object) -> tuple[tuple[str, str], ...]:
        return here().variables(BARE)

    def run(self, launch: Launch) -> Any:
        words = " ".join(launch.argv).replace(self._folder, self._there)
        return here().run(Launch(argv=("sh", "-c", words), variables=launch.variables))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    ours, there = tmp_path / "ours", tmp_path / "there"
    ours.mkdir()
    there.mkdir()
    return ours, there


def node(ours: Path, there: Path, others: Sequence[Node] = ()) -> Node:
    return cast(Node, Apart(ours, there, others))


def test_a_folder_that_the_node_sees_is_made_here_and_removed(folders: tuple[Path, Path]) -> None:
    ours, _ = folders
    with scratch_on(node(ours, ours), ours) as scratch:
        (made,) = ours.iterdir()
        assert scratch.path == str(made)
        (made / "data").write_text("x")
        scratch.empty()
        assert [*made.iterdir()] == []
    assert [*ours.iterdir()] == []


def test_one_that_it_does_not_see_is_made_there_and_removed(folders: tuple[Path, Path]) -> None:
    ours, there = folders
    with scratch_on(node(ours, there), ours) as scratch:
        (made,) = there.iterdir()
        assert made.name == Path(scratch.path).name.replace(str(ours), str(there))
        (made / "data").write_text("x")
        scratch.empty()
        assert [*made.iterdir()] == []
    assert [*there.iterdir()] == []
    assert [*ours.iterdir()] == []


def test_one_that_is_not_even_here_is_made_there(folders: tuple[Path, Path]) -> None:
    ours, there = folders
    ours.rmdir()
    with scratch_on(node(ours, there), ours):
        assert len([*there.iterdir()]) == 1
    there.rmdir()
    says = r"^node n1: no folder can be made in .*ours \(mktemp: .*\): give another with --scratch$"
    with pytest.raises(UsageError, match=says), scratch_on(node(ours, there), ours):
        pytest.fail("there is none")


def test_several_nodes_have_to_share_it(folders: tuple[Path, Path]) -> None:
    ours, there = folders
    other = node(ours, there)
    says = "^node n1 does not see .*ours: give a folder that all nodes see with --scratch$"
    with pytest.raises(UsageError, match=says), scratch_on(node(ours, ours, [other]), ours):
        pytest.fail("one does not see it")
    assert [*ours.iterdir()] == []


def test_one_that_cannot_be_removed_stays(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that turned read-only meanwhile: what was measured counts."""
    ours, _ = folders

    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    with scratch_on(here(), ours):
        monkeypatch.setattr("os.rmdir", refused)
        monkeypatch.setattr("os.unlink", refused)
    monkeypatch.undo()
    assert len([*ours.iterdir()]) == 1


def test_own_storage_that_a_pool_names_is_that_of_a_node_as_it_is(tmp_path: Path) -> None:
    """Images do not see it, so that several environments have the usual one."""
    request = MeasurementRequest(probes=("training",), scratch=tmp_path)
    bare = ("bare", BARE)
    for asked, own in (((bare,), "/local"), ((bare, ("also", BARE)), "/var/tmp")):
        with ready_run(request, NOWHERE, here(), asked, lambda _: None, PurePath("/local")) as run:
            assert {str(place.own_storage) for place in run.places} == {own}
