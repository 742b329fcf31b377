"""What `exec`, `shell` and `run` share: how a command in the foreground is run and shown."""

import argparse
import sys
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING

from flowos.cli._commands import NOT_STARTED
from flowos.cli._environment import add_environment, environment_to_enter
from flowos.cli._output import note, print_json
from flowos.model import Exited, FlowosError, Killed, Outcome, UsageError

if TYPE_CHECKING:
    from flowos.operations.exec import ExecPlan, ExecRequest

    Complete = Callable[[ExecRequest], ExecRequest]

_IN_LIBRARY = r"\bimage /\S+/[0-9a-f]{64}\.sqfs"


def add_foreground(
    command: argparse.ArgumentParser, *, required: bool = False, more: str = ""
) -> None:
    """more: what else --json does."""
    add_environment(command, required=required)
    command.add_argument(
        "--cwd", type=PurePath, metavar="DIR", help="folder to start in (default: the current one)"
    )
    command.add_argument(
        "--dry-run", action="store_true", help="show the command line that would be started"
    )
    command.add_argument(
        "--json",
        action="store_true",
        help="say how it ended and what it used: JSON in one line, the last on standard error"
        + more,
    )


def words_after_dashes(words: list[str]) -> tuple[str, ...]:
    return tuple(words[1:] if words[:1] == ["--"] else words)


def run_or_show(args: argparse.Namespace, argv: tuple[str, ...], complete: "Complete") -> int:
    """The exit code: the command's own, or 125 if it did not begin.

    complete: adds to the request what the command itself says: the shell, the entry point.
    """

    def named(words: str) -> str:
        return f"flowos {args.command}: {as_named(words, args.env)}"

    try:
        return _run_or_show(args, argv, complete, named)
    except UsageError:
        raise
    except FlowosError as error:
        print(named(str(error)), file=sys.stderr)
        return NOT_STARTED  # a code that few commands have, as env(1) has it


def _run_or_show(
    args: argparse.Namespace,
    argv: tuple[str, ...],
    complete: "Complete",
    named: Callable[[str], str],
) -> int:
    from flowos.operations.exec import ExecRequest, executed, exit_code, planned

    request = complete(ExecRequest(env=environment_to_enter(args), argv=argv, cwd=args.cwd))
    if args.dry_run:
        _show(planned(request), args.json)
        return 0
    outcome = executed(request, lambda words: note(named(f"note: {words}")))
    if not isinstance(outcome.end, (Exited, Killed)):
        print(named(outcome.end.reason), file=sys.stderr)
    if args.json:
        print_json(_end_as_data(outcome, exit_code(outcome)), indent=None, file=sys.stderr)
    return exit_code(outcome)


def as_named(text: str, env: str | None) -> str:
    """An image of the library is called as the person did, not by its digest."""
    import re

    from flowos.operations.environment import split_runtime

    name, _ = split_runtime(env or "")
    return re.sub(_IN_LIBRARY, lambda _: f"image {name}", text) if name else text


def _end_as_data(outcome: Outcome, code: int) -> dict[str, object]:
    end = {"how": type(outcome.end).__name__, **_plain(outcome.end)}
    return {"exit_code": code, "end": end, "usage": _plain(outcome.usage)}


def _plain(value: object) -> dict[str, object]:
    from flowos.model import to_json

    plain = to_json(value)
    assert isinstance(plain, dict)
    return plain


def _show(plan: "ExecPlan", as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    for words in plan.notes:
        print(f"# {words}")
    print(f"# {plan.environment}, in folder {plan.cwd}")
    import shlex

    print(shlex.join(plan.argv))
