"""Images that must be folders: unpacked once per digest, with mount points where asked for."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath

import pytest

from flowos.engine import Ready, here
from flowos.engine.environments import _usability
from flowos.engine.environments._points import MountPoint, place_inside
from flowos.engine.environments._tries import tiny_folder
from flowos.engine.environments._unpacked import unpacked
from flowos.engine.launch._session import LaunchSession
from flowos.model import Environment, EnvironmentRefused, Image, Launch, Tried
from tests.waiting import PATIENCE_SECONDS

from .conftest import INSIDE, squash

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def said_in(ready: Ready, *argv: str) -> str:
    outcome = here().run(Launch(argv=argv, env=ready.env, variables=INSIDE))
    assert outcome.ok, outcome
    return outcome.stdout.decode()


def folder_of(image: Image, points: Sequence[MountPoint] = ()) -> Path:
    """The folder, which is not in use when this returns."""
    made = unpacked(image, LaunchSession(), points)
    made.let_go()
    return made.folder


def test_what_is_in_use_is_neither_removed_nor_made_anew(squashfs: Path) -> None:
    image = here().image_at(squashfs)
    made = unpacked(image, LaunchSession())
    assert here().remove_unpacked(image.digest) == f"kept: {made.folder}, which is in use"
    (made.folder / "etc/hosts").unlink()
    with pytest.raises(EnvironmentRefused, match=r"was changed while something runs in it"):
        unpacked(image, LaunchSession())
    made.let_go()
    assert here().remove_unpacked(image.digest) == f"removed: {made.folder}"
    assert not made.folder.exists()
    assert here().remove_unpacked(image.digest) == ""


def test_an_image_is_unpacked_once_and_not_for_every_start(squashfs: Path) -> None:
    image = here().image_at(squashfs)
    first = folder_of(image)
    seen = (first / "bin/busybox").stat()
    assert folder_of(image) == first
    assert (first / "bin/busybox").stat() == seen
    assert (first / "data/which").read_text() == (
        squashfs.with_suffix("") / "data/which"
    ).read_text()


def test_an_unpacked_folder_that_lost_or_changed_a_file_is_made_anew(squashfs: Path) -> None:
    image = here().image_at(squashfs)
    folder = folder_of(image)
    (folder / "etc/hosts").unlink()
    (folder / "data/which").write_text("somebody's")
    assert (folder_of(image) / "etc/hosts").exists()
    assert (folder / "data/which").read_text() != "somebody's"


def test_what_was_left_half_made_is_removed(squashfs: Path) -> None:
    image = here().image_at(squashfs)
    folder = folder_of(image)
    shutil.rmtree(folder)
    half_made = folder.with_name(f".{folder.name}")
    (half_made / "locked").mkdir(parents=True)
    (half_made / "locked/file").touch()
    (half_made / "locked").chmod(0o000)
    assert folder_of(image) == folder
    assert not half_made.exists()
    assert not (folder / "locked").exists()


def test_several_processes_unpack_at_once_and_all_get_it(squashfs: Path) -> None:
    program = f"""
from pathlib import Path
from flowos.engine import here
from flowos.engine.launch._session import LaunchSession
from flowos.engine.environments._unpacked import unpacked, MountPoint
import sys
from collections.abc import Sequence
image = here().image_at(Path({str(squashfs)!r}))
folder = unpacked(image, LaunchSession(), [MountPoint(Path("/new", sys.argv[1]))]).folder
print((folder / "data/which").read_text(), (folder / "new" / sys.argv[1]).is_dir())
"""
    makers = [
        subprocess.Popen([sys.executable, "-c", program, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    told = {maker.communicate(timeout=PATIENCE_SECONDS)[0] for maker in makers}
    assert told == {f"{squashfs.with_suffix('')} True\n"}


def test_without_room_nothing_is_unpacked(squashfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full to the brim cannot be had here; its figure can."""
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(EnvironmentRefused, match=r"takes \d+ bytes, /var/tmp.* has 1000 free"):
        unpacked(here().image_at(squashfs), LaunchSession())


def test_a_squashfs_that_is_damaged_is_told_with_the_tools_last_line(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "words").write_text(" ".join(map(str, range(400_000))))
    squash(folder, tmp_path / "damaged.sqfs")
    with (tmp_path / "damaged.sqfs").open("r+b") as file:
        file.seek(file.seek(0, os.SEEK_END) // 2)
        file.write(b"X" * 16)
    says = r"it is damaged or truncated \(.*\): take it again, or, .*image verify NAME`"
    with pytest.raises(EnvironmentRefused, match=says):
        unpacked(here().image_at(tmp_path / "damaged.sqfs"), LaunchSession())


def test_folders_that_only_root_may_write_take_mount_points(folder: Path) -> None:
    (folder / "opt").chmod(0o555)
    squash(folder, folder.with_suffix(".sqfs"))
    image = here().image_at(folder.with_suffix(".sqfs"))
    points = [MountPoint(PurePath("/opt/deep/er")), MountPoint(PurePath("/opt/file"), file=True)]
    made = folder_of(image, points)
    assert (made / "opt/deep/er").is_dir()
    assert (made / "opt/file").is_file()


def test_a_mount_point_behind_a_link_stays_in_the_image(folder: Path, tmp_path: Path) -> None:
    (folder / "var/run").symlink_to("/run")
    (folder / "out").symlink_to("../../../../../../" + str(tmp_path).lstrip("/"))
    assert place_inside(folder, PurePath("/var/run/x")) == folder / "run/x"
    assert place_inside(folder, PurePath("/out/x")).is_relative_to(folder)
    assert place_inside(folder, PurePath("/../../x")) == folder / "x"


def test_a_mount_point_behind_endless_links_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "round").symlink_to("round")
    (folder / "0").symlink_to(tmp_path / "made")
    for number in range(60):
        (folder / f"{number + 1}").symlink_to(f"{number}")
    for target in ("/round/x", "/60"):
        with pytest.raises(EnvironmentRefused, match="Too many levels of symbolic links"):
            here().ready(
                Environment(
                    image=here().image_at(folder), runtime="bwrap", binds=(("/etc/hosts", target),)
                )
            )
    assert not (tmp_path / "made").exists()


@pytest.fixture
def no_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel before 5.11 cannot be had here; what it would say can."""
    says = Tried(name="overlay", works=False, says="Operation not permitted")
    monkeypatch.setattr(_usability, "try_overlay", lambda _: says)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing kept"))


@pytest.mark.usefixtures("no_overlay")
def test_without_overlays_a_folder_is_copied_rather_than_changed(
    folder: Path, tmp_path: Path
) -> None:
    image = here().image_at(folder)
    env = Environment(image=image, runtime="ch-run", binds=((str(tmp_path), "/not/there"),))
    with here().ready(env) as ready:
        assert "is unpacked once (to " in ready.notes[0]
        assert "as it has no place for /not/there" in ready.notes[0]
        assert "image" in said_in(ready, "ls", "/not/there")
    assert here().image_at(folder) == image


def test_an_image_without_the_usual_folders_gets_them(folder: Path) -> None:
    for name in ("dev", "proc", "sys", "tmp"):
        (folder / name).rmdir()
    env = Environment(image=here().image_at(folder), runtime="auto")
    with here().ready(env) as ready:
        assert said_in(ready, "ls", "/proc/self/fd") == "0\n1\n2\n3\n"


@pytest.mark.parametrize("runtime", ["ch-run", "bwrap"])
def test_an_image_without_the_files_that_a_runtime_shows_gets_them(
    folder: Path, runtime: str
) -> None:
    for name in ("etc/passwd", "etc/group"):
        (folder / name).unlink()
    with here().ready(Environment(image=here().image_at(folder), runtime=runtime)) as ready:
        assert "root:" in said_in(ready, "cat", "/etc/passwd")


@pytest.mark.parametrize("part", ["flowos-init", "proc", "etc/hosts"])
def test_runtimes_are_tried_with_a_whole_image_whatever_was_cleaned_away(part: str) -> None:
    init = LaunchSession().init_program()
    place = tiny_folder(init) / part
    place.rmdir() if place.is_dir() else place.unlink()
    assert tiny_folder(init) / part == place
    assert place.exists()
