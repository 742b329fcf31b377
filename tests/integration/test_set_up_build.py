"""tools/setup in a folder of its own, with a fake pip that fails on request."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]

PIP = r"""#!/bin/sh
case "$*" in *--upgrade*) exit 0 ;; esac
echo "$*" ${PYTHONDONTWRITEBYTECODE:+compiled by each process} >>calls
[ "$(wc -l <calls)" -gt "$(cat fails)" ] && exit 0
echo '  error: subprocess-exited-with-error' >&2
echo '  | Traceback (most recent call last):' >&2
echo "  | subprocess.TimeoutExpired: Command '[cmake, --version]' timed out after 10 seconds" >&2
echo '  note: This error originates from a subprocess, and is likely not a problem with pip.' >&2
exit 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nothing to unpack, and a .venv whose Python is the script."""
    for place in ("tools", "src/flowos", ".venv/bin", ".deps/debian/usr/lib/here/blis-pthread"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / ".deps/debian/usr/lib/here/blis-pthread/libblis.so.4").touch()
    shutil.copy(HERE / "tools/setup", tmp_path / "tools")
    (tmp_path / ".venv/bin/python").write_text(PIP)
    (tmp_path / ".venv/bin/python").chmod(0o755)
    return tmp_path


def set_up(folder: Path, *, fails: int) -> subprocess.CompletedProcess[str]:
    (folder / "fails").write_text(str(fails))
    return subprocess.run(
        [folder / "tools/setup", "measure"],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_build_that_fails_once_is_tried_again_and_one_line_says_so(folder: Path) -> None:
    done = set_up(folder, fails=1)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if "pip failed" in line]
    assert "timed out after 10 seconds; once more" in line
    assert (folder / ".venv/.flowos-built").exists()


def test_a_build_that_fails_twice_ends_in_one_line_with_the_reason(folder: Path) -> None:
    done = set_up(folder, fails=9)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "cmake, --version]' timed out after 10 seconds" in line
    assert "Traceback" not in done.stdout
    assert "Traceback" in (folder / ".venv/set-up.log").read_text()
    assert not (folder / ".venv/.flowos-built").exists()


def test_it_is_built_again_only_when_what_it_is_built_from_has_changed(folder: Path) -> None:
    set_up(folder, fails=0)
    set_up(folder, fails=0)
    assert (folder / "calls").read_text().count("-e .") == 1
    (folder / "pyproject.toml").touch()
    set_up(folder, fails=0)
    assert (folder / "calls").read_text().count("-e .") == 2


def test_what_is_set_up_and_tested_is_compiled_once_and_not_by_each_process(folder: Path) -> None:
    set_up(folder, fails=0)
    assert "compiled by each process" not in (folder / "calls").read_text()
    assert "\nunexport PYTHONDONTWRITEBYTECODE\n" in (HERE / "Makefile").read_text()
