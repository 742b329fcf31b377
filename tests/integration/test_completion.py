"""Bash, asked as the completion key asks it; and each shell at a terminal, with its key."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from tests.integration.conftest import called_here

FLOWOS = Path(sys.executable).with_name("flowos")
PATH = f"{FLOWOS.parent}:{os.environ['PATH']}"


@cache
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
        ("flowos pools tw", {"two"}),
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


SHELLS = {"bash": ("bash", "--norc", "--noprofile", "-i"), "zsh": ("zsh", "-f", "-i")}
BEGIN = """\
case $ZSH_VERSION in
  ?*) fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; unset zle_bracketed_paste ;;
  *) source ./script.bash ;;
esac
flowos() {
  if [ "$1" = completion ]; then command flowos "$@"; else printf '{%s}' "$@" over; fi
}
PS1='ready> '
"""
"""A flowos that is not run: its words are printed."""


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to type in, with the script of each shell."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')
    for name in ("prog.py", "a.npy", "my file.mtx"):
        (folder / name).touch()
    (folder / "somewhere").mkdir()
    (folder / "begin").write_text(BEGIN)
    for shell, name in {"bash": "script.bash", "zsh": "_flowos", "fish": "script.fish"}.items():
        (folder / name).write_text(script(shell))
    return folder


TYPED = [
    ("run pro", "run prog.py"),
    ("run --pool tw", "run --pool two"),
    ("pools tw", "pools two"),
    ("run prog.py --no-prog", "run prog.py --no-progress"),
    ("run prog.py n=1 --pool tw", "run prog.py n=1 --pool two"),
    ("run prog.py --out a=1 some", "run prog.py --out a=1 somewhere/"),
    ("list --qui", "list --quiet"),
    ("image inspect --verb", "image inspect --verbose"),
    ("solve a.n", "solve a.npy"),
    ("feed warm some", "feed warm somewhere/"),
    ("report last --out some", "report last --out somewhere/"),
    ("exec -- ls pro", "exec -- ls prog.py"),
    ("exec --env bar", "exec --env bare"),
    ("exec --env pro", "exec --env prog.py"),
    ("exec --bind some", "exec --bind somewhere/"),
    ("he", "help"),
    ("help mea", "help measure"),
    ("measure --only stream,gem", "measure --only stream,gemm"),
    ("measure --only comm", "measure --only comm"),
    ("image build --suite cyclec", "image build --suite cyclec"),
]


def until(out: int, mark: str, seconds: float = 60) -> str:
    """What a terminal shows until then."""
    said, end = "", time.monotonic() + seconds
    while mark not in said and time.monotonic() < end:
        if select.select([out], [], [], 1)[0]:
            said += os.read(out, 65536).decode(errors="replace")
    assert mark in said, said
    return said


@pytest.mark.parametrize("shell", [name for name in SHELLS if shutil.which(name)])
def test_the_key_completes_at_a_terminal(shell: str, typed: Path) -> None:
    terminal, theirs = pty.openpty()
    known = {**os.environ, "PATH": PATH, "TERM": "dumb", "INPUTRC": "/dev/null", "HOME": str(typed)}
    running = subprocess.Popen(
        SHELLS[shell],
        cwd=typed,
        env=known,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        process_group=0,
    )
    os.close(theirs)
    try:
        os.write(terminal, b"source ./begin\n")
        until(terminal, "ready> ")
        for words, whole in TYPED:
            os.write(terminal, f"flowos {words}\t".encode())
            os.write(terminal, b"\n")
            found = re.findall(r"\{([^}]*)\}", until(terminal, "{over}"))[:-1]
            assert " ".join(found).rstrip("/") == whole.rstrip("/")
    finally:
        running.kill()
        running.wait()
        os.close(terminal)


FISH = ("fish", "--no-config", "-c")


@pytest.mark.parametrize(("words", "whole"), TYPED if shutil.which(FISH[0]) else [("", "")])
def test_fish_offers(words: str, whole: str, typed: Path) -> None:
    """Where it is."""
    ask = (*FISH, f"source script.fish; complete -C 'flowos {words}'")
    known = {**os.environ, "PATH": PATH, "HOME": str(typed)}
    if words:
        done = subprocess.run(ask, cwd=typed, env=known, capture_output=True, text=True)
        offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
        assert offered == ([whole.rpartition(" ")[2]] if whole != words else []), done.stderr


def test_ids_that_one_may_ask_for_are_named(tmp_path: Path) -> None:
    program = "import flowos as fo\nwith fo.slice(pool='local'): ..."
    known = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}

    def said(*words: str | Path) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=known, capture_output=True, text=True)
        return done.stdout

    said(sys.executable, "-c", program)
    (listed,) = json.loads(said(FLOWOS, "slice", "ls", "--json"))
    assert said(FLOWOS, "completion", "--names", "slices").split() == [listed["id"]]
    assert listed["id"] in said(FLOWOS, "completion", "--names", "programs").split()


def test_help_and_what_is_misspelt() -> None:
    def said(*words: str) -> str:
        done = called_here([*words], Path.cwd(), dict(os.environ))
        return (done.stdout or done.stderr).splitlines()[-1]

    assert said("help", "list") == said("list", "--help")
    assert said("measure", "--qick").endswith("'--quick'? See flowos measure --help")
    assert said("measure", "--xyzzy").endswith("--xyzzy; see flowos measure --help")
    assert said("completion").endswith("--names is required; see flowos completion --help")
