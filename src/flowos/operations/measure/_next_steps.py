"""How many rounds would decide an 'inconclusive' verdict, and the command to run them."""

import math
from collections.abc import Iterable
from dataclasses import replace

from flowos.model import Run, Unmeasured, Verdict
from flowos.operations.measure._cases import offered
from flowos.operations.measure._time import overhead_seconds
from flowos.plan import rounds_to_tell
from flowos.probes import probes_for

_SLACK = 1.2
"""A run takes a little more than its cases, even without facts."""


def with_time_to_tell(run: Run, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The same verdicts; the inconclusive ones also say how many rounds would decide them."""
    found = tuple(replace(v, needed=rounds_to_tell(v) or 0) for v in verdicts)
    commands = {
        probe: _command(run, probe, seconds * max(v.needed for v in found if v.probe == probe))
        for probe, seconds in _round_seconds(run, {v.probe for v in found}).items()
    }
    return tuple(_with_next_step(v, commands.get(v.probe, "")) for v in found)


def _command(run: Run, probe: str, seconds: float) -> str:
    if run.request.commands:
        return ""
    effort = "" if run.request.effort == "normal" else f"--{run.request.effort} "
    minutes = max(1, math.ceil(_SLACK * seconds / 60))
    return f"for more rounds: `flowos measure {effort}--only {probe} --minutes {minutes}`"


def _with_next_step(v: Verdict, command: str) -> Verdict:
    if v.answer != "inconclusive":
        return v
    would = (
        command
        if v.needed
        else "the rounds scatter too much here for any sensible number to decide"
    )
    return replace(v, why="; ".join(word for word in (v.why, would) if word))


def _round_seconds(run: Run, probes: set[str]) -> dict[str, float]:
    """Approximate seconds of a round of each probe, both turns, for the requested cases."""
    seconds: dict[str, float] = {}
    for probe in (probe for probe in probes_for() if probe.name in probes):
        found = offered(probe, run.facts, run.request)
        if not isinstance(found, Unmeasured):
            each = (probe.seconds(of.case) + overhead_seconds(environments=1) for of in found)
            seconds[probe.name] = 2 * sum(each)
    return seconds
