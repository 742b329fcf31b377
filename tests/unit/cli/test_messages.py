"""-q and -v: every command has both, whatever it has to say."""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from flowos.cli import notebook, parser, run
from flowos.cli._described import options, subparsers
from flowos.cli._output import apply_verbosity, note, notes
from flowos.engine import HoldEvent, start_detached
from flowos.engine._ask import announce_start


def commands(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for each in subparsers(of).values():
        yield each
        yield from commands(each)


EVERY = {each.prog: each for each in commands(parser(all_options=True))}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    apply_verbosity(argparse.Namespace(quiet=False, verbose=False))


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
    apply_verbosity(parser("list").parse_args(["list", "-q"]))
    note("written: there")
    notes(["made a new store"], failed=False)
    notes(["cannot be kept"], failed=True)
    assert capsys.readouterr().err == "cannot be kept\n"
    apply_verbosity(parser("list").parse_args(["list"]))
    note("written: there")
    assert capsys.readouterr().err == "written: there\n"


@pytest.mark.parametrize(
    ("say", "shown"),
    [
        (run._say_event, ("lost", "ended", "stopped")),
        (notebook._say_event, ("lost", "ended")),
    ],
)
def test_quiet_leaves_out_that_nodes_are_waited_for_and_keeps_that_they_are_gone(
    say: Callable[[HoldEvent], None], shown: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> list[str]:
        for what in get_args(get_type_hints(HoldEvent)["what"]):
            say(HoldEvent(what=what, reason="so it is", node="n1"))
        return [line.split(": ")[-2] for line in capsys.readouterr().err.splitlines()]

    assert said() == ["waiting", "booting", *shown]
    apply_verbosity(parser("list").parse_args(["list", "-q"]))
    assert said() == list(shown)


def test_verbose_says_which_programs_are_started_in_one_line_each_until_another_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    apply_verbosity(parser("list").parse_args(["list", "-v"]))
    announce_start(lambda: ("sh", "-c", "echo a\necho \x1b[31m"))
    assert capsys.readouterr().err == "flowos list: starts sh -c 'echo a\\necho \\x1b[31m'\n"
    apply_verbosity(parser("list").parse_args(["list"]))
    announce_start(lambda: ("sh",))
    assert capsys.readouterr().err == ""


def test_verbose_says_which_programs_outlive_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apply_verbosity(parser("cloud").parse_args(["cloud", "sizes", "-v"]))
    pid = start_detached(("true", "a b"), os.environ, tmp_path / "log")
    os.waitpid(pid, 0)
    assert capsys.readouterr().err == "flowos cloud: starts true 'a b'\n"
    apply_verbosity(parser("list").parse_args(["list"]))
    announce_start(lambda: pytest.fail("words are asked for where nobody listens"))
