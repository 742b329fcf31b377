"""`flowos notebook`: JupyterLab on a node of a pool, at one URL that works here."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from flowos.cli._output import finish, note, print_json
from flowos.cli._shared import add_json, asked_of_pool, positive, top_command

if TYPE_CHECKING:
    from flowos.engine import HoldEvent
    from flowos.operations.notebook import Notebook


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "notebook",
        "flowos notebook --pool gpu --seconds 3600",
    )
    command.add_argument(
        "--pool",
        default="local",
        metavar="NAME",
        help="a pool of flowos.toml, see flowos pools (default: local, this machine)",
    )
    command.add_argument(
        "--nodes",
        type=positive,
        metavar="COUNT",
        help="how many nodes to hold; the notebook is on the first (default: 1)",
    )
    command.add_argument(
        "--seconds",
        type=asked_of_pool("seconds"),
        metavar="TIME",
        help="hold the nodes for so long at most",
    )
    command.add_argument(
        "--dry-run", action="store_true", help="print the command for the node, and start nothing"
    )
    add_json(command)


def run(args: argparse.Namespace) -> int:
    from flowos.operations.notebook import notebook_command, serve_notebook

    if args.dry_run:
        words, nodes = notebook_command(args.pool), args.nodes or 1
        if args.json:
            print_json({"pool": args.pool, "nodes": nodes, "command": words})
        else:
            print(f"# on the first of {nodes} of pool {args.pool}", shlex.join(words), sep="\n")
        return 0
    served: list[Notebook] = []

    def show(notebook: "Notebook") -> None:
        served.append(notebook)
        _show(notebook, as_json=args.json)

    try:
        end = serve_notebook(
            args.pool, args.nodes, args.seconds, on_served=show, on_event=_say_event
        )
    except KeyboardInterrupt:
        if not served:
            raise
        return 0
    if end:
        print(f"flowos notebook: it has ended: {end}", file=sys.stderr)
        return 1
    _say("it was shut down")
    return 0


def _show(notebook: "Notebook", *, as_json: bool) -> None:
    if as_json:
        print_json(notebook, indent=None)
    else:
        print(notebook.url)
    _say(f"on node {notebook.node} of pool {notebook.pool}, until Ctrl-C")
    finish()


def _say_event(event: "HoldEvent") -> None:
    if event.what in ("waiting", "booting"):
        _say(f"{event.what}: {event.reason}")
    elif event.what in ("lost", "ended"):
        print(f"flowos notebook: {event.what}: {event.reason}", file=sys.stderr)


def _say(words: str) -> None:
    note(f"flowos notebook: {words}")
