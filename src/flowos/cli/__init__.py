"""Reads arguments, prints. The only room that prints."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from flowos.cli._commands import CLOSED_PIPE, COMMANDS, FAILED, NOT_KEPT, USAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_MESSAGES = ("-q", "--quiet", "-v", "--verbose")


def parser(only: str = "", *, all_options: bool = False) -> "argparse.ArgumentParser":
    """The command line with one command's options, or with the names of all commands only.

    all_options: with those of all.

    What a command imports takes time, so that others are not loaded.
    """
    from flowos.cli._shared import CommandParser, Help, Version

    top = CommandParser(
        prog="flowos",
        description="One place to run AI and HPC work, and to measure which machine is right.",
        epilog="example: flowos measure --quick",
        formatter_class=Help,
        allow_abbrev=False,
    )
    top.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    top.add_argument(
        "--set",
        metavar="KEY=VALUE",
        help="a setting for this command, as pools.local.cores=2: see flowos config",
    )
    top.set_defaults(quiet=False, verbose=False)  # of _output
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name in (only,) if only else COMMANDS:
        if only or all_options:
            import_module(f"flowos.cli.{name}").add(commands)
        else:
            commands.add_parser(name, help=COMMANDS[name])
    return top


def script() -> int:
    """`flowos` as a program: `main`, with less work for the interpreter.

    What a start makes stays, so it is not searched for garbage (2 ms); and at its end the
    interpreter does not take itself apart (6 ms): threads are joined and atexit's functions run.
    Only after a person's own code it does: that may have left files open.
    """
    import atexit
    import gc

    _open_closed_streams()  # first: a pipe would get the number of one
    from flowos.cli._interrupts import wake_for_interrupts

    wake_for_interrupts()
    gc.set_threshold(20_000)
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first that is registered is the last that is run
    command, code = _main(sys.argv[1:])
    if command != "run":
        codes.append(code)
    return code


def _leave(codes: list[int]) -> None:
    """Without a code the interpreter ends by itself: what was raised it says, files it closes."""
    import os

    for code in codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(words: list[str] | None = None) -> int:
    """Run one command; the exit code says how it ended.

    0; 1 failed; 2 called wrongly; 3 the answer could not be written; as in a shell 130 interrupted,
    143 by SIGTERM, 129 by SIGHUP, 141 the reader of a pipe is gone. Commands may have others, as
    their help says.
    """
    return _main(sys.argv[1:] if words is None else words)[1]


def _main(words: list[str]) -> tuple[str, int]:
    """The command, "" if none is named, and the exit code.

    All that takes time to be imported is imported in here: an interrupt may come by then.
    """
    _open_closed_streams()
    from flowos.cli._interrupts import raise_on_signals
    from flowos.cli._output import OutputFailed, watch_streams

    watch_streams()
    options, rest = _command_first(words)
    rest = _asked(rest)
    command = rest[0] if rest and rest[0] in COMMANDS else ""
    name = f"flowos {command}".strip()
    try:
        raise_on_signals()
        code = _written(lambda: _run(command, rest, options))
    except OutputFailed as failed:
        code = _not_written(name, failed.__cause__)
    except KeyboardInterrupt as interrupt:
        code = _interrupted(name, interrupt)
    return command, code


def _asked(words: list[str]) -> list[str]:
    """`flowos help COMMAND` is `flowos COMMAND --help`; of help itself it is that of all."""
    if words[:1] != ["help"]:
        return words
    return [*(words[2:] if words[1:2] == ["help"] else words[1:]), "--help"]


def _command_first(words: list[str]) -> tuple[list[str], list[str]]:
    """What each `--set` says; the command, then its words, and -q or -v from before it."""
    messages: list[str] = []
    options: list[str] = []
    while words and (words[0] in _MESSAGES or words[0].partition("=")[0] == "--set"):
        if words[0] in _MESSAGES:
            messages, words = [*messages, words[0]], words[1:]
            continue
        if words == ["--set"]:
            break
        _, is_one, given = words[0].partition("=")
        given, words = (given, words[1:]) if is_one else (words[1], words[2:])
        options.append(given)
    if not words or words[0] not in COMMANDS:
        return options, words
    return options, [words[0], *messages, *words[1:]]


def _interrupted(name: str, interrupt: KeyboardInterrupt) -> int:
    """The exit code, by what ended the command: a signal, or a thread that could not write."""
    from flowos.cli._interrupts import how_ended
    from flowos.cli._output import dropped

    if why := dropped():
        return _not_written(name, why)
    code, word = how_ended()
    print(": ".join((name, word, *map(str, interrupt.args))), file=sys.stderr)
    return code


def _not_written(name: str, error: BaseException | None) -> int:
    from flowos.cli._output import give_up

    give_up()
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE
    why = getattr(error, "strerror", None)
    print(f"{name}: standard output cannot be written: {why}", file=sys.stderr)
    return NOT_KEPT


def _written(act: "Callable[[], int]") -> int:
    """The exit code; what is said, by help and version too, is written."""
    from flowos.cli._output import finish

    try:
        code = act()
    except SystemExit:
        finish()
        raise
    finish()
    return code


def _run(command: str, words: list[str], options: list[str]) -> int:
    """command: "" if none is named. options: what each `--set` says."""
    from flowos.model import FlowosError, UnknownName, UsageError

    name = f"flowos {command}".strip()
    commands = parser(only=command)
    args = commands.parse_args(words)
    try:
        return _act(commands, args, options)
    except (UsageError, UnknownName) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE
    except FlowosError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:  # of a disk or a file where no one could say more about it
        where = f"{error.filename}: " if error.filename else ""
        print(f"{name}: {where}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except MemoryError:
        print(f"{name}: it takes more memory than there is, or ulimit -v lets", file=sys.stderr)
        return FAILED


def _act(
    commands: "argparse.ArgumentParser", args: "argparse.Namespace", options: list[str]
) -> int:
    """Settings are checked, though the command may not read them. Without a command: the help."""
    from flowos.cli._output import apply_verbosity

    apply_verbosity(args)
    if args.command is not None or options:
        _check_current_folder()
    if options:
        from flowos.operations.settings_file import use_options

        use_options(options)
    if args.command is None:
        commands.print_help()
        return 0
    return int(import_module(f"flowos.cli.{args.command}").run(args))


def _open_closed_streams() -> None:
    """Opens one that was closed (<&-): the next file that is opened would get its number.

    Programs that are started find all three. What is itself printed is not lost without a word.
    """
    import os

    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, fd)
            os.set_inheritable(fd, True)
            if null != fd:
                os.close(null)
            own = os.open(os.devnull, os.O_RDONLY) if fd == 1 else fd  # refuses what is written
            setattr(sys, name, os.fdopen(own, "w" if fd else "r", closefd=False))


def _check_current_folder() -> None:
    import os

    from flowos.model import UsageError

    try:
        os.getcwd()  # noqa: PTH109 - pathlib is slow to import
    except OSError as error:
        raise UsageError(
            f"the current folder cannot be used: {error.strerror}; go to another, as with: cd ~"
        ) from error
