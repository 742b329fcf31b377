"""Images of Debian suites, made as an ordinary user, and entered."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.engine import here
from flowos.model import Environment, EnvironmentRefused, Launch, UsageError
from flowos.operations import image

from .conftest import printed


def test_a_debian_suite_is_an_image_in_which_its_packages_run(debian: Path) -> None:
    assert "Python 3.11" in printed(debian, "/usr/bin/python3", "--version")
    assert "(Open MPI) 4.1.4" in printed(debian, "/usr/bin/mpirun", "--version")
    assert "fio-3" in printed(debian, "/usr/bin/fio", "--version")
    assert "bookworm main" in printed(debian, "/bin/cat", "/etc/apt/sources.list")
    assert "mmdebstrap" not in printed(debian, "/bin/ls", "/etc/apt/apt.conf.d")


def test_python_in_an_image_starts_from_what_was_compiled(debian: Path) -> None:
    script = "import sys, json, asyncio; print(json.__cached__)"
    words = ("/usr/bin/python3", "-v", "-c", script)
    with here().ready(Environment(image=here().image_at(debian), runtime="auto")) as ready:
        outcome = here().run(Launch(argv=words, env=ready.env))
    said = outcome.stderr.decode()
    assert "json/__pycache__/__init__.cpython-311.pyc matches" in said
    assert "bytecode is stale" not in said


def test_a_suite_that_the_disk_is_too_small_for_is_told_with_the_disk(tmp_path: Path) -> None:
    script = (
        f"mount -t tmpfs -o size=30m tmpfs {tmp_path} && TMPDIR={tmp_path} "
        f"XDG_DATA_HOME={tmp_path} exec {sys.executable} -m flowos image build --suite bookworm"
    )
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    told = rf"flowos image: suite bookworm: the disk of {tmp_path}/\S+ is full: make room, or "
    assert re.match(told, done.stderr.splitlines()[-1]), done.stderr


def test_an_unknown_suite_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with pytest.raises(EnvironmentRefused, match="suite nosuch: the archive has no such suite"):
        image.build_image(image.Suite(name="nosuch"), name="x")
    with pytest.raises(UsageError, match="is no name of a suite"):
        image.build_image(image.Suite(name="--help"), name="x")
    assert not (tmp_path / "data/flowos/images").exists()
