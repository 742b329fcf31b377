"""Nodes that have another FlowOS under the path of the driver's, or none."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import flowos
from tests.waiting import PATIENCE_SECONDS

from .box import Box

PROGRAM = Path(__file__).with_name("loads_flowos.py")
VERSION = flowos.__version__


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with Box(apart=True) as box:
        yield box


@pytest.fixture(scope="module")
def home(box: Box) -> Iterator[Path]:
    """A Python and a FlowOS that this machine and both nodes have, each its own copy of them, which
    each test leaves as they were."""
    with TemporaryDirectory(dir="/tmp") as own:
        copy = Path(own, "flowos")
        shutil.copytree(
            Path(str(flowos.__file__)).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
        )
        venv.create(Path(own, "venv"), symlinks=True)
        (packages,) = Path(own, "venv/lib").glob("python*/site-packages")
        lines = [own, *(path for path in sys.path if path.endswith("-packages"))]
        (packages / "flowos.pth").write_text("\n".join(lines))
        for there in places(box, Path(own)):
            shutil.copytree(own, there, symlinks=True)
        yield Path(own)
        for there in places(box, Path(own)):
            shutil.rmtree(there)


def places(box: Box, home: Path) -> list[Path]:
    return [box.folder / node / home.relative_to("/") for node in box.nodes]


@contextmanager
def added_there(box: Box, home: Path, file: str, text: str) -> Iterator[None]:
    """To this file of the nodes' FlowOS."""
    files = [there / "flowos" / file for there in places(box, home)]
    for path in files:
        path.write_text(path.read_text() + text)
    yield
    for path in files:
        shutil.copy2(home / "flowos" / file, path)


def run(box: Box, home: Path, *words: str) -> str:
    """What the program says, by the FlowOS that lies there."""
    python = str(home / "venv/bin/python")
    done = subprocess.run(
        (*box.enter, python, str(PROGRAM), str(box.shared), *words),
        env={**os.environ, **box.variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_copy_is_the_same_flowos(box: Box, home: Path) -> None:
    assert run(box, home) == f"ran {home}/flowos/__init__.py Ask\n"


def test_another_flowos_of_a_node_under_the_same_path_is_said_with_both_versions(
    box: Box, home: Path
) -> None:
    with added_there(box, home, "__init__.py", "\n__version__ = '9.9.9'\n"):
        said = run(box, home)
    assert said == (
        f"failed LaunchFailed task 'which': the worker on node n1 has FlowOS 9.9.9, this is FlowOS "
        f"{VERSION}: {home}/flowos has to be the same folder on both sides\n"
    )


def test_another_flowos_of_the_same_version_is_said_with_a_file(box: Box, home: Path) -> None:
    with added_there(box, home, "model/_ports.py", "# of another change\n"):
        said = run(box, home)
    assert said == (
        f"failed LaunchFailed task 'which': the worker on node n1 has FlowOS {VERSION}, this is "
        f"FlowOS {VERSION}, and model/_ports.py is another file: {home}/flowos has to be the same "
        "folder on both sides\n"
    )


def test_a_module_that_a_node_has_not_is_said_with_the_node(box: Box, home: Path) -> None:
    for there in places(box, home):
        (there / "flowos").rename(there / "away")
    said = run(box, home)
    for there in places(box, home):
        (there / "away").rename(there / "flowos")
    assert said.startswith("failed TaskFailed task 'which' raised ModuleNotFoundError: No module ")
    assert said.endswith("; node n1 does not have it\n")


def test_an_image_is_not_made_ready_by_another_flowos(box: Box, home: Path, tmp_path: Path) -> None:
    """What does so there is of FlowOS whole, not only of what tasks load."""
    image = tmp_path / "image"
    (image / "bin").mkdir(parents=True)
    with added_there(box, home, "engine/environments/_images.py", "# of another change\n"):
        said = run(box, home, str(image))
    assert said == (
        f"failed EnvironmentRefused node n1: it has FlowOS {VERSION}, this is FlowOS {VERSION}, "
        f"and engine/environments/_images.py is another file: {home}/flowos has to be the same "
        "folder on both sides\n"
    )
