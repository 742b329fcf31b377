"""Bash, asked as the completion key asks it; the other shells read what they are given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FLOWOS = Path(sys.executable).with_name("flowos")
PATH = f"{FLOWOS.parent}:{os.environ['PATH']}"


def script(shell: str) -> str:
    done = subprocess.run((FLOWOS, "completion", shell), capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def bash() -> str:
    return script("bash")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("flowos meas", {"measure"}),
        ("flowos measure --dr", {"--dry-run"}),
        ("flowos feed w", {"warm"}),
        ("flowos measure --only str", {"stream"}),
        ("flowos run f.py --pool tw", {"two"}),
        ("flowos measure --suite c", {"cyclecloud"}),
    ],
)
def test_bash_completes(bash: str, words: str, found: set[str], tmp_path: Path) -> None:
    (tmp_path / "flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')
    ask = f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_flowos"
    done = subprocess.run(
        ("bash", "-c", f'{bash}\n{ask}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'),
        cwd=tmp_path,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert {*done.stdout.split()} == found, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_others_read_theirs(shell: str, tmp_path: Path) -> None:
    text = script(shell)
    assert "dry-run" in text
    if shutil.which(shell):
        (tmp_path / "flowos").write_text(text)
        subprocess.run((shell, "-n", tmp_path / "flowos"), check=True)


def test_help_and_what_is_misspelt() -> None:
    def said(*words: str) -> str:
        done = subprocess.run((FLOWOS, *words), capture_output=True, text=True)
        return (done.stdout or done.stderr).splitlines()[-1]

    assert said("help", "list") == said("list", "--help")
    assert said("measure", "--qick").endswith("'--quick'? See flowos measure --help")
    assert said("measure", "--xyzzy").endswith("--xyzzy; see flowos measure --help")
    assert said("completion").endswith("--names is required; see flowos completion --help")
