"""`flowos completion`: completion of commands, options and names in a shell."""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from flowos.cli._commands import COMMANDS
from flowos.cli._shared import top_command
from flowos.model import UsageError

_EXAMPLE = (
    "flowos completion bash > ~/.local/share/bash-completion/completions/flowos\n"
    "         flowos completion zsh > ~/.zfunc/_flowos      # a folder of your fpath\n"
    "         flowos completion fish > ~/.config/fish/completions/flowos.fish"
)
_NEWEST = 50
"""So many ids are offered."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "completion", _EXAMPLE)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="the script of it")
    what.add_argument(
        "--names",
        choices=tuple(_NAMES),
        metavar="KIND",
        help="names that there are, one on a line, for scripts that complete them; a kind is "
        + " or ".join(_NAMES),
    )


def run(args: argparse.Namespace) -> int:
    print("\n".join(_NAMES[args.names]()) if args.names else _script(args.shell))
    return 0


def _script(shell: str) -> str:
    try:
        import shtab
    except ImportError as error:
        raise UsageError("shtab is not installed: pip install shtab") from error
    from flowos.cli import parser

    top = parser(all_options=True)
    _add_help(top)
    for action in _options(top):
        if kind := _kind(action):
            action.complete = _names_in(kind)  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = {**shtab.DIRECTORY, "bash": ""}  # type: ignore[attr-defined]
        elif _is_file(action):
            action.complete = {**shtab.FILE, "bash": ""}  # type: ignore[attr-defined]
        action.metavar = action.dest  # some have a colon, which ends a part of what zsh reads
    text = shtab.complete(top, shell=shell)
    if shell == "zsh":
        return re.sub(_END_OF_OPTIONS, r'\1"*:', text)
    return text.replace("complete -o bashdefault", "complete -o bashdefault -o default")


_END_OF_OPTIONS = r'(_shtab_flowos_run_options=\(\n(?:  .*\n)*?  )"\(-\)\*::'
"""In zsh's script: nothing behind is an option. Of `run` it may be one, behind its file."""
_FOLDERS = ("DIR", "FOLDER")
_FILES = ("BASELINE", "FILE", "MATRIX", "NAME.npy", "PATH", "RECIPE", "SOURCE", "SRC[:DST[:ro]]")
"""Bash completes both by itself: so it knows ~ and quotes, which `compgen` does not."""


def _is_file(action: argparse.Action) -> bool:
    """What follows `--` too: words of another program."""
    return action.nargs == argparse.REMAINDER or action.type is Path or action.metavar in _FILES


def _add_help(top: argparse.ArgumentParser) -> None:
    """The command that only turns into an option."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            about = "the options of a command"
            command = action.add_parser("help", help=about, description=about)
            command.add_argument("command", nargs="?", choices=tuple(COMMANDS), help="this one")


def _names_in(kind: str) -> dict[str, object]:
    """How each shell asks for names, when they are to be completed and not before.

    Of probes there may be several with commas between them; an environment may be a file too.
    """
    ask = f"flowos completion --names {kind} 2>/dev/null"
    bash, zsh, fish = 'compgen -W "$NAMES" -- "$1"', "compadd -a names", f"({ask})"
    if kind == "probes":
        bash = 'case $1 in *,*) set -- "${1##*,}" "${1%,*}," ;; esac\n'
        bash += '  compgen -P "$2" -W "$NAMES" -- "$1"'
        zsh, fish = "_sequence compadd -a names", f"(__fish_complete_list , '{ask}')"
    elif kind == "environments":
        zsh, fish = f"{zsh}; _files", f"{fish} (__fish_complete_path (commandline -ct))"
    function = f"_flowos_{kind}"
    names = f'local -a names=(${{(f)"$({ask})"}})'
    return {
        "bash": function,
        "zsh": f"{{{function}}}",
        "fish": fish,
        "preamble": {
            "bash": f'{function}() {{\n  local NAMES="$({ask})"\n  {bash}\n}}',
            "zsh": f"{function}() {{\n  {names}\n  {zsh}\n}}",
        },
    }


def _options(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in dict.fromkeys(action.choices.values()):
                yield from _options(each)
        else:
            yield action


_OF_OPTIONS = {
    ("--pool", "NAME"): "pools",
    ("--env", "ENV"): "environments",
    ("--env", "IMAGE[@RUNTIME]"): "environments",
    ("--only", "PROBE,..."): "probes",
    ("--suite", "NAME"): "suites",
}
_OF_WORDS = {
    "RUN": "runs",
    "IMAGE": "images",
    "ID": "slices",
    "SLICE|PROCESS|TASK": "programs",
    "POOL": "pools",
}


def _kind(action: argparse.Action) -> str:
    """Which names complete it; "" for none."""
    metavar = str(action.metavar)
    if action.option_strings:
        return _OF_OPTIONS.get((action.option_strings[0], metavar), "")
    return _OF_WORDS.get(metavar, "")


def _probes() -> Iterator[str]:
    from flowos.probes import probes_for

    yield from (probe.name for probe in probes_for() if not probe.info.asked)


def _suites() -> Iterator[str]:
    from flowos.probes.suites import SUITES

    yield from SUITES


def _pools() -> Iterator[str]:
    from flowos.operations.settings_file import load_settings

    yield from (pool.name for pool in load_settings().pools)


def _images() -> Iterator[str]:
    from flowos.operations.image import images

    yield from (listed.name for listed in images() if listed.name)


def _environments() -> Iterator[str]:
    yield "bare"
    yield from _images()


def _slices() -> Iterator[str]:
    from flowos.operations.slices import look_at_all

    yield from (each.id for each in look_at_all(_NEWEST).found)


def _programs() -> Iterator[str]:
    """Of which one asks why: slices, and what uses them."""
    from flowos.operations.processes import look

    yield from _slices()
    yield from (each.id for each in look(_NEWEST).found)


def _runs() -> Iterator[str]:
    from flowos.operations.stored_runs import runs

    yield "last"
    yield from (listed.run.id for listed in runs(None, _NEWEST))


_NAMES: dict[str, Callable[[], Iterator[str]]] = {
    "environments": _environments,
    "images": _images,
    "pools": _pools,
    "probes": _probes,
    "programs": _programs,
    "runs": _runs,
    "slices": _slices,
    "suites": _suites,
}
