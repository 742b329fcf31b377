"""Mount points that an image lacks are laid over it: nothing is unpacked, nothing else changes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.engine.environments._unpacked import unpacked_folder
from flowos.model import Environment, EnvironmentRefused, Form, Launch

from .conftest import INSIDE, ready_or_skip, squash

pytestmark = pytest.mark.usefixtures("nothing_is_left")

FLOWOS = str(Path(sys.executable).with_name("flowos"))
RUNTIMES = ("ch-run", "bwrap", "podman", "apptainer")
BY_US = ("ch-run", "bwrap")
FORMS: tuple[Form, ...] = ("folder", "squashfs")


@pytest.fixture
def project() -> Iterator[Path]:
    """A folder of one's own in one's home, as people have them."""
    here = Path.home() / "flowos-test, of ours" / "proj"
    here.mkdir(parents=True, exist_ok=True)
    yield here
    shutil.rmtree(here.parent)


def said(env: Environment, script: str) -> str:
    with ready_or_skip(env) as ready:
        launch = Launch(argv=("/bin/sh", "-c", script), env=ready.env, variables=INSIDE)
        outcome = here().run(launch)
    assert outcome.ok, outcome
    return outcome.stdout.decode()


def made(folder: Path, form: Form) -> Path:
    if form == "folder":
        return folder
    squash(folder, folder.with_suffix(".sqfs"))
    return folder.with_suffix(".sqfs")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("runtime", BY_US)
def test_a_command_from_a_project_at_home_runs_without_unpacking(
    runtime: str, form: Form, folder: Path, project: Path
) -> None:
    image = made(folder, form)
    before = {*unpacked_folder().iterdir()}
    words = ("exec", "--env", f"{image}@{runtime}", "--", "sh", "-c", "pwd; echo x > made")
    done = subprocess.run([FLOWOS, *words], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{project}\n", "")
    assert (project / "made").read_text() == "x\n"
    assert {*unpacked_folder().iterdir()} == before
    assert not (folder / "home" / Path.home().name).exists()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("runtime", BY_US)
def test_what_was_in_the_image_is_there_as_before_and_read_only(
    runtime: str, form: Form, folder: Path, tmp_path: Path
) -> None:
    (folder / "opt/closed").mkdir(mode=0o700)
    (folder / "opt/closed/file").write_text("deep")
    (folder / "opt/secret").touch(mode=0o600)
    (folder / "opt/secret").write_text("own")
    (folder / "opt/link").symlink_to("closed/file")
    (folder / "opt").chmod(0o750)
    image = here().image_at(made(folder, form))
    binds = tuple((str(tmp_path), target) for target in ("/opt/new/er", "/nowhere", "/home/a/b"))
    look = """cat /opt/closed/file /opt/secret /opt/link; echo; ls -d /opt/* /nowhere /home/a/b/*.py
        ls /opt/new/er/image /nowhere/image >/dev/null && stat -c %a /opt
        for file in /x /opt/x /opt/closed/x /opt/closed/file /bin/x /opt/new/x /home/a/x; do
          (echo no >>$file) 2>/dev/null && echo written to $file; done; true"""
    (tmp_path / "a.py").touch()
    assert said(Environment(image=image, runtime=runtime, binds=binds), look).split() == [
        "deepowndeep",
        *("/home/a/b/a.py", "/nowhere", "/opt/closed", "/opt/link", "/opt/new", "/opt/secret"),
        "750",
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_bind_behind_an_absolute_link_is_where_the_link_leads_inside(
    runtime: str, form: Form, folder: Path, tmp_path: Path
) -> None:
    (folder / "var/run").symlink_to("/run")
    (folder / "var/deep").symlink_to("/data/../var/run/x")
    (tmp_path / "note").write_text("bound")
    image = here().image_at(made(folder, form))
    binds = ((str(tmp_path), "/var/run/mine"), (str(tmp_path / "note"), "/var/deep/note:ro"))
    if runtime == "ch-run":
        binds = (binds[0], (binds[1][0], "/var/deep/note"))
    look = "cat /run/mine/note /var/run/mine/note /run/x/note"
    assert said(Environment(image=image, runtime=runtime, binds=binds), look) == "bound" * 3
    assert not Path("/run/mine").exists()


@pytest.mark.parametrize("runtime", BY_US)
def test_a_place_with_any_name_is_made(runtime: str, folder: Path, tmp_path: Path) -> None:
    name = "a, b\\c=$x" + ("" if runtime == "ch-run" else ":d")
    (folder / "opt" / name).mkdir()
    (tmp_path / "note").write_text("bound")
    bind = (str(tmp_path), f"/opt/{name}/new")
    env = Environment(image=here().image_at(folder), runtime=runtime, binds=(bind,))
    assert said(env, "cat /opt/*/new/note") == "bound"


@pytest.mark.parametrize("runtime", BY_US)
def test_a_file_in_the_way_of_a_bind_is_named(runtime: str, folder: Path, tmp_path: Path) -> None:
    env = Environment(
        image=here().image_at(folder), runtime=runtime, binds=((str(tmp_path), "/etc/hosts/x"),)
    )
    with pytest.raises(EnvironmentRefused, match="Not a directory: '/etc/hosts'") as told:
        here().ready(env)
    assert "\n" not in str(told.value)


def test_a_dry_run_shows_the_whole_command_line(squashfs: Path, project: Path) -> None:
    words = ("exec", "--env", f"{squashfs}@bwrap", "--dry-run", "--json", "--", "true")
    done = subprocess.run([FLOWOS, *words], cwd=project, capture_output=True, check=True)
    argv = json.loads(done.stdout)["argv"]
    assert argv[1] == "--overlay"
    assert Path(argv[4]).name == "bwrap"
    assert not Path(argv[2]).exists()
