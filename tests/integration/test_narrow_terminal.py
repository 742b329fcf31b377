"""On a terminal of 60 columns no line is wider, and nothing is lost; elsewhere all is as it was."""

import argparse
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.cli import main, parser
from flowos.cli._commands import COMMANDS
from flowos.cli._described import subparsers
from flowos.engine import Journal, KeptResult
from flowos.probes.suites import SUITES
from flowos.report import read_json
from tests.integration.test_report_command import PROBES, RECORDED, as_run, stored

FLOWOS = Path(sys.executable).with_name("flowos")
HERE = Path(__file__).parents[2]
DECIDE = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHON_COLORS")
"""Variables on which lines and colours depend."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    whole = read_json(RECORDED.read_text())
    samples = tuple(s for s in whole.samples if s.case.probe in (*PROBES, "gemm"))
    file = tmp_path_factory.mktemp("narrow") / "runs.db"
    return stored([replace(whole, samples=samples)], file)


def on_terminal(columns: int, *words: str | Path, **variables: str) -> list[str]:
    """What a terminal of so many columns is given, but for lines that are wiped out."""
    return said_on_terminal(columns, [FLOWOS, *words], variables).replace("\x1b[K", "").splitlines()


def said_on_terminal(columns: int, words: Sequence[str | Path], variables: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in DECIDE}
    env |= {"TERM": "xterm", **variables}
    done = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 65536):
            said += more
    except OSError:  # the last that had the other end closed it
        pass
    os.close(ours)
    assert done.wait() == 0
    return said.decode().replace("\r\n", "\n")


SAYS_EACH = """
import json, pickle, sys
from flowos.cli import main
for look in sys.argv[2:]:
    from flowos.operations.measure import _run
    _run.facts = lambda _: pickle.load(open(look, "rb"))
for words in json.loads(sys.argv[1]):
    try:
        assert main(words) == 0
    except SystemExit as end:
        assert not end.code
    print("\f", end="", flush=True)
"""


def each_said_on_terminal(
    columns: int, commands: Sequence[Sequence[str | Path]], variables: dict[str, str], *look: Path
) -> list[str]:
    """What each of these commands says; one process for all. look: with facts of this machine."""
    called = json.dumps([[str(word) for word in words] for words in commands])
    said = said_on_terminal(columns, [sys.executable, "-c", SAYS_EACH, called, *look], variables)
    *found, end = said.split("\f")
    assert (len(found), end) == (len(commands), "")
    return found


def each_on_terminal(
    columns: int, *commands: Sequence[str | Path], look: Sequence[Path] = ()
) -> list[list[str]]:
    """As `on_terminal`, of each of these commands."""
    said = each_said_on_terminal(columns, commands, {}, *look)
    return [text.replace("\x1b[K", "").splitlines() for text in said]


def wider(lines: list[str], columns: int) -> list[str]:
    """Lines that could have been broken, and were not: a path or a command stays whole."""
    words = {line: re.sub(r"`[^`]*`", "command", line).split() for line in lines}
    return [line for line in lines if len(line) > columns and len(words[line]) > 1]


def test_a_run_is_shown_in_lines_of_the_terminal(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = on_terminal(60, "show", "--store", store)
    assert wider(lines, 60) == []
    assert main(["show", "--store", str(store)]) == 0
    plain = capsys.readouterr().out
    assert sorted(" ".join(lines).split()) == sorted(plain.split())
    assert max(map(len, plain.splitlines())) > 90


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}])
def test_nothing_of_our_own_has_a_colour(store: Path, variables: dict[str, str]) -> None:
    commands = (("show", "--store", store), ("list", "--store", store), ("config", "--all"))
    for said in each_said_on_terminal(60, commands, variables):
        assert said.endswith("\n")
        assert "\x1b" not in said


def test_no_color_leaves_out_those_of_help() -> None:
    found = subprocess.check_output((HERE / "tools/pythons",), text=True).splitlines()
    coloured_python = dict(line.split(maxsplit=1) for line in found).get("3.14")
    if not coloured_python:
        pytest.skip("no Python 3.14 here, whose help has colours")
    program = (
        f"import sys; sys.path.insert(0, {str(HERE / 'src')!r}); from flowos.cli import main; "
    )
    words = [coloured_python, "-I", "-B", "-c", f"{program}main(['list', '--help'])"]
    coloured = said_on_terminal(80, words, {})
    plain = said_on_terminal(80, words, {"NO_COLOR": "1"})
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_runs_that_are_alike_are_shown_in_lines_of_the_terminal(tmp_path: Path) -> None:
    whole = read_json(RECORDED.read_text())
    whole = replace(whole, samples=tuple(s for s in whole.samples if s.case.probe in PROBES))
    runs = [as_run(whole, n, 1 + n / 1000) for n in range(1, 13)]
    file = stored(runs, tmp_path / "runs.db")
    alike = ("compare", "--axis")
    commands = (("baseline", "--dry-run"), (*alike, "machine"), (*alike, "time"))
    for shown in each_on_terminal(40, *((*words, "--store", file) for words in commands)):
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
    commands = (("warm", source, "--cache"), ("ls", "--cache"), ("stat", "--cache"))
    warmed, listed, stat = each_on_terminal(60, *(("feed", *words, cache) for words in commands))
    filled = [*warmed, *listed, *stat]
    assert len(filled) > 4
    assert wider(filled, 60) == []
    assert [line for line in listed if line.startswith("SAMPLES")] == ["SAMPLES    1/1"]
    assert [line for line in listed if line.startswith("IN USE")] == ["IN USE BY  -"]


def test_descriptions_of_commands_are_broken_too() -> None:
    shown = each_on_terminal(60, *((command, "--help") for command in COMMANDS))
    for command, lines in zip(COMMANDS, shown, strict=True):
        described = lines[lines.index("") + 1 :]
        assert described[0]
        assert not wider(described[: described.index("")], 58), command


def parsers_within(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield of
    for each in subparsers(of).values():
        yield from parsers_within(each)


@pytest.mark.parametrize("top", COMMANDS)
def test_help_is_broken_but_for_commands_that_one_copies(
    top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for command in parsers_within(subparsers(parser(only=top))[top]):
        _, described = command.format_help().split("\n\n", 1)  # behind the usage
        before, example = described.split("example: ")
        copied, *codes = example.split("\n\n")
        assert "flowos " in copied
        assert not wider([*before.splitlines(), *"".join(codes).splitlines()], 60), command.prog


@pytest.fixture
def slice_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of one that a program held, in a folder of data of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    Path("flowos.toml").write_text('[pools.test]\nkind = "fake"\nnodes = 2\n')
    program = "import flowos as fo\nwith fo.slice(pool='test', nodes=2): ..."
    subprocess.run((sys.executable, "-c", program), check=True)
    (found,) = json.loads(subprocess.check_output((FLOWOS, "slice", "ls", "--json")))
    return str(found["id"])


def test_a_slice_is_shown_in_lines_of_the_terminal(
    slice_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [("slice", what, slice_id) for what in ("show", "log")]
    for words, lines in zip(commands, each_on_terminal(40, *commands), strict=True):
        assert not wider(lines, 40)
        assert main([*words]) == 0
        plain = capsys.readouterr().out
        assert " ".join(lines).split() == plain.split()
        assert max(map(len, plain.splitlines())) > 40


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A program in `flowos ps`: what is said of it, and its command, of 240 columns."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    program = tmp_path / "program.py"
    source = """
        import flowos as fo
        @fo.task
        def one() -> int:
            return 1
        fo.slice(one()).run()
    """
    program.write_text(textwrap.dedent(source))
    words = [sys.executable, str(program)]
    words.append("x" * (239 - len(" ".join(words))))
    subprocess.run(words, check=True)
    head, command = subprocess.check_output((FLOWOS, "ps"), text=True).strip().rsplit("  ", 1)
    assert (command, head[-5:]) == (" ".join(words), "1 run")
    return head, command


def test_a_command_is_cut_only_where_it_has_no_room(listed: tuple[str, str]) -> None:
    head, command = listed
    assert on_terminal(len(head) + 242, "ps") == [f"{head}  {command}"]
    assert on_terminal(len(head) + 241, "ps") == [f"{head}  {command[:236]}..."]
    assert on_terminal(len(head) + 32, "ps") == [f"{head}  {command[:27]}..."]
    assert on_terminal(60, "ps") == [head, f"    {command[:53]}..."]
    narrow = on_terminal(20, "ps")
    assert " ".join(narrow).split() == [*head.split(), f"{command[:13]}..."]


def test_kept_results_are_shown_in_lines_of_the_terminal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "kept")
    journal.put(KeptResult(key=b"%032d" % 1, label="a_task_of_some_length", when=1e9, body=b"1"))
    journal.close()
    shown = on_terminal(60, "results", tmp_path / "kept")
    assert not wider(shown, 60)
    assert shown[-1].split() == ["a_task_of_some_length"]


@pytest.mark.usefixtures("looked_once")
def test_a_plan_is_shown_in_lines_of_the_terminal_but_for_its_commands(
    capsys: pytest.CaptureFixture[str], look_of_here: Path
) -> None:
    words = ("measure", "--dry-run", "--quick", "--only", "stream,gpu_stream,training")
    assert main([*words, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    commands = {line for step in planned for line in step.get("commands", ())}
    (lines,) = each_on_terminal(30, words, look=[look_of_here])
    assert wider(lines, 60)  # commands
    assert not wider([line for line in lines if line.strip() not in commands], 30)


def test_the_plan_of_a_suite_is_shown_in_lines_of_the_terminal(look_of_here: Path) -> None:
    commands = (("measure", "--suite", suite, "--dry-run") for suite in SUITES)
    shown = each_on_terminal(60, *commands, look=[look_of_here])
    for suite, lines in zip(SUITES, shown, strict=True):
        assert len(lines) > 5, suite
        assert not wider(lines, 60), suite


LISTS = (
    ("config", "--all"),
    ("device", "list"),
    ("cloud", "sizes"),
    ("image", "ls"),
    ("slice", "ls"),
)


def test_lists_are_broken_too() -> None:
    for words, lines in zip(LISTS, each_on_terminal(60, *LISTS), strict=True):
        assert not wider(lines, 60), words
