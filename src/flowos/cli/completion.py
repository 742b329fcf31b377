"""`flowos completion`: completion of commands, options and names in a shell."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from flowos.cli._shared import top_command
from flowos.model import UsageError

_EXAMPLE = (
    "flowos completion bash > ~/.local/share/bash-completion/completions/flowos\n"
    "         flowos completion zsh > ~/.zfunc/_flowos      # a folder of your fpath\n"
    "         flowos completion fish > ~/.config/fish/completions/flowos.fish"
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "completion", _EXAMPLE)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="the script of it")
    what.add_argument(
        "--names", choices=tuple(_NAMES), help="names that there are, one on a line: scripts ask it"
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
    for action in _options(top):
        if kind := _kind(action):
            action.complete = shtab.cmd(  # type: ignore[attr-defined]
                f"flowos completion --names {kind} 2>/dev/null"
            )
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return shtab.complete(top, shell=shell)


def _options(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in dict.fromkeys(action.choices.values()):
                yield from _options(each)
        else:
            yield action


def _kind(action: argparse.Action) -> str:
    """Which names complete it; "" for none."""
    of_options = {"--pool": "pools", "--env": "images", "--only": "probes", "--suite": "suites"}
    for word in action.option_strings:
        return of_options.get(word, "")
    return {"RUN": "runs", "IMAGE": "images"}.get(str(action.metavar), "")


def _probes() -> Iterator[str]:
    from flowos.probes import probes_for

    yield from (probe.name for probe in probes_for())


def _suites() -> Iterator[str]:
    from flowos.probes.suites import SUITES

    yield from SUITES


def _pools() -> Iterator[str]:
    from flowos.operations.settings_file import load_settings

    yield from (pool.name for pool in load_settings().pools)


def _images() -> Iterator[str]:
    from flowos.operations.image import images

    yield from (listed.name for listed in images() if listed.name)


def _runs() -> Iterator[str]:
    from flowos.operations.stored_runs import runs

    yield "last"
    yield from (listed.run.id for listed in runs(None, 50))


_NAMES: dict[str, Callable[[], Iterator[str]]] = {
    "images": _images,
    "pools": _pools,
    "probes": _probes,
    "runs": _runs,
    "suites": _suites,
}
