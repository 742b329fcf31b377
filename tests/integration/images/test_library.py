"""What is in the library can be found, checked, named anew, given away and removed."""

import gzip
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowos.model import EnvironmentRefused, UsageError
from flowos.operations import image
from flowos.operations._images._scratch import builders_storage, scratch

from .conftest import left
from .sources import SMALL, in_image, tar, written_root

RECIPE = (
    "from flowos.operations import image; import sys; image.import_image(sys.argv[1], name='x')"
)


@pytest.fixture
def made(tmp_path: Path) -> image.MadeImage:
    return image.import_image(str(written_root(tmp_path / "fio")))


def damaged(path: Path) -> None:
    path.chmod(0o600)
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)


def test_an_image_is_found_by_its_name_and_by_the_beginning_of_its_digest(
    made: image.MadeImage, library: Path
) -> None:
    digits = made.image.digest.removeprefix("sha256:")
    for word in ("fio", digits, digits[:6], made.image.digest):
        assert image.find(word) == library / f"{digits}.sqfs"


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("word", ["", "abc", "0123456789", "fio@ch-run", "x\n"])
def test_an_unknown_name_is_refused_with_those_that_are_known(word: str) -> None:
    with pytest.raises(EnvironmentRefused, match=r"no image is called .*; known are fio"):
        image.find(word)


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("word", ["foi", "../fio", "fio2"])
def test_an_unknown_name_is_refused_with_the_one_that_is_most_like_it(word: str) -> None:
    with pytest.raises(EnvironmentRefused, match=r"no image is called .*; did you mean 'fio'\?"):
        image.find(word)


def test_without_any_image_one_is_told_how_to_make_one() -> None:
    with pytest.raises(EnvironmentRefused, match="; none has a name yet: 'flowos image import'"):
        image.find("fio")


def test_an_image_whose_file_is_gone_is_told_with_what_it_was_made_of(
    made: image.MadeImage,
) -> None:
    made.path.unlink()
    with pytest.raises(EnvironmentRefused, match=r"'fio' is not in .* any more .*/fio.: make it"):
        image.find("fio")
    (listed,) = image.images()
    assert listed.path is None


def test_a_beginning_that_fits_two_images_is_not_guessed(library: Path) -> None:
    library.mkdir(parents=True)
    for ending in "ab":
        (library / f"{'123456' + ending * 58}.sqfs").write_bytes(b"x")
    with pytest.raises(EnvironmentRefused, match="'123456' fits 2 images: write more"):
        image.find("123456")
    assert [listed.name for listed in image.images()] == ["", ""]


def test_a_name_means_the_newest_image_and_says_that_it_moved(
    made: image.MadeImage, tmp_path: Path
) -> None:
    other = written_root(tmp_path / "other", [*SMALL, ("new", b"new")])
    moved = image.import_image(str(other), name="fio")
    assert moved.notes == (f"fio was {made.image.digest[:19]} before",)
    assert image.find("fio") == moved.path
    named = [(listed.name, listed.digest) for listed in image.images()]
    assert named == [("fio", moved.image.digest), ("", made.image.digest)]


def test_the_file_of_an_image_cannot_be_written_by_mistake(made: image.MadeImage) -> None:
    assert made.path.stat().st_mode & 0o777 == 0o444


def test_what_is_as_it_was_made_is_verified(made: image.MadeImage) -> None:
    seen = image.verify("fio")
    assert seen.ok
    assert (seen.expected, seen.have) == (made.image.digest, made.image.digest)


@pytest.mark.parametrize("cut", [False, True], ids=["one bit turned", "cut off"])
def test_a_tampered_image_is_told_and_not_given_away(
    cut: bool, made: image.MadeImage, tmp_path: Path
) -> None:
    damaged(made.path)
    if cut:
        os.truncate(made.path, 1000)
    seen = image.verify("fio")
    assert not seen.ok
    assert seen.expected == made.image.digest != seen.have
    with pytest.raises(EnvironmentRefused, match=f"has {seen.have}, not {seen.expected}"):
        image.export_image("fio", tmp_path / "out.sqfs")
    assert not (tmp_path / "out.sqfs").exists()


def test_making_a_damaged_image_anew_mends_it(made: image.MadeImage, tmp_path: Path) -> None:
    damaged(made.path)
    again = image.import_image(str(tmp_path / "fio"))
    assert not again.was_there
    assert image.verify("fio").ok


def test_an_image_goes_with_its_last_name(made: image.MadeImage, tmp_path: Path) -> None:
    image.import_image(str(tmp_path / "fio"), name="second")
    kept = f"kept: {made.image.digest[:19]}, which is still called second"
    assert image.remove_image("fio") == ("forgotten: fio", kept)
    assert made.path.exists()
    assert image.remove_image("second") == ("forgotten: second", f"removed: {made.path}")
    assert not made.path.exists()


def test_what_comes_back_keeps_where_it_was_from_first(
    made: image.MadeImage, tmp_path: Path
) -> None:
    image.export_image("fio", tmp_path / "out.sqfs")
    for name in ("fio", "back"):
        again = image.import_image(str(tmp_path / "out.sqfs"), name=name)
        assert (again.name, again.image) == (name, made.image)
    seen = image.inspect("back")
    assert (set(seen.names), seen.kept) == ({"fio", "back"}, made.image)
    assert made.image.source == str(tmp_path / "fio")


def test_by_its_digest_an_image_goes_with_all_its_names(
    made: image.MadeImage, tmp_path: Path
) -> None:
    image.import_image(str(tmp_path / "fio"), name="second")
    done = image.remove_image(made.image.digest[7:17])
    assert done[-1] == f"removed: {made.path}"
    assert image.images() == ()


@pytest.mark.parametrize("to", ["out.sqfs", "out.tar", "out.tar.gz", "out.oci", "out"])
def test_an_image_that_is_given_away_comes_back_as_the_same(
    to: str, made: image.MadeImage, tmp_path: Path
) -> None:
    image.export_image("fio", tmp_path / to)
    back = image.import_image(str(tmp_path / to), name="back")
    assert back.image.digest == made.image.digest
    assert back.was_there


@pytest.mark.usefixtures("made")
def test_what_is_given_away_twice_is_twice_the_same(tmp_path: Path) -> None:
    for name in ("one.oci", "two.oci", "one.tar", "two.tar", "1.tgz", "2.tgz"):
        image.export_image("fio", tmp_path / name)
    assert (tmp_path / "one.oci").read_bytes() == (tmp_path / "two.oci").read_bytes()
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert (tmp_path / "1.tgz").read_bytes() == (tmp_path / "2.tgz").read_bytes()
    assert gzip.decompress((tmp_path / "1.tgz").read_bytes()) == (tmp_path / "one.tar").read_bytes()


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("to", "form"),
    [("x.zip", ""), ("x.tar.xz", ""), ("x.sif", "folder"), ("x.tar", "squashfs"), ("x.tgz", "oci")],
)
def test_a_name_that_promises_another_form_is_refused(to: str, form: str, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=rf"{to}: a file name with this ending is not .*; known endings: "
    ):
        image.export_image("fio", tmp_path / to, form=form)


def test_where_nothing_can_be_written_is_told_before_the_image_is_read(
    made: image.MadeImage,
) -> None:
    damaged(made.path)
    with pytest.raises(EnvironmentRefused, match=r"/proc/x\.tar: cannot write there: "):
        image.export_image("fio", Path("/proc/x.tar"))


@pytest.mark.usefixtures("made")
def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Ada")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("letter", "link"):
        with pytest.raises(EnvironmentRefused, match="is there already"):
            image.export_image("fio", tmp_path / name, form="tar")
    assert (tmp_path / "letter").read_text() == "Dear Ada"
    with pytest.raises(EnvironmentRefused, match=r"x\.tar: there is no folder .*/none"):
        image.export_image("fio", tmp_path / "none/x.tar")


@pytest.mark.usefixtures("made")
def test_giving_away_writes_through_no_link_that_lies_there(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Ada")
    (tmp_path / ".out.sqfs.part").symlink_to("letter")
    before = {path.name for path in tmp_path.iterdir()}
    image.export_image("fio", tmp_path / "out.sqfs")
    assert (tmp_path / "letter").read_text() == "Dear Ada"
    assert {path.name for path in tmp_path.iterdir()} == before | {"out.sqfs"}


def test_others_may_pass_where_they_must_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = os.umask(0o077)
    try:
        with scratch(others_pass=True) as room:
            assert [stat.S_IMODE(at.stat().st_mode) for at in (room, room.parent)] == [0o711] * 2
    finally:
        os.umask(before)


def test_a_file_outside_of_the_library_is_inspected_by_its_path(
    made: image.MadeImage, tmp_path: Path
) -> None:
    image.export_image("fio", tmp_path / "out.sqfs")
    seen = image.inspect(str(tmp_path / "out.sqfs"))
    assert seen.digest == made.image.digest
    assert (seen.names, seen.kept) == (("fio",), made.image)
    with pytest.raises(EnvironmentRefused, match=r"none\.sqfs: No such file"):
        image.inspect(str(tmp_path / "none.sqfs"))


def started(source: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", RECIPE, str(source)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Takes long enough to be caught in the middle."""
    noise = os.urandom(1 << 20)
    members = [(f"bin/{n}", noise + bytes([n])) for n in range(120)]
    (tmp_path / "large.tar").write_bytes(tar(members))
    return tmp_path / "large.tar"


def caught_in_the_middle(source: Path, library: Path) -> "subprocess.Popen[bytes]":
    running = started(source)
    until = time.monotonic() + 60
    while not any(part.stat().st_size for part in library.glob(".*.part")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
    return running


def test_an_interrupt_leaves_nothing_half_made(large: Path, library: Path, tmp_path: Path) -> None:
    running = caught_in_the_middle(large, library)
    running.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in running.communicate(timeout=300)[1]
    assert left(library) == set()
    assert left(tmp_path / "room") == set()


def test_what_a_killed_import_left_is_removed_by_the_next(
    large: Path, library: Path, tmp_path: Path
) -> None:
    running = caught_in_the_middle(large, library)
    running.kill()
    running.communicate()
    (library / ".left.part").write_bytes(b"mksquashfs removes its own if it has the time")
    working = tmp_path / f"room/flowos-{os.geteuid()}/build"
    assert list(working.iterdir()) != []
    made = image.import_image(str(written_root(tmp_path / "x")))
    assert left(library) == {made.path.name, "x"}
    assert list(working.iterdir()) == []


def test_two_that_make_images_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    source = written_root(tmp_path / "same")
    for each in [started(source) for _ in range(3)]:
        assert each.communicate(timeout=300)[1] == b""
        assert each.returncode == 0
    assert image.verify("x").ok
    assert in_image(image.find("x"), "bin/hello") == b"hello\n"


def test_storage_is_handed_on_when_the_build_of_a_killed_flowos_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with builders_storage() as storage:
        pass
    build = subprocess.Popen(["sh", "-c", "sleep 1; exit 0", "--root", storage / "layers"])
    with builders_storage():
        assert build.poll() == 0
