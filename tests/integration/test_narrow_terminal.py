"""On a terminal of 60 columns no line is wider, and nothing is lost; elsewhere all is as it was."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.cli import main
from flowos.cli._commands import COMMANDS
from flowos.report import read_json
from tests.integration.test_report_command import PROBES, RECORDED, as_run, stored

FLOWOS = Path(sys.executable).with_name("flowos")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    whole = read_json(RECORDED.read_text())
    samples = tuple(s for s in whole.samples if s.case.probe in (*PROBES, "gemm"))
    file = tmp_path_factory.mktemp("narrow") / "runs.db"
    return stored([replace(whole, samples=samples)], file)


def on_terminal(columns: int, *words: str | Path, **variables: str) -> list[str]:
    """What a terminal of so many columns is given."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    env |= {"TERM": "xterm", **variables}
    done = subprocess.Popen((FLOWOS, *words), stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 65536):
            said += more
    except OSError:  # the last that had the other end closed it
        pass
    os.close(ours)
    assert done.wait() == 0
    return said.decode().replace("\r\n", "\n").replace("\x1b[K", "").splitlines()


def wider(lines: list[str], columns: int) -> list[str]:
    """Lines that could have been broken, and were not: a path or a command stays whole."""
    return [line for line in lines if len(line) > columns and len(line.split()) > 1 + ("`" in line)]


def test_a_run_is_shown_in_lines_of_the_terminal_without_a_colour(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = on_terminal(60, "show", "--store", store, NO_COLOR="1")
    assert wider(lines, 60) == []
    assert main(["show", "--store", str(store)]) == 0
    plain = capsys.readouterr().out
    assert sorted(" ".join(lines).split()) == sorted(plain.split())
    assert max(map(len, plain.splitlines())) > 90
    assert "\x1b" not in "".join(lines)


def test_runs_that_are_alike_are_shown_in_lines_of_the_terminal(tmp_path: Path) -> None:
    whole = read_json(RECORDED.read_text())
    whole = replace(whole, samples=tuple(s for s in whole.samples if s.case.probe in PROBES))
    runs = [as_run(whole, n, 1 + n / 1000) for n in range(1, 13)]
    file = stored(runs, tmp_path / "runs.db")
    alike = ("compare", "--axis")
    for words in (("baseline", "--dry-run"), (*alike, "machine"), (*alike, "time")):
        shown = on_terminal(40, *words, "--store", file)
        assert len(shown) > 2
        assert wider(shown, 40) == []


def test_the_variable_columns_counts(store: Path) -> None:
    shown = on_terminal(100, "list", "--store", store, COLUMNS="30")
    assert len(shown) > 1
    assert wider(shown, 30) == []


def test_the_variable_columns_does_not_count_in_a_pipe(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["show", "--store", str(store)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 90


def test_a_solution_and_its_curve_are_as_wide_as_the_terminal() -> None:
    shown = on_terminal(50, "solve", "poisson:12x12x12", "--quiet")
    assert max(map(len, shown)) == 50
    assert shown[-2].endswith("-" * 43)


def test_caches_are_listed_in_lines_of_the_terminal(tmp_path: Path) -> None:
    source, cache = tmp_path / "a folder of samples", tmp_path / "cache"
    source.mkdir()
    (source / "1.bin").write_bytes(b"sample")
    filled = on_terminal(60, "feed", "warm", source, "--cache", cache)
    for words in (("ls", "--cache"), ("stat", "--cache")):
        filled += on_terminal(60, "feed", *words, cache)
    assert len(filled) > 4
    assert wider(filled, 60) == []
    listed = on_terminal(60, "feed", "ls", "--cache", cache)
    assert [line for line in listed if line.startswith("SAMPLES")] == ["SAMPLES    1/1"]
    assert [line for line in listed if line.startswith("IN USE")] == ["IN USE BY  -"]


def test_descriptions_of_commands_are_broken_too() -> None:
    for command in COMMANDS:
        lines = on_terminal(60, command, "--help")
        described = lines[lines.index("") + 1 :]
        assert described[0]
        assert not wider(described[: described.index("")], 58), command


@pytest.mark.parametrize(
    "words",
    [("config", "--all"), ("device", "list"), ("cloud", "sizes"), ("image", "ls"), ("slice", "ls")],
)
def test_lists_are_broken_too(words: tuple[str, ...]) -> None:
    assert not wider(on_terminal(60, *words), 60)
