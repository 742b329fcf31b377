"""Commands of the person, to be measured: after -- of `measure`, by --command of `compare`."""

import argparse
import shlex
from pathlib import Path

from flowos.cli._shared import number
from flowos.model import Argv, MeasurementRequest, UsageError

NAMES_PROBES: tuple[tuple[str, object], ...] = (
    ("only", ()),
    ("matrix", None),
    ("nominal", []),
    ("binary", "same"),
    ("pool", None),
    ("check", None),
    ("suite", None),
)
"""Options of `measure` that are of its own probes, and what they are by default."""
_MAX_MINUTES = 1e300


def add_command(command: argparse.ArgumentParser) -> None:
    _add_ignore_failure(command)
    command.add_argument(
        "argv",
        nargs=argparse.REMAINDER,
        metavar="[-- COMMAND [ARG...]]",
        help="a command of yours instead: its time, processor time and memory; started here without"
        " a shell, with your variables, no input, and its output discarded",
    )


def add_commands(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--command",
        action="append",
        default=[],
        dest="commands",
        metavar="'COMMAND ARG...'",
        help="measure these, interleaved, and compare the others with the first; split as a shell"
        " does, but none runs it: for one write sh -c '...'",
    )
    command.add_argument(
        "--quick", action="store_true", help="with --command: shorter turns, 10 minutes at most"
    )
    command.add_argument(
        "--minutes",
        type=number,
        metavar="M",
        help="with --command: how long measuring may take (default 30; it ends once decided)",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="with --command: show what would run only"
    )
    _add_ignore_failure(command)


def _add_ignore_failure(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--ignore-failure",
        action="store_true",
        help="count runs of a command that fail, too (else one that fails ends it)",
    )


def command_after_dashes(args: argparse.Namespace) -> tuple[Argv, ...]:
    """The command of `measure`; () for none. Raises UsageError for what does not go with one."""
    words = tuple(args.argv)
    if not words:
        if args.ignore_failure:
            raise UsageError("--ignore-failure is of a command of yours: flowos measure -- COMMAND")
        return ()
    if words[0] != "--":
        raise UsageError(
            f"{words[0]!r}: probes are named by --only; a command of yours follows --, as in"
            f" flowos measure -- {words[0]}"
        )
    if len(words) == 1:
        raise UsageError("no command after --; name one: flowos measure -- COMMAND [ARG...]")
    for option, default in NAMES_PROBES:
        if getattr(args, option) != default:
            raise UsageError(f"--{option}: not with a command of yours; leave it out")
    return (words[1:],)


def commands_to_compare(args: argparse.Namespace) -> MeasurementRequest:
    """The request of `compare --command`. Raises UsageError for what does not go with it."""
    for option in ("run_ids", "axis", "base", "only"):
        if getattr(args, option):
            name = "RUN" if option == "run_ids" else f"--{option}"
            raise UsageError(f"{name}: not with --command, which measures anew; leave one out")
    if len(args.commands) < 2:
        raise UsageError("--command: give two or more, the others are compared with the first")
    return MeasurementRequest(
        effort="quick" if args.quick else "normal",
        commands=tuple(map(_split, args.commands)),
        folder=Path.cwd(),
        ignore_failure=args.ignore_failure,
        margin=args.margin,
    )


def without_commands(args: argparse.Namespace) -> None:
    """Raises UsageError for options of --command where there is none."""
    given = {"quick": args.quick, "minutes": args.minutes is not None, "dry-run": args.dry_run}
    for option, value in (given | {"ignore-failure": args.ignore_failure}).items():
        if value:
            raise UsageError(f"--{option}: only with --command")


def seconds_of(minutes: float | None) -> float | None:
    """Raises UsageError unless it is above 0 and below the most, or was not given."""
    if minutes is None:
        return None
    if not 0 < minutes < _MAX_MINUTES:
        raise UsageError(f"--minutes {minutes}: give a number above 0 and below {_MAX_MINUTES:g}")
    return 60 * minutes


def _split(line: str) -> Argv:
    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"--command {line!r}: {str(error).lower()}") from error
