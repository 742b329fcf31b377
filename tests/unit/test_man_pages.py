"""Pages of `man`: one for each command, of what `--help` says, and clean."""

import subprocess
import sys
from pathlib import Path

import pytest

from flowos.cli._commands import COMMANDS

TOOL = Path(__file__).parents[2] / "tools/man_pages.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as a build makes them: by a Python that has the standard library alone."""
    made = tmp_path_factory.mktemp("man1")
    subprocess.run((sys.executable, "-I", "-S", TOOL, made), check=True)
    return made


def test_there_is_a_page_of_each_command(folder: Path) -> None:
    names = sorted(page.name for page in folder.iterdir())
    assert names == sorted(["flowos.1", *(f"flowos-{name}.1" for name in COMMANDS)])


def test_no_page_has_what_mandoc_complains_of(folder: Path) -> None:
    words = ["mandoc", "-T", "lint", "-W", "warning", *map(str, sorted(folder.iterdir()))]
    complaints = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in complaints if "missing date" not in line] == []


def test_a_page_says_what_help_says(folder: Path) -> None:
    def shown(name: str) -> str:
        words = ("mandoc", "-T", "ascii", "-O", "width=200", folder / name)
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        kept: list[str] = []
        for sign in done.stdout:  # bold is a sign, a backspace and the sign again
            kept.pop() if sign == "\b" else kept.append(sign)
        return "".join(kept)

    assert "flowos-measure(1)" in shown("flowos.1")
    measure = shown("flowos-measure.1")
    assert "--dry-run" in measure
    assert "flowos measure --only stream,gemm --quick" in measure
    assert "FLOWOS FEED WARM" in shown("flowos-feed.1")
