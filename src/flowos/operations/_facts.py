"""Facts of a node: runs the collector as a launch, and reads its answer."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from flowos.engine import Node, cached, here, keep
from flowos.model import (
    BARE,
    Argv,
    End,
    Environment,
    Exited,
    Facts,
    Killed,
    Launch,
    MeasureError,
    MeasurementRequest,
    Outcome,
    Pairs,
)
from flowos.probes.facts import read_facts

_LIMIT_SECONDS = 75.0
_KIND = "tried"


def facts(request: MeasurementRequest | None = None) -> Facts:
    """Collect the facts of this node; programs that worked are not tried again while unchanged.

    Raises LaunchFailed or MeasureError, with the collector's complaint, if it cannot be run.
    """
    asked = request or MeasurementRequest()
    return read_facts(collect(asked), asked.nominal)


def facts_on(node: Node, request: MeasurementRequest, of_pool: Argv) -> Facts:
    """Collect the facts of a node that is held; its Python is ours. As `facts`.

    of_pool: as of `measure_command`.
    """
    folder = node.folder() / "programs"
    folder.mkdir(exist_ok=True)
    with as_file(files("flowos.probes").joinpath("programs")) as programs:
        for program in programs.glob("*.py"):
            shutil.copy(program, folder)
    words = (sys.executable, str(folder / "collect.py"), "--scratch", str(request.scratch))
    return read_facts(_with_kept(words, node, node.name), request.nominal, of_pool)


def facts_inside(
    request: MeasurementRequest, env: Environment, programs: Path, node: Node
) -> Facts:
    """Collect the facts of a node as seen from an image that is ready there, by its own Python.

    programs: a copy of our programs, where the image sees it. Raises as `facts`.
    """
    words = ("python3", str(programs / "collect.py"), "--scratch", str(request.scratch))
    return read_facts(_collected(words, env, node.variables(env), node), request.nominal)


def collect(request: MeasurementRequest) -> Mapping[str, object]:
    """The collector's raw answer on this node; see probes/programs/collect.py."""
    with as_file(files("flowos.probes").joinpath("programs")) as programs:
        words = (sys.executable, str(programs / "collect.py"), "--scratch", str(request.scratch))
        return _with_kept((*words, "--deps", _unpacked_packages()), here(), os.uname().nodename)


def _with_kept(words: Argv, node: Node, name: str) -> Mapping[str, object]:
    """The collector's answer, which knows what worked before on the node of this name."""
    key = f"{name} {sys.executable}"
    before = cached(_KIND, key)
    stdin = json.dumps(before).encode()
    found = _collected((*words, "--kept"), BARE, node.variables(BARE), node, stdin)
    if (now := found.get("kept")) not in (None, before):
        keep(_KIND, key, now)
    return found


def _collected(
    words: Argv,
    env: Environment,
    variables: Pairs,
    node: Node | None = None,
    stdin: bytes | None = None,
) -> Mapping[str, object]:
    launch = Launch(argv=words, env=env, variables=variables, limit_seconds=_LIMIT_SECONDS)
    return _answer((node or here()).run(launch, stdin=stdin))


def _unpacked_packages() -> str:
    """The folder where set-up unpacked packages next to a source checkout, or ""."""
    folder = Path(__file__).resolve().parents[3] / ".deps" / "debian"
    return str(folder) if folder.is_dir() else ""


def _answer(outcome: Outcome) -> Mapping[str, object]:
    if outcome.end != Exited(0):
        complaint = outcome.stderr.decode(errors="replace").strip().splitlines()[-1:]
        why = "; ".join([_ending(outcome.end), *complaint])
        raise MeasureError(f"this node cannot be looked at: {why}")
    try:
        answer = json.loads(outcome.stdout)
    except ValueError as error:
        raise MeasureError(f"the collector's answer cannot be read: {error}") from error
    if not isinstance(answer, dict):
        raise MeasureError("the collector's answer is no JSON object")
    return answer


def _ending(end: End) -> str:
    match end:
        case Exited(code):
            return f"the collector exited with {code}"
        case Killed(signal):
            return f"the collector was killed by signal {signal}"
        case _:
            return end.reason
