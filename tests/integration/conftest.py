"""What integration tests share."""

import gc
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flowos.engine import run
from flowos.engine._run_folder import session_folder
from flowos.model import Launch

PATIENCE_SECONDS = 30.0


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """What a test launches takes its processes, descriptors and folders along."""
    run(Launch(argv=("true",)))
    gc.collect()
    before = what_is_there()
    yield
    until = time.monotonic() + PATIENCE_SECONDS
    while (left := what_is_there() - before) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left


def what_is_there() -> "Counter[str]":
    """Also what is on its way out: of a test before, or in the kernel."""
    folders = (path.name for path in session_folder().iterdir() if path.is_dir())
    return Counter([*open_descriptors(), *children(), *(f"folder {name}" for name in folders)])


def open_descriptors() -> list[str]:
    """Closed ones drop out, and so does that of the listing itself."""
    found = [path.name for path in Path("/proc/self/fd").iterdir()]
    return [f"descriptor {fd}" for fd in found if Path(f"/proc/self/fd/{fd}").is_symlink()]


def children() -> list[str]:
    """Command lines of processes below this one, zombies too."""
    pids = [
        pid
        for task in Path("/proc/self/task").iterdir()
        for pid in read_or_nothing(task / "children").split()
    ]
    return [f"process {read_or_nothing(Path('/proc', pid, 'cmdline'))}" for pid in pids]


def read_or_nothing(file: Path) -> str:
    """A thread or a process may end while one looks at it."""
    with suppress(OSError):
        return file.read_text()
    return ""


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
            timeout=300,
        )
        assert done.returncode == code, done.stderr
        return done

    return call
