"""What several commands share: the store's and the output's options."""

import argparse
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from flowos.cli._commands import COMMANDS, USAGE
from flowos.cli._output import add_messages, columns

_MAX_OF_AN_ERROR, _ITS_END = 400, 100


class CommandParser(argparse.ArgumentParser):
    """Says what is wrong in one line: the usage of some commands is twelve. Says itself what it
    does not know."""

    _words: Sequence[str] = ()
    """Those that are parsed."""
    _epilog: str | None = None

    @property
    def epilog(self) -> str | None:
        """With the exit codes of a command, which only help needs."""
        from flowos.cli._exit_codes import codes_text

        codes = codes_text(self.prog.removeprefix("flowos "))
        return "\n\n".join(filter(None, (self._epilog, codes))) or None

    @epilog.setter
    def epilog(self, text: str | None) -> None:
        self._epilog = text

    def error(self, message: str) -> NoReturn:
        words, self._words = self._words, ()
        self.refuse(self._misspelt(words))
        if len(message) > _MAX_OF_AN_ERROR:
            message = f"{message[: _MAX_OF_AN_ERROR - _ITS_END]} ... {message[-_ITS_END:]}"
        message = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
        see = " See" if message.endswith("?") else "; see"
        self.exit(USAGE, f"{self.prog}: error: {message}{see} {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.refuse(self._before_command(args or ()))
        found, unknown = self.parse_what_is_known(args or (), namespace)
        self.refuse(unknown)
        return found, unknown

    def parse_what_is_known(
        self, args: Sequence[str], namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._words = args
        found, unknown = super().parse_known_args(args, namespace)
        self._words = ()
        return found, unknown

    def _misspelt(self, words: Sequence[str]) -> list[str]:
        """Unknown options of a call that fails, as for lack of one that is required.

        Of a parser with commands, and behind a first word of another program, they may be theirs.
        """
        if self._subparsers:
            return []
        of_others = any(action.nargs == argparse.REMAINDER for action in self._actions)
        own = takewhile(lambda w: w != "--" and (w.startswith("-") or not of_others), words)
        names = (word.partition("=")[0] for word in own if word.startswith("--"))
        return [n for n in names if not any(o.startswith(n) for o in self._option_string_actions)]

    def _before_command(self, args: Sequence[str]) -> list[str]:
        """An unknown option there, whose value would be taken for the command."""
        name = args[0].partition("=")[0] if args and self._subparsers else ""
        is_one = name.startswith("--") and name not in ("--", *self._option_string_actions)
        return [name] if is_one else []

    def refuse(self, unknown: Sequence[str]) -> None:
        """Ends the program if there are any."""
        if unknown:
            options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(options)}")

    def _hint(self, options: Sequence[str]) -> str:
        if "--set" in options:
            command = self.prog.removeprefix("flowos ")
            return f"; it goes before the command: flowos --set KEY=VALUE {command}"
        from flowos.cli._described import subparsers

        behind = [o for of in subparsers(self).values() for o in of._option_string_actions]
        for option in options:
            if option in behind:
                return f"; it goes behind the command: {self.prog} COMMAND {option}"
        return _nearest(options, [*self._option_string_actions, *behind])

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Of --x=-- argparse makes an empty list, which no command expects."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "expected a value, given --")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """There are too many commands to list them all in a line."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = _nearest([str(value)], list(action.choices))
            raise argparse.ArgumentError(None, f"there is no command {value!r}{near}")
        super()._check_value(action, value)


def _nearest(words: Sequence[str], known: Sequence[str]) -> str:
    """For the first one that is like one of those that there are."""
    from flowos.model import did_you_mean

    return next(filter(None, (did_you_mean(word, known) for word in words)), "")


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
        super().__init__(prog, width=columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """A description is prose; an epilog has lines."""
        if "\n" in text or text.startswith("example: "):
            return epilog_text(text, width)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)

    def add_argument(self, action: argparse.Action) -> None:
        """The column of help is right of the longest command, which argparse does not indent."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)


def epilog_text(epilog: str, width: int) -> str:
    """What codes say in lines of this width; commands that one copies as they are."""
    from flowos.cli._exit_codes import TITLE

    examples, title, codes = epilog.strip("\n").partition(f"\n\n{TITLE}")
    lines = [line for each in f"{title}{codes}".split("\n") for line in _hanging(each, width)]
    return "\n".join((examples, *lines[1:]))


def _hanging(line: str, width: int) -> list[str]:
    """Below its words, where a line has a code before them."""
    from textwrap import wrap  # help alone needs it

    row = re.match(r"  \S.*?  +", line)
    indent = " " * (row.end() if row else 0)
    return wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def with_example(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    about: str,
    example: str,
) -> argparse.ArgumentParser:
    """A parser whose help ends in an example and, where they say more, the exit codes."""
    command = commands.add_parser(
        name,
        help=about,
        description=about,
        formatter_class=Help,
    )
    command.epilog = f"example: {example}"
    add_messages(command)
    return command


def top_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    example: str,
) -> argparse.ArgumentParser:
    """The parser of one of COMMANDS, as `with_example`."""
    return with_example(commands, name, COMMANDS[name], example)


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--store",
        type=_given,
        metavar="URL",
        help="database of results: the path of an SQLite file, or a postgresql:// URL "
        "(default: SQLite in your data folder)",
    )


def _given(word: str) -> str:
    """Refuses what an unset variable of a script leaves."""
    if not word:
        raise argparse.ArgumentTypeError("it is empty: give one, or leave the option out")
    return word


def given_path(word: str) -> Path:
    """For argparse. An empty word would be the current folder."""
    return Path(_given(word))


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


def number(
    word: str, expected: str = "a number", fits: Callable[[float], bool] = lambda _: True
) -> float:
    """For argparse. Raises ArgumentTypeError for what is none that fits: what is expected."""
    try:
        found = float(word)
    except ValueError:
        found = None
    if found is None or not fits(found):
        raise argparse.ArgumentTypeError(f"{word:.40}: expected {expected}")
    return found


def asked_of_pool(name: str, read: Callable[[str], Any] = number) -> Callable[[str], Any]:
    """For argparse: reads a value that `Ask` has under this name."""

    def asked(word: str) -> Any:
        from flowos.model import Ask

        value = read(word)
        fitting(word, Ask, **{name: value})
        return value

    return asked


def fitting(word: str, noun: Callable[..., object], **values: object) -> None:
    """Raises ArgumentTypeError, for the word, if the noun refuses the values: what is expected."""
    try:
        noun(**values)
    except ValueError as error:
        expected = str(error).partition("; ")[2]
        raise argparse.ArgumentTypeError(f"{word:.40}: {expected}") from None


def share_of_1(word: str) -> float:
    """A number between 0 and 1, for argparse."""
    return number(word, "a share between 0 and 1", lambda given: 0 < given < 1)


def positive(word: str) -> int:
    """A whole number above 0, for argparse."""
    found = int(word) if word.isdecimal() and len(word) < 20 else 0
    if not 1 <= found < 1 << 63:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a whole number, 1 to 2**63 - 1")
    return found


def whole(word: str) -> int:
    """For argparse."""
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word:.40}: expected a whole number") from None
