"""Names of images are links in the library: no database is asked for them."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from flowos.model import EnvironmentRefused
from flowos.operations import image
from flowos.operations.environment import environment
from flowos.store import open_store

from .sources import written_root

OLD = Path(__file__).parents[2] / "data/store/schema-3.db"
"""The names fio and second of a1a1..., other.sqfs of b2b2..., gone of c3c3..."""


@pytest.fixture
def made(tmp_path: Path) -> image.MadeImage:
    return image.import_image(str(written_root(tmp_path / "fio")))


@pytest.fixture
def old(library: Path) -> Path:
    """What a FlowOS with schema 3 left, but the image c3c3..."""
    library.mkdir(parents=True)
    for digit in ("a1", "b2"):
        (library / f"{digit * 32}.sqfs").write_text(digit)
    shutil.copy(OLD, library.with_name("flowos.db"))
    return library


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "call",
    [
        "main(['image', 'ls'])",
        "main(['image', 'verify', 'fio'])",
        "main(['image', 'export', 'fio', 'fio.sqfs'])",
        "main(['image', 'rm', 'fio'])",
        "print(environment('fio'))",
    ],
)
def test_a_name_costs_no_database(call: str, library: Path, tmp_path: Path) -> None:
    library.with_name("flowos.db").write_text("this is none")
    code = f"""
import sys
from flowos.operations.environment import environment
from flowos.cli import main
sys.exit({call} or 'sqlite3' in sys.modules)
"""
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path / "room", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("call", [image.find, environment])
def test_a_name_is_one_link_however_many_images_there_are(
    call: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(folder: Path) -> Iterator[Path]:
        pytest.fail(f"{folder} is listed")

    monkeypatch.setattr(Path, "iterdir", listed)
    assert call("fio")


def test_a_library_that_is_moved_keeps_its_names(
    made: image.MadeImage, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    assert image.find("fio") == tmp_path / "elsewhere/flowos/images" / made.path.name
    assert not library.exists()


def test_what_else_lies_in_the_library_is_no_name(made: image.MadeImage, library: Path) -> None:
    (library / "outside").symlink_to("/etc/passwd")
    (library / "above").symlink_to(f"../images/{made.path.name}")
    (library / "notes").write_text("Dear Ada")
    assert [listed.name for listed in image.images()] == ["fio"]
    for word in ("outside", "above", "notes"):
        with pytest.raises(EnvironmentRefused, match=r"no image is called .*; known are fio"):
            image.find(word)


def test_names_of_an_older_store_become_links_where_their_image_is_here(old: Path) -> None:
    assert image.find("fio") == image.find("second") == old / f"{'a1' * 32}.sqfs"
    assert image.find("other") == old / f"{'b2' * 32}.sqfs"
    assert {listed.name for listed in image.images()} == {"fio", "second", "other"}
    with open_store() as store:
        kept = store.image(f"sha256:{'a1' * 32}")
    assert kept
    assert kept.source == "/home/ada/fio"


def test_a_name_that_was_taken_over_and_dropped_does_not_come_back(old: Path) -> None:
    image.remove_image("fio")
    image.remove_image("second")
    image.remove_image("other")
    (old / f"{'a1' * 32}.sqfs").write_text("again")
    assert [listed.name for listed in image.images()] == [""]


def test_a_new_image_does_not_hide_names_of_an_older_store(old: Path, tmp_path: Path) -> None:
    image.import_image(str(written_root(tmp_path / "fio")))
    assert {listed.name for listed in image.images()} == {"fio", "second", "other"}
    assert image.find("fio") != image.find("second") == old / f"{'a1' * 32}.sqfs"


def test_an_older_store_that_cannot_be_read_is_told_in_one_line(old: Path) -> None:
    with sqlite3.connect(old.with_name("flowos.db")) as raw:
        raw.execute("UPDATE flowos_schema SET number = 99")
    raw.close()
    words = [sys.executable, "-m", "flowos", "image", "ls"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert "was made by a newer FlowOS (schema 99" in done.stderr
    assert done.stderr.count("\n") == 1


def meanwhile(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch, within: str) -> Thread:
    """A thread that acts when this function is called, and gets half a second for it."""
    thread = Thread(target=act)
    module, _, name = within.rpartition(".")
    real = getattr(import_module(module), name)

    def called(*words: Any) -> Any:
        if not thread.ident:
            thread.start()
            thread.join(0.5)
        return real(*words)

    monkeypatch.setattr(within, called)
    return thread


def test_an_image_that_is_removed_while_it_is_made_again_leaves_no_name_behind(
    made: image.MadeImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_of_it = made.image.digest
    removing = meanwhile(
        lambda: image.remove_image(name_of_it),
        monkeypatch,
        "flowos.operations._images._library.give_name",
    )
    image.import_image(str(tmp_path / "fio"), name="again")
    removing.join()
    assert all(listed.path for listed in image.images())


def test_an_image_that_is_made_again_while_it_is_removed_is_there_under_its_name(
    made: image.MadeImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = meanwhile(
        lambda: image.import_image(str(tmp_path / "fio"), name="again"),
        monkeypatch,
        "flowos.operations._images._names.drop_name",
    )
    image.remove_image("fio")
    making.join()
    assert image.find("again") == made.path
    assert image.verify("again").ok
