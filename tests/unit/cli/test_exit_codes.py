"""One table says what exit codes say: help, the reference and `man` have it whole."""

import argparse
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowos.cli import _exit_codes, parser
from flowos.cli._check import EXITS
from flowos.cli._described import subparsers
from flowos.cli._shared import epilog_text

HERE = Path(__file__).parents[3]


def parser_of(command: str) -> argparse.ArgumentParser:
    top, *rest = command.split()
    found = subparsers(parser(only=top))[top]
    for name in rest:
        found = subparsers(found)[name]
    return found


def said(command: str) -> Iterator[str]:
    """Each row of a command's own codes."""
    for _, rows in _exit_codes.OF_COMMANDS[command]:
        yield from (f"{code} {means}" for code, means in rows)


@pytest.mark.parametrize("command", _exit_codes.OF_COMMANDS)
def test_the_help_of_a_command_has_its_codes(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    helped = parser_of(command).format_help()
    codes = helped[helped.index("\nexit codes") :]
    assert max(map(len, codes.splitlines())) < 50
    assert all(row in " ".join(codes.split()) for row in said(command))


def test_a_command_without_codes_of_its_own_names_none() -> None:
    assert parser_of("list").epilog == "example: flowos list --limit 5"


def test_the_reference_and_man_have_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE / "docs"))
    runpy.run_path(str(HERE / "docs/_generated.py"))["write"](tmp_path / "pages")
    page = (tmp_path / "pages/exit-codes.md").read_text()
    table = [_exit_codes.OF_EVERY_COMMAND]
    table += [rows for each in _exit_codes.OF_COMMANDS.values() for _, rows in each]
    for rows in table:
        assert all(f"\n| {code} | {means} |\n" in page for code, means in rows)
    monkeypatch.setenv("COLUMNS", "78")  # the tool sets it
    pages = dict(runpy.run_path(str(HERE / "tools/man_pages.py"))["pages"]())
    status = pages["flowos"].partition(".SH EXIT STATUS\n")[2].partition("\n.SH")[0]
    assert status.count(".TP\n.B ") == len(_exit_codes.OF_EVERY_COMMAND)
    assert ".B 129, 130, 143\nended by SIGHUP, SIGINT" in status
    assert "exit codes with \\-\\-check:\n  0  no number is worse" in pages["flowos-measure"]


def test_codes_of_answers_are_those_of_the_table() -> None:
    ((_, compared),) = _exit_codes.OF_COMMANDS["compare"]
    assert {code for code, _ in compared} == {*EXITS.values(), 130}
    for code, answer in compared[:3]:
        assert any(code == EXITS[name] and answer.startswith(name) for name in EXITS)


def test_lines_that_one_copies_stay_whole() -> None:
    long = f"example: flowos {'word ' * 30}\n         flowos {'more ' * 30}"
    rows = "exit codes:\n  0        done, as it was asked for\n  128 + N  ended by signal N"
    assert epilog_text(f"{long}\n\n{rows}", 25).splitlines() == [
        *long.splitlines(),
        "",
        "exit codes:",
        "  0        done, as it",
        "           was asked for",
        "  128 + N  ended by",
        "           signal N",
    ]
