"""What several commands share: the store's and the output's options."""

import argparse
import math
import os
from collections.abc import Sequence

from flowos.cli._commands import COMMANDS


class CommandParser(argparse.ArgumentParser):
    """Says itself what it does not know, with its own usage."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._nearest(unknown)}")
        return found, unknown

    def _nearest(self, unknown: Sequence[str]) -> str:
        """For the first option that is like one of those that there are."""
        from difflib import get_close_matches

        known = list(self._option_string_actions)
        words = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        near = [match for word in words for match in get_close_matches(word, known, 1)]
        return f"; did you mean {near[0]!r}?" if near else ""


class Version(argparse.Action):
    """Looked up when it is asked for: what knows it is slow to import."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: object,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        from importlib.metadata import version

        print(f"flowos {version('flowos-hpc')}")
        parser.exit()


class Once(argparse.Action):
    """An option that is refused if it is given a second time."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        before = getattr(namespace, self.dest, None)
        if before is not None:
            raise argparse.ArgumentError(self, f"given twice: {before} and {values}")
        setattr(namespace, self.dest, values)


class Help(argparse.RawDescriptionHelpFormatter):
    """The words of a command are named in the usage, not only hinted at by dots."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def add_argument(self, action: argparse.Action) -> None:
        """The column of help is right of the longest command, which argparse does not indent."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)


def _columns() -> int:
    """Of the terminal, as argparse asks for each option, and by shutil: 3 ms to import."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def with_example(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    about: str,
    example: str,
    codes: str = "",
) -> argparse.ArgumentParser:
    """A parser whose help ends in an example and, where they say something, the exit codes."""
    return commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=f"example: {example}" + (f"\n\nexit codes: {codes}" if codes else ""),
        formatter_class=Help,
    )


def top_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    example: str,
    codes: str = "",
) -> argparse.ArgumentParser:
    """The parser of one of COMMANDS, as `with_example`."""
    return with_example(commands, name, COMMANDS[name], example, codes)


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--store",
        type=_given,
        metavar="URL",
        help="database of results: an SQLAlchemy URL, or the path of an SQLite file "
        "(default: SQLite in your data folder)",
    )


def _given(word: str) -> str:
    """Refuses what an unset variable of a script leaves."""
    if not word:
        raise argparse.ArgumentTypeError("it is empty: give one, or leave the option out")
    return word


def add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON on standard output")


def add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "run_id",
        nargs="?",
        default="last",
        metavar="RUN",
        help="a run's id, its beginning, or `last` (default)",
    )


def probe_names(word: str) -> tuple[str, ...]:
    """Names with commas between them, for argparse."""
    names = tuple(name.strip() for name in word.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{word!r}: a name is empty; give names, as stream,gemm")
    return names


def share_of_1(word: str) -> float:
    """A number between 0 and 1, for argparse."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a share between 0 and 1")
    return number


def positive(word: str) -> int:
    """A whole number above 0, for argparse."""
    number = int(word) if word.isdecimal() and len(word) < 20 else 0
    if not 1 <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a whole number, 1 to 2**63 - 1")
    return number
