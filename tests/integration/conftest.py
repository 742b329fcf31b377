"""What integration tests share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flowos.engine import run
from flowos.engine._run_folder import session_folder
from flowos.model import Launch


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """What a test launches takes its processes, descriptors and folders along."""
    run(Launch(argv=("true",)))
    descriptors, folders, processes = open_descriptors(), run_folders(), children()
    yield
    assert open_descriptors() == descriptors
    assert run_folders() == folders
    assert children() == processes


def run_folders() -> set[str]:
    """What lies in the session's folder, as other tests' slices may."""
    return {path.name for path in session_folder().iterdir() if path.is_dir()}


def open_descriptors() -> list[str]:
    """Closed ones drop out, and so does that of the listing itself."""
    found = [path.name for path in Path("/proc/self/fd").iterdir()]
    return sorted(fd for fd in found if Path(f"/proc/self/fd/{fd}").is_symlink())


def children() -> list[str]:
    """Command lines of processes below this one, zombies too."""
    task = Path("/proc/self/task")
    found = [pid for t in task.iterdir() for pid in (t / "children").read_text().split()]
    return [Path(f"/proc/{pid}/cmdline").read_text() for pid in found]


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}


@pytest.fixture
def flowos(
    tmp_path: Path, variables: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command, whose data goes below tmp_path."""

    def call(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "flowos", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=variables,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        return done

    return call
