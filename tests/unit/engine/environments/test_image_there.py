"""Where the node that is to enter an image finds it."""

import hashlib
import re
from pathlib import Path

import pytest

from flowos.engine.environments._image_there import Unseen, image_there
from flowos.model import EnvironmentRefused, Image

CONTENT = b"hsqs" + bytes(36) + (96).to_bytes(8, "little") + bytes(48)


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "image").write_bytes(CONTENT)
    return of(tmp_path / "image", CONTENT)


def of(path: Path, content: bytes) -> Image:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return Image(form="squashfs", digest=digest, source=path)


def test_it_is_entered_where_it_is_named(image: Image) -> None:
    assert image_there(image, "", "") == (image, (), False)


def test_a_copy_is_taken_for_one_that_is_not_there(image: Image, tmp_path: Path) -> None:
    gone = of(tmp_path / "gone", CONTENT)
    with pytest.raises(Unseen):
        image_there(gone, "", "")
    assert image_there(gone, str(image.source), "") == (image, (), False)


def test_a_folder_is_not_copied_to_scratch(tmp_path: Path) -> None:
    folder = Image(form="folder", digest="tree-sha256:0", source=tmp_path)
    assert image_there(folder, "", str(tmp_path / "scratch")) == (folder, (), False)


def test_what_lies_in_scratch_is_used_as_long_as_it_is_whole(image: Image, tmp_path: Path) -> None:
    scratch = str(tmp_path / "scratch")
    first, notes, verified = image_there(image, "", scratch)
    assert [f"copied once to {first.source}" in note for note in notes] == [True]
    assert verified
    assert image_there(image, "", scratch) == (first, (), True)
    Path(first.source).write_bytes(CONTENT + b"more")
    again, notes, verified = image_there(image, "", scratch)
    assert (again, len(notes), verified) == (first, 1, True)
    assert Path(first.source).read_bytes() == CONTENT


def test_another_image_under_its_name_is_refused_and_not_left(image: Image, tmp_path: Path) -> None:
    Path(image.source).write_bytes(CONTENT + b"more")
    with pytest.raises(EnvironmentRefused, match="it is another one than requested"):
        image_there(image, "", str(tmp_path / "scratch"))
    assert [p.suffix for p in (tmp_path / "scratch").glob("*/images/*")] == [".lock"]


def test_a_scratch_that_cannot_be_written_is_one_line(image: Image, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = f"cannot be copied to scratch folder {tmp_path}/file"
    with pytest.raises(EnvironmentRefused, match=re.escape(words)):
        image_there(image, "", str(tmp_path / "file"))
