"""`flowos config`: the value of each setting, and where it comes from."""

import argparse
from typing import TYPE_CHECKING

from flowos.cli._output import note, print_folded, print_json
from flowos.cli._shared import add_json, top_command

if TYPE_CHECKING:
    from flowos.model import SaidSetting


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(commands, "config", "flowos config --all")
    command.add_argument(
        "--all", action="store_true", help="with the defaults of what the tables leave out"
    )
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.settings import settings_in_force

    found = settings_in_force(defaults=args.all)
    if args.json:
        from dataclasses import asdict

        print_json(asdict(found))
        return 0
    print(f"# {found.files or 'no flowos.toml'}")
    shown = [(_line(each), each.said_at or "default") for each in found.said]
    column = min(60, max((len(line) for line, _ in shown), default=0))
    for line, said_at in shown:
        print_folded(f"{line:<{column}}  # {said_at}")
    for name in found.unused_variables:
        note(f"flowos config: {name}: no table and key has this name")
    return 0


def _line(setting: "SaidSetting") -> str:
    """As it may stand in flowos.toml, a comment if there is no value."""
    import json

    if setting.value is None:
        return f"# {setting.key} is not set"
    value = "{}" if isinstance(setting.value, dict) else json.dumps(setting.value)
    return f"{setting.key} = {value}"
