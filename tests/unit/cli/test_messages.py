"""-q and -v: every command has both, whatever it has to say."""

import argparse
from collections.abc import Iterator

import pytest

from flowos.cli import parser
from flowos.cli._described import options, subparsers
from flowos.cli._messages import heed_messages, note, notes
from flowos.engine._starts import starts


def commands(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for each in subparsers(of).values():
        yield each
        yield from commands(each)


EVERY = {each.prog: each for each in commands(parser(all_options=True))}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    heed_messages(argparse.Namespace(quiet=False, verbose=False))


@pytest.mark.parametrize("prog", EVERY)
def test_every_command_has_both(prog: str) -> None:
    assert {"-q, --quiet", "-v, --verbose"} <= {given for given, _ in options(EVERY[prog])}


@pytest.mark.parametrize(
    ("words", "quiet", "verbose"),
    [
        ("list", False, False),
        ("list -q", True, False),
        ("image ls --quiet", True, False),
        ("image -q ls", True, False),
        ("image ls -v", False, True),
        ("cloud -v sizes", False, True),
        ("exec -v -- ls -q", False, True),
    ],
)
def test_they_may_stand_before_a_subcommand_and_behind_it(
    words: str, quiet: bool, verbose: bool
) -> None:
    args = parser(words.split()[0]).parse_args(words.split())
    assert (args.quiet, args.verbose) == (quiet, verbose)


def test_both_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser("list").parse_args(["list", "-q", "-v"])
    assert "not allowed with argument" in capsys.readouterr().err


def test_quiet_leaves_out_notes_and_keeps_what_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heed_messages(parser("list").parse_args(["list", "-q"]))
    note("written: there")
    notes(["made a new store"], failed=False)
    notes(["cannot be kept"], failed=True)
    assert capsys.readouterr().err == "cannot be kept\n"
    heed_messages(parser("list").parse_args(["list"]))
    note("written: there")
    assert capsys.readouterr().err == "written: there\n"


def test_verbose_says_which_programs_are_started_in_one_line_each_until_another_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heed_messages(parser("list").parse_args(["list", "-v"]))
    starts(lambda: ("sh", "-c", "echo a\necho \x1b[31m"))
    assert capsys.readouterr().err == "flowos list: starts sh -c 'echo a\\necho \\x1b[31m'\n"
    heed_messages(parser("list").parse_args(["list"]))
    starts(lambda: ("sh",))
    assert capsys.readouterr().err == ""
