"""Facts of this node: the collector is run as any launch is, and its answer read."""

import json
import sys
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from flowos.engine import own_variables, run
from flowos.model import BARE, Environment, Exited, Facts, Launch, MeasureError, Outcome, Wanted
from flowos.probes.facts import read_facts

_LIMIT_SECONDS = 60.0


def facts(wanted: Wanted | None = None, env: Environment = BARE) -> Facts:
    """What is known of this node as seen from `env`, looked up anew.

    LaunchFailed or MeasureError, with what the collector complained of, if it cannot be run.
    """
    asked = wanted or Wanted()
    return read_facts(collect(asked, env), asked.nominal)


def collect(wanted: Wanted, env: Environment = BARE) -> Mapping[str, object]:
    """The collector's raw answer; see probes/programs/collect.py."""
    with as_file(files("flowos.probes").joinpath("programs")) as programs:
        words = (sys.executable, str(programs / "collect.py"), "--scratch", str(wanted.scratch))
        outcome = run(
            Launch(
                argv=(*words, "--deps", _unpacked_packages()),
                env=env,
                variables=own_variables(),
                limit_seconds=_LIMIT_SECONDS,
            )
        )
    return _answer(outcome)


def _unpacked_packages() -> str:
    """The folder where set-up unpacked packages beside a source checkout, or ""."""
    folder = Path(__file__).resolve().parents[3] / ".deps" / "debian"
    return str(folder) if folder.is_dir() else ""


def _answer(outcome: Outcome) -> Mapping[str, object]:
    if outcome.end != Exited(0):
        complaint = outcome.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise MeasureError(f"this node cannot be looked at: {outcome.end} {' '.join(complaint)}")
    try:
        answer = json.loads(outcome.stdout)
    except ValueError as error:
        raise MeasureError(f"the collector's answer cannot be read: {error}") from error
    if not isinstance(answer, dict):
        raise MeasureError("the collector's answer is no JSON object")
    return answer
