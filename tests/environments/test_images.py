"""Images built as an ordinary user, and entered: by each builder, from a recipe."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

import pytest

from flowos.engine import here, remove_tree
from flowos.model import Environment, EnvironmentRefused, Launch
from flowos.operations import image
from tests.waiting import comes

from .conftest import HAS_APPTAINER, Images, printed

BUILDERS = ("buildah", "podman", "ch-image")
ARGUMENTS = (("SECRET", "1234567"),)

RECIPE = """\
FROM small
ARG SECRET=none
ENV WHO=world
RUN echo "hello $WHO" > /hello && rm /bin/yes && echo $SECRET | wc -c > /length
COPY note /note
WORKDIR /work
ENTRYPOINT ["/bin/cat"]
CMD ["/hello"]
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data/flowos/images"


@pytest.fixture
def recipe(tmp_path: Path, library: Path, images: Images) -> Path:
    """A Dockerfile whose base, `small`, is in the library."""
    context = recipe_in(tmp_path, images)
    assert library.is_dir()
    return context


def recipe_in(folder: Path, images: Images) -> Path:
    image.import_image(str(images.folder), name="small")
    (folder / "context").mkdir()
    (folder / "context/Dockerfile").write_text(RECIPE)
    (folder / "context/note").write_text("dear Ada")
    return folder / "context"


@dataclass(frozen=True)
class Storage:
    """Of the programs that build, as one of them sees it."""

    builder: str
    home: Path

    @property
    def place(self) -> Path:
        return self.home / f"flowos-{os.geteuid()}/containers"

    def images(self) -> list[str]:
        where = ("--root", str(self.place / "layers"), "--runroot", str(self.place / "run"))
        argv = (self.builder, *where, "images", "--all", "--quiet")
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()

    def bytes(self) -> int:
        return sum(path.lstat().st_size for path in self.place.rglob("*"))

    def check_that_no_base_is_left(self) -> None:
        """ch-image's is a folder of the build alone."""
        assert self.builder == "ch-image" or self.images() == []
        assert self.bytes() < 1 << 20


@dataclass(frozen=True)
class Built:
    """An image of the library `data`, and its recipe."""

    data: Path
    recipe: Path
    image: image.MadeImage
    storage: Storage

    def use(self, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("XDG_DATA_HOME", str(self.data))
        patch.setenv("TMPDIR", str(self.storage.home))


BuiltOnce = Callable[[str], Built]


@pytest.fixture(scope="module")
def built_once(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltOnce]:
    """By each builder, when a test first asks for it."""
    homes: list[Path] = []

    @cache
    def by(builder: str) -> Built:
        home = tmp_path_factory.mktemp("built")
        homes.append(Path(tempfile.mkdtemp(dir="/var/tmp")))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_DATA_HOME", str(home / "data"))
            patch.setenv("TMPDIR", str(homes[-1]))
            recipe = recipe_in(home, images)
            made = built_by(builder, recipe, arguments=ARGUMENTS)
        return Built(home / "data", recipe, made, Storage(builder, homes[-1]))

    yield by
    for each in homes:
        remove_tree(each)


@pytest.fixture
def built(built_once: BuiltOnce, monkeypatch: pytest.MonkeyPatch) -> Built:
    """By buildah."""
    made = built_once("buildah")
    made.use(monkeypatch)
    return made


def built_by(builder: str, recipe: Path, **more: object) -> image.MadeImage:
    """A builder that does not work here is a skip, or in CI a failure."""
    bases = (("small", image.find("small")),)
    asked = image.recipe_at(recipe, builder=builder, bases=bases, **more)  # type: ignore[arg-type]
    try:
        return image.build_image(asked, name=f"by-{builder}")
    except EnvironmentRefused as refused:
        if "nothing builds here" not in str(refused) or os.environ.get("CI"):
            raise
        pytest.skip(str(refused))


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_recipe_is_built_and_its_image_entered_and_built_twice_it_is_the_same(
    builder: str, built_once: BuiltOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time its base, which the library has, is not named to the builder."""
    built = built_once(builder)
    built.use(monkeypatch)
    made = built.image
    script = "/bin/cat /hello /note; echo; /bin/cat /length; /bin/ls /bin"
    hello, note, length, *programs = printed(made.path, "/bin/sh", "-c", script).splitlines()
    assert (hello, note, length.strip()) == ("hello world", "dear Ada", "8")
    assert "cat" in programs
    assert "yes" not in programs
    assert dict(made.image.made_with).keys() == {builder, "mksquashfs"}
    assert made.image.recipe_digest.startswith("sha256:")
    assert "1234567" not in json.dumps([str(made), str(image.inspect(made.name))])
    time.sleep(1.1)  # another second on each file
    asked = image.recipe_at(built.recipe, builder=builder, arguments=ARGUMENTS)
    second = image.build_image(asked, name=made.name)
    assert second.notes[0] == "FROM small: the image of that name in your library"
    assert (second.image.digest, second.was_there) == (made.image.digest, True)
    built.storage.check_that_no_base_is_left()


@pytest.fixture(params=("buildah", "podman"))
def builder(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def storage(builder: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """The builders' storage of this test alone."""
    home = Path(tempfile.mkdtemp(dir="/var/tmp"))
    monkeypatch.setenv("TMPDIR", str(home))
    yield Storage(builder, home)
    remove_tree(home)


def test_what_a_killed_build_left_of_a_base_goes_with_the_next(
    builder: str, storage: Storage, recipe: Path
) -> None:
    image.chosen_builder(builder)
    (recipe / "Dockerfile").write_text("FROM small\nRUN echo up > /up\nRUN sleep 54321")
    running = caught_in_sleep(builder, recipe)
    running.kill()
    running.communicate()
    assert storage.images() != []
    (recipe / "Dockerfile").write_text("FROM small\nRUN echo down > /down")
    built_by(builder, recipe)
    assert storage.images() == []


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_recipe_that_fails_is_told_with_its_last_lines_and_leaves_no_base(
    builder: str, storage: Storage, recipe: Path, library: Path
) -> None:
    (recipe / "Dockerfile").write_text(
        "FROM small\nRUN echo up > /up\nRUN echo before; echo it broke here >&2; exit 3"
    )
    before = set(library.iterdir())
    with pytest.raises(EnvironmentRefused, match=r"(?s)building failed; its last lines:.*it broke"):
        built_by(builder, recipe)
    assert set(library.iterdir()) == before
    storage.check_that_no_base_is_left()


def test_what_the_recipe_says_of_running_is_kept(built: Built) -> None:
    config = image.inspect(built.image.name).config
    assert (config.entrypoint, config.command) == (("/bin/cat",), ("/hello",))
    assert ("WHO", "world") in config.variables
    assert str(config.cwd) == "/work"


def test_an_interrupted_build_leaves_no_process_and_no_image(recipe: Path, library: Path) -> None:
    image.chosen_builder("buildah")
    before = set(library.iterdir())
    (recipe / "Dockerfile").write_text("FROM small\nRUN echo up > /up && sleep 54321")
    running = caught_in_sleep("buildah", recipe)
    running.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in running.communicate(timeout=300)[1]
    assert comes(lambda: processes("sleep 54321") == [])
    assert set(library.iterdir()) == before


def caught_in_sleep(builder: str, recipe: Path) -> "subprocess.Popen[bytes]":
    """A build of a recipe that sleeps, once it does."""
    script = (
        "import sys; from pathlib import Path; from flowos.operations import image;"
        f"r = image.recipe_at(Path(sys.argv[1]), builder={builder!r}, "
        "bases=(('small', image.find('small')),)); image.build_image(r, name='x')"
    )
    running = subprocess.Popen([sys.executable, "-c", script, str(recipe)], stderr=subprocess.PIPE)
    assert comes(lambda: processes("sleep 54321") or running.poll() is not None, 120)
    assert running.poll() is None, running.communicate()
    return running


def processes(words: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        found += [line] if line == words else []
    return found


@pytest.fixture
def podman() -> Iterator[tuple[str, ...]]:
    """With a storage of its own, at a short path: it takes no run folder beyond 50 characters."""
    if not shutil.which("podman"):
        pytest.skip("no podman on this machine")
    home = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield ("podman", "--root", str(home / "p"), "--runroot", str(home / "r"))
    subprocess.run(["podman", "unshare", "rm", "-rf", home], check=True, capture_output=True)


def test_an_image_of_ours_runs_in_podman_from_its_archive(
    podman: tuple[str, ...], built: Built, tmp_path: Path
) -> None:
    archive = image.export_image(built.image.name, tmp_path / "x.oci")
    loaded = subprocess.run(
        [*podman, "load", "--quiet", "--input", archive], check=True, capture_output=True, text=True
    )
    assert "by-buildah" in loaded.stdout
    seen = subprocess.run(
        [*podman, "image", "inspect", "localhost/by-buildah"], check=True, capture_output=True
    )
    (raw,) = json.loads(seen.stdout)
    assert raw["Config"]["Entrypoint"] == ["/bin/cat"]
    words = ("run", "--rm", "--network=host", "--cgroups=disabled", "localhost/by-buildah", "/note")
    ran = subprocess.run([*podman, *words], capture_output=True, text=True)
    assert ran.stdout == "dear Ada", ran.stderr


@pytest.fixture
def archive(images: Images, tmp_path: Path, library: Path) -> Path:
    image.import_image(str(images.folder), name="small")
    assert library.is_dir()
    return image.export_image("small", tmp_path / "small.oci")


def test_skopeo_copies_an_archive_of_ours_whole(archive: Path, tmp_path: Path) -> None:
    words = ["skopeo", "--insecure-policy", "copy", f"oci-archive:{archive}", f"dir:{tmp_path}/d"]
    copied = subprocess.run(words, capture_output=True, text=True)
    assert copied.returncode == 0, copied.stderr
    manifest = json.loads((tmp_path / "d/manifest.json").read_text())
    assert all((tmp_path / "d" / at["digest"][7:]).is_file() for at in manifest["layers"])


def test_an_archive_of_ours_names_each_folder_before_what_is_in_it(archive: Path) -> None:
    """Some unpackers make none that is not named."""
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    folders = [member.name for member in members if member.isdir()]
    assert folders == ["blobs", "blobs/sha256"]
    seen = {"."}
    for member in members:
        assert str(PurePath(member.name).parent) in seen
        seen.add(member.name)


DEFINITION = """\
Bootstrap: localimage
From: {base}

%files
    note /note
%post
    echo "hello from post" > /hello
%environment
    export WHO=Ada PATH=/opt/x/bin:$PATH
%runscript
    echo "for $WHO"; cat /hello "$@"
"""

by_apptainer = pytest.mark.skipif(not HAS_APPTAINER, reason="no apptainer on this machine")


@by_apptainer
@pytest.mark.usefixtures("library")
def test_a_definition_is_built_with_files_from_where_one_stands(
    images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/x.def").write_text(DEFINITION.format(base=images.folder))
    (tmp_path / "note").write_text("dear Ada")
    monkeypatch.chdir(tmp_path)
    made = image.build_image(image.recipe_at(Path("there/x.def")), name="by-definition")
    words = [sys.executable, "-m", "flowos", "run", "--env", "by-definition", "--", "/note"]
    assert subprocess.check_output(words) == b"for Ada\nhello from post\ndear Ada"
    assert dict(image.inspect(made.name).config.variables)["PATH"].startswith("/opt/x/bin:/usr/")
    assert dict(made.image.made_with).keys() == {"apptainer", "mksquashfs"}
    (tmp_path / "note").unlink()
    with pytest.raises(EnvironmentRefused, match=r"(?s)building failed; its last lines:.*note"):
        image.build_image(image.recipe_at(Path("there/x.def")), name="again")
    assert image.find("by-definition") == made.path


@by_apptainer
def test_apptainer_builds_from_an_archive_of_ours(archive: Path, tmp_path: Path) -> None:
    words = ["apptainer", "build", str(tmp_path / "x.sif"), f"oci-archive:{archive}"]
    built = subprocess.run(words, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    sif = Environment(image=here().image_at(tmp_path / "x.sif"), runtime="apptainer")
    with here().ready(sif) as ready:
        outcome = here().run(Launch(argv=("/bin/busybox", "true"), env=ready.env))
    assert outcome.ok, outcome


@by_apptainer
@pytest.mark.usefixtures("library")
def test_a_sif_is_entered_as_it_is_and_by_all_once_it_is_imported(
    images: Images, tmp_path: Path
) -> None:
    sif = tmp_path / "x.sif"
    subprocess.run(["apptainer", "build", sif, images.folder], check=True, capture_output=True)
    made = image.import_image(str(sif), name="was-a-sif")
    for env in (
        Environment(image=here().image_at(sif), runtime="apptainer"),
        Environment(image=here().image_at(made.path), runtime="bwrap"),
    ):
        with here().ready(env) as ready:
            outcome = here().run(
                Launch(argv=("/bin/cat", "/.singularity.d/runscript"), env=ready.env)
            )
        assert outcome.stdout.startswith(b"#!/bin/sh"), outcome
