"""An environment is made ready once: the right image, a runtime that works, a mount point for
each bind; or one line with the reason, and the remedy."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.engine import Here, here
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.launch._session import LaunchSession
from flowos.model import (
    Environment,
    EnvironmentRefused,
    Form,
    Image,
    ImageConfig,
    Launch,
    to_plain,
)

from .conftest import (
    CONTAINERS,
    INSIDE,
    Images,
    all_gone,
    children_of,
    mounts,
    squash,
    usable,
    words_of,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")

WORLD_SECONDS = 300.0


def refusal(env: Environment) -> str:
    with pytest.raises(EnvironmentRefused) as told:
        here().ready(env)
    assert "\n" not in str(told.value)
    return str(told.value)


def world(script: str, *hidden: str, image: Path) -> str:
    """What a script prints where bubblewrap shows a poorer node: it gets the image as `image`."""
    program = f"""
from pathlib import Path
from flowos.engine import *
from flowos.model import *
image = here().image_at(Path({str(image)!r}))
def show(env):
    try:
        with here().ready(env) as ready:
            launch = Launch(argv=("cat", "/data/which"), env=ready.env,
                            variables=(("PATH", "/bin"),))
            print(ready.env.runtime, ready.env.image.form, here().run(launch), *ready.notes)
    except EnvironmentRefused as refused:
        print(refused)
{script}
"""
    shown = ("bwrap", "--dev-bind", "/", "/", *hidden, "--", sys.executable, "-c", program)
    done = subprocess.run(shown, capture_output=True, text=True, timeout=WORLD_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- what lies at a path ----


def test_forms_are_told_by_what_is_in_a_file_not_by_its_name(
    images: Images, tmp_path: Path
) -> None:
    odd = tmp_path / "image.sif"
    odd.symlink_to(images.squashfs)
    found = [here().image_at(path) for path in (images.folder, odd, images.archive)]
    assert [image.form for image in found] == ["folder", "squashfs", "oci-archive"]
    assert [image.digest.partition(":")[0] for image in found] == [
        "tree-sha256",
        "sha256",
        "sha256",
    ]
    assert here().image_at(images.squashfs).digest == found[1].digest


def test_an_image_says_how_it_wants_to_be_run(folder: Path) -> None:
    config = ImageConfig(entrypoint=("/bin/sh", "-c"), variables=(("A", "b c"),))
    (folder / ".flowos").mkdir()
    text = str(to_plain(config)).replace("'", '"').replace("None", "null")
    (folder / ".flowos/image.json").write_text(text)
    squash(folder, folder.with_suffix(".sqfs"))
    assert here().image_at(folder).config == config
    assert here().image_at(folder.with_suffix(".sqfs")).config == config


def test_a_configuration_behind_a_link_is_not_the_images(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "image.json").write_text('{"command": ["stolen"]}')
    (folder / ".flowos").symlink_to(tmp_path)
    assert here().image_at(folder).config == ImageConfig()


@pytest.mark.parametrize("change", ["content", "mode", "name", "link", "new"])
def test_any_change_of_a_folder_is_another_digest(folder: Path, change: str) -> None:
    before = here().image_at(folder)
    time.sleep(0.06)
    assert here().image_at(folder) == before
    match change:
        case "content":
            (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
        case "mode":
            (folder / "etc/hosts").chmod(0o600)
        case "name":
            (folder / "etc/hosts").rename(folder / "etc/host")
        case "link":
            (folder / "bin/yes").unlink()
            (folder / "bin/yes").symlink_to("/bin/busybox")
        case "new":
            (folder / "srv").mkdir()
    assert here().image_at(folder).digest != before.digest


def test_a_digest_is_the_folders_not_its_places(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy", symlinks=True)
    assert here().image_at(tmp_path / "copy").digest == here().image_at(folder).digest


def test_a_byte_changed_within_the_clocks_tick_is_seen(squashfs: Path) -> None:
    for value in range(20):
        with squashfs.open("r+b") as file:
            file.seek(200)
            file.write(bytes([value]))
        seen = here().image_at(squashfs).digest
        with squashfs.open("r+b") as file:
            file.seek(200)
            file.write(bytes([value + 100]))
        assert here().image_at(squashfs).digest != seen


@pytest.mark.parametrize("form", ["folder", "squashfs"])
def test_without_its_digest_an_image_is_entered_and_not_read(
    form: Form, folder: Path, squashfs: Path
) -> None:
    path = folder if form == "folder" else squashfs
    (folder / "opt/closed").mkdir(mode=0)  # not even its owner may read it
    image = here().image_at(path, digest=False)
    assert image == replace(here().image_at(squashfs), form=form, source=path, digest="")
    with here().ready(Environment(image=image, runtime="auto")) as ready:
        assert here().run(Launch(argv=("true",), env=ready.env, variables=INSIDE)).ok
    if form == "folder":
        with pytest.raises(EnvironmentRefused, match=r"cannot be read whole: .*opt/closed"):
            here().image_at(path)


def test_an_image_that_was_looked_at_gets_its_digest_when_it_is_asked_for(squashfs: Path) -> None:
    time.sleep(0.06)
    assert [here().image_at(squashfs, digest=False).digest for _ in range(2)] == ["", ""]
    found = here().image_at(squashfs)
    assert found.digest.startswith("sha256:")
    assert here().image_at(squashfs, digest=False) == found


def test_what_is_no_whole_image_is_refused_in_a_line(images: Images, tmp_path: Path) -> None:
    whole = images.squashfs.read_bytes()
    archive = images.archive.read_bytes()
    cases = {
        "cut": (whole[: len(whole) // 2], "cut off"),
        "short": (b"hsqs", "cut off"),
        "text": (b"#!/bin/sh\n" * 1000, "neither a folder nor"),
        "empty": (b"", "neither a folder nor"),
        "zeros": (bytes(20480), "neither a folder nor"),
        "archive": (archive[: len(archive) // 2], "archive"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(EnvironmentRefused, match=words) as told:
            here().image_at(tmp_path / name)
        assert str(tmp_path / name) in str(told.value)
        assert "\n" not in str(told.value)
    with pytest.raises(EnvironmentRefused, match="No such file"):
        here().image_at(tmp_path / "nothing")


# ---- the right image ----


def test_an_image_that_was_tampered_with_is_refused_with_both_digests(squashfs: Path) -> None:
    image = here().image_at(squashfs)
    with squashfs.open("r+b") as file:
        file.seek(-5000, os.SEEK_END)
        file.write(b"x")
    told = refusal(Environment(image=image, runtime="auto"))
    assert image.digest in told
    assert here().image_at(squashfs).digest in told


def test_a_folder_that_changed_since_is_refused_with_both_digests(folder: Path) -> None:
    image = here().image_at(folder)
    (folder / "bin/sh").unlink()
    told = refusal(Environment(image=image, runtime="auto"))
    assert image.digest in told
    assert here().image_at(folder).digest in told


# ---- the runtime ----


def test_what_the_set_up_installs_is_usable(images: Images) -> None:
    missing = {*CONTAINERS} - usable()
    if missing and not os.environ.get("CI"):
        pytest.skip(str(missing))
    assert not missing
    with here().ready(Environment(image=here().image_at(images.folder), runtime="auto")) as ready:
        assert ready.env.runtime == "ch-run"


def test_what_was_tried_is_kept_and_can_be_tried_anew() -> None:
    kept = here().facts()
    assert here().facts() == kept
    assert Here().facts() == kept
    assert Runtimes(LaunchSession()).facts(anew=True) == kept
    assert {each.name for each in kept.tried} >= {"user namespaces", "fuse", "bwrap folder"}


def test_an_unknown_runtime_and_the_bare_one_are_refused_with_the_names(images: Images) -> None:
    image = here().image_at(images.folder)
    assert "known are auto, bare, ch-run" in refusal(Environment(image=image, runtime="docker"))
    assert "enters no image" in refusal(Environment(image=image, runtime="bare"))


def test_an_archive_is_refused_with_the_way_to_a_squashfs(images: Images) -> None:
    image = here().image_at(images.archive)
    assert "flowos image import" in refusal(Environment(image=image, runtime="auto"))


def test_where_fuse_is_closed_a_squashfs_is_unpacked_and_said_so(
    squashfs: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "fuse"
    closed.touch(mode=0o000)
    script = "for name in ('auto', 'bwrap'): show(Environment(image=image, runtime=name))"
    lines = world(script, "--bind", str(closed), "/dev/fuse", image=squashfs).splitlines()
    for line, name in zip(lines, ("ch-run", "bwrap"), strict=True):
        assert line.startswith(f"{name} folder Outcome(end=Exited(code=0)")
        assert f"unpacked once (to /var/tmp/flowos-{os.geteuid()}/images/" in line


def test_without_user_namespaces_each_runtime_says_so_and_how_to_mend_it(squashfs: Path) -> None:
    script = "for name in ('auto', 'ch-run'): show(Environment(image=image, runtime=name))"
    told = world(script, "--unshare-user", "--disable-userns", image=squashfs).splitlines()
    assert len(told) == 2
    for line in told:
        assert "user namespaces are switched off" in line
        assert "sysctl user.max_user_namespaces" in line
    assert "no other runtime here can" in told[1]


def test_a_program_that_is_gone_is_named_with_its_package(squashfs: Path, tmp_path: Path) -> None:
    script = f"""
import os
os.environ["PATH"] = {str(tmp_path)!r}
show(Environment(image=image, runtime="bwrap"))
show(Environment(image=image, runtime="auto"))"""
    pinned, automatic = world(script, image=squashfs).splitlines()
    assert "bwrap is not installed (apt install bubblewrap" in pinned
    assert all(f"{name} is not installed" in automatic for name in ("ch-run", "bwrap", "podman"))


# ---- and undone ----


@pytest.mark.parametrize("runtime", ["bwrap", "podman"])
def test_closing_twice_is_closing_once(images: Images, runtime: str) -> None:
    ready = here().ready(Environment(image=here().image_at(images.squashfs), runtime=runtime))
    ready.close()
    ready.close()
    assert ready.env.image
    assert not Path(ready.env.image.source).exists() or runtime == "podman"


@pytest.mark.parametrize("runtime", ["bwrap", "podman"])
def test_what_a_killed_process_held_is_undone_at_the_next_start(
    images: Images, runtime: str
) -> None:
    """Also where flowos-init, that should have ended the FUSE server, was killed with it."""
    program = f"""
import time
from pathlib import Path
from flowos.engine import here
from flowos.model import Environment, Launch
image = here().image_at(Path({str(images.squashfs)!r}))
ready = here().ready(Environment(image=image, runtime={runtime!r}))
assert here().run(Launch(argv=("/bin/true",), env=ready.env)).ok
print(ready.env.image.source, flush=True)
time.sleep(300)
"""
    before = {*below_us()}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        place = Path(holder.stdout.readline().strip())
        for pid in {*below_us()} - before - {holder.pid}:
            if " -- " in words_of(pid):  # flowos-init
                os.kill(pid, 9)
        holder.kill()
    assert os.path.lexists(place)
    next_start = (
        "import flowos.engine as e, flowos.model as m; e.here().run(m.Launch(argv=('true',)))"
    )
    subprocess.run([sys.executable, "-c", next_start], check=True)
    assert not os.path.lexists(place)
    assert not place.parents[0 if runtime == "bwrap" else 1].exists()
    assert str(place) not in mounts()
    assert all_gone([*{*below_us()} - before])


def below_us() -> list[int]:
    """All processes below this one, podman's own too."""
    found, todo = [], [os.getpid()]
    while todo:
        children = children_of(todo.pop())
        found += children
        todo += children
    return found


def test_the_image_of_a_launch_stays_the_one_it_was_made_ready_with(images: Images) -> None:
    env = Environment(image=here().image_at(images.squashfs), runtime="auto")
    with here().ready(env) as ready:
        assert isinstance(ready.env.image, Image)
        assert ready.env.image.digest == here().image_at(images.squashfs).digest
