"""`flowos run`: what an image wants run, or a flow of a Python file."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowos.cli._described import subparsers
from flowos.cli._environment import environment_of
from flowos.cli._foreground import add_foreground, run_or_show, words_after_dashes
from flowos.cli._output import add_messages, apply_verbosity, note, print_json
from flowos.cli._shared import (
    CommandParser,
    asked_of_pool,
    fitting,
    number,
    top_command,
    whole,
)
from flowos.model import Ask, TaskFailed, UsageError, to_json

if TYPE_CHECKING:
    from flowos.engine import HoldEvent
    from flowos.model import Environment, Flow
    from flowos.operations.flow_file import RanFlow


_OF_A_POOL = ("nodes", "idle-seconds", "seconds", "gpus", "topology")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = top_command(
        commands,
        "run",
        "flowos run flow.py --env image.sqfs count=100\n"
        "         flowos run flow.py --pool gpu --nodes 2 count=100\n"
        "         flowos run --env image.sqfs -- --help",
    )
    _add_options(command)
    command.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="FLOW.py[:NAME] [INPUT=VALUE...] | -- [ARG...]",
        help="a flow file, the flow's name in it where it has several, and the flow's inputs; "
        "without one, arguments for what the image runs",
    )


def run(args: argparse.Namespace) -> int:
    from flowos.operations.exec import own_command

    if args.words and _is_flow_file(args.words[0]):
        return _run_flow(_with_later_options(args))
    if args.env is None or args.env == "bare":
        if args.words and Path(args.words[0]).is_file():
            raise UsageError(f"{args.words[0]}: the name of a flow file must end in .py")
        raise UsageError(
            "name a flow file, or an image to be run: flowos run FLOW.py, flowos run --env IMAGE"
        )
    for option in ("out", "journal", "log", "workers", "no-progress", "pool", *_OF_A_POOL):
        if getattr(args, option.replace("-", "_")) not in (None, False, []):
            raise UsageError(f"--{option} is for a flow, and {args.env} is an image")
    return run_or_show(args, words_after_dashes(args.words), own_command)


def _add_options(command: argparse.ArgumentParser) -> None:
    add_foreground(
        command,
        more="; of a flow: its outputs, on standard output, "
        "where null is a number that is infinite or none",
    )
    command.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="OUTPUT=PATH",
        help="write an output of a flow there: a file, text, NAME.npy, NAME.json; may be repeated",
    )
    command.add_argument(
        "--journal",
        metavar="FOLDER",
        help="keep the results of a flow's tasks there, and take from there what is the same",
    )
    command.add_argument(
        "--log",
        metavar="FILE",
        help="add a line for each task of a flow to this file, which flowos show FILE shows with "
        "its timeline",
    )
    command.add_argument(
        "--workers",
        choices=("thread", "process", "inline", "ray"),
        help="where Python tasks of a flow run",
    )
    _add_pool_options(command)
    command.add_argument(
        "--no-progress",
        action="store_true",
        help="do not show on a terminal how far a flow is",
    )


def _add_pool_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--pool",
        metavar="NAME",
        help="run a flow on nodes of this pool of flowos.toml, see flowos pools (default: here)",
    )
    command.add_argument(
        "--nodes",
        type=_node_count,
        metavar="COUNT|MIN:MAX",
        help="how many of the pool's nodes to hold (default: 1); MIN:MAX, as in 0:8: as many as "
        "there is work for",
    )
    command.add_argument(
        "--idle-seconds",
        type=_idle_seconds,
        metavar="TIME",
        help="with MIN:MAX, give a node back that had nothing to do for so long (default: 300)",
    )
    command.add_argument(
        "--seconds",
        type=asked_of_pool("seconds"),
        metavar="TIME",
        help="hold the pool's nodes for so long at most",
    )
    command.add_argument(
        "--gpus",
        type=asked_of_pool("gpus", whole),
        metavar="COUNT",
        help="hold nodes with so many GPUs each (default: as many as a task of the flow needs)",
    )
    command.add_argument(
        "--topology",
        choices=("pack", "spread", "switch"),
        help="hold nodes that are near to each other, far, or on one switch",
    )


def _with_later_options(args: argparse.Namespace) -> argparse.Namespace:
    """Options may stand behind the flow file and between its inputs too."""
    after = _AfterFile(prog="flowos run", add_help=False)
    after.add_argument("-h", "--help", action=_Help, nargs=0)
    _add_options(after)
    add_messages(after)
    after.add_argument("inputs", nargs="*", metavar="INPUT=VALUE")
    args, unknown = after.parse_known_intermixed_args(args.words[1:], args)
    after.refuse(unknown)
    apply_verbosity(args)
    return args


class _AfterFile(CommandParser):
    """Words and options in any order are parsed twice: at first the words are not known."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        return self.parse_what_is_known(args or (), namespace)


class _Help(argparse.Action):
    """That of the command, whose options these are."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: object,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        from flowos.cli import parser as command_line

        subparsers(command_line(only="run"))["run"].print_help()
        parser.exit()


def _is_flow_file(word: str) -> bool:
    return word.endswith(".py") or ".py:" in word


def _run_flow(args: argparse.Namespace) -> int:
    from flowos.operations.flow_file import load_flow, read_places

    if args.cwd is not None:
        raise UsageError(f"--cwd is for an image; a flow runs in this folder: cd {args.cwd} before")
    _check_log(args.log)
    env = _environment(args)
    with _prints_on_stderr() if args.json else nullcontext():
        flow = load_flow(args.words[0])
        places = read_places(flow, args.out)
        pool = _pool(args)
        ran = None if args.dry_run else _ran(flow, args, env, places, pool)
    if ran is None:
        _show_plan(flow, args, env, pool)
        return 0
    _show_outputs(ran.outputs, args.json)
    for why in ran.failed:
        print(f"flowos run: {why}", file=sys.stderr)
    return 1 if ran.failed else 0


def _check_log(file: str | None) -> None:
    if file is not None:
        from flowos.operations.task_log import log_complaint

        try:
            complaint = log_complaint(file)
        except OSError as error:  # its name is too long, or a folder of it is closed to us
            complaint = str(error.strerror)
        if complaint:
            raise UsageError(f"--log {file}: {complaint}")


def _show_outputs(outputs: Mapping[str, object], as_json: bool) -> None:
    from flowos.operations._plain_output import plain_output
    from flowos.operations._whole_numbers import dumped

    plain = {name: plain_output(value) for name, value in outputs.items()}
    if as_json:
        print(dumped(to_json(plain)))
        return
    for name, value in plain.items():
        print(f"{name} = {str(value).rstrip()}")


def _ran(
    flow: "Flow",
    args: argparse.Namespace,
    env: "Environment",
    places: dict[str, Path],
    pool: dict[str, object],
) -> "RanFlow":
    from flowos.operations.flow_file import own_traceback, run_flow

    how = {"workers": args.workers, "journal": args.journal, "log": args.log, "on_note": _say}
    how |= pool
    how["progress"] = not (args.no_progress or args.json or args.quiet)
    try:
        return run_flow(flow, args.inputs, env, places, **how)
    except TaskFailed as error:
        print(own_traceback(error), end="", file=sys.stderr)
        raise


def _show_plan(
    flow: "Flow", args: argparse.Namespace, env: "Environment", pool: dict[str, Any]
) -> None:
    """What would be run; refused is what the run would refuse before it begins, but for inputs that
    are not given yet."""
    from flowos.operations._slice import check_slice
    from flowos.operations.flow_file import needs_words, plain_flow, read_values

    read_values(flow, args.inputs, lacking=True)
    if pool:
        asked = {key: value for key, value in pool.items() if key != "on_event"}
        check_slice(flow, **asked, kernel=env.kernel)
    if args.json:
        of_pool = {"pool": args.pool, "nodes": _plain(args.nodes)} if pool else {}
        print_json({**plain_flow(flow), "environment": env.label, **of_pool})
        return
    where = f", on {_shown(args.nodes)} of pool {args.pool}" if pool else ""
    print(f"# {env.label}{where}")
    for name, words in needs_words(flow).items():
        print(f"# {name} needs {words}")
    print(flow)


def _environment(args: argparse.Namespace) -> "Environment":
    """What is asked for; else that of the pool, if there is one."""
    if args.pool and args.env is None:
        from flowos.operations.settings import pool_named

        args.env = pool_named(args.pool).env
    return environment_of(args)


def _pool(args: argparse.Namespace) -> dict[str, Any]:
    """Keywords of the slice."""
    if args.pool is None:
        for option in _OF_A_POOL:
            if getattr(args, option.replace("-", "_")) is not None:
                raise UsageError(f"--{option} is asked of a pool: add --pool NAME")
        return {}
    asked = {"pool": args.pool, "nodes": args.nodes, "seconds": args.seconds}
    asked |= {"idle_seconds": args.idle_seconds, "topology": args.topology, "gpus": args.gpus}
    return {**asked, "on_event": _say_event}


def _node_count(word: str) -> int | tuple[int, ...]:
    from flowos.plan import NodeRange

    try:
        least, *most = (int(part) for part in word.split(":"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r:.40}: expected 2, or 0:8") from None
    if not most:
        fitting(word, Ask, nodes=least)
        return least
    if len(most) > 1:
        raise argparse.ArgumentTypeError(f"{word!r:.40}: expected 2, or 0:8")
    fitting(word, NodeRange, min_nodes=least, max_nodes=most[0], idle_seconds=1.0)
    return least, most[0]


def _idle_seconds(word: str) -> float:
    from flowos.plan import NodeRange

    seconds = number(word)
    fitting(word, NodeRange, min_nodes=0, max_nodes=1, idle_seconds=seconds)
    return seconds


def _shown(nodes: int | tuple[int, ...] | None) -> str:
    return " to ".join(map(str, nodes)) if isinstance(nodes, tuple) else str(nodes or 1)


def _plain(nodes: int | tuple[int, ...] | None) -> int | list[int]:
    return list(nodes) if isinstance(nodes, tuple) else nodes or 1


def _say_event(event: "HoldEvent") -> None:
    node = f"node {event.node}: " if event.node else ""
    words = f"{node}{event.what}: {event.reason}"
    if event.what in ("waiting", "booting"):
        _say(words)
    elif event.what in ("lost", "ended", "stopped"):
        print(f"flowos run: {words}", file=sys.stderr)


def _say(words: str) -> None:
    note(f"flowos run: {words}")


@contextmanager
def _prints_on_stderr() -> Iterator[None]:
    """What the flow prints, in Python or below it, is no part of the JSON on standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
