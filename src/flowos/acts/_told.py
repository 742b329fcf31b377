"""What would turn a 'cannot tell' into an answer: how many rounds, and the command for them."""

import math
from collections.abc import Iterable
from dataclasses import replace

from flowos.acts._work import work
from flowos.model import Run, Verdict
from flowos.plan import rounds_to_tell
from flowos.probes import PROBES

_SLACK = 1.2
"""Facts aside, a run takes a little more than its cases."""


def with_time_to_tell(run: Run, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The same verdicts; of those that cannot tell, `why` also says about what would."""
    seconds = _round_seconds(run)
    return tuple(_with_time(run, v, seconds.get(v.probe)) for v in verdicts)


def _round_seconds(run: Run) -> dict[str, float]:
    """About what a round of each probe takes, there and back, for the cases that the run wanted."""
    known = {probe.name for probe in PROBES}
    wanted = replace(run.wanted, probes=tuple(n for n in run.wanted.probes if n in known))
    return {part.probe.name: 2 * part.once_seconds for part in work(run.facts, wanted).parts}


def _with_time(run: Run, v: Verdict, round_seconds: float | None) -> Verdict:
    if v.answer != "cannot tell":
        return v
    rounds = rounds_to_tell(v)
    if rounds is None:
        would = "as they scatter here, no sensible number of rounds would tell"
    elif round_seconds is None:
        would = f"about {rounds} rounds would tell"
    else:
        minutes = math.ceil(_SLACK * rounds * round_seconds / 60)
        effort = "" if run.wanted.effort == "normal" else f"--{run.wanted.effort} "
        command = f"flowos measure {effort}--only {v.probe} --minutes {minutes}"
        would = f"about {rounds} rounds would tell: `{command}`"
    return replace(v, why="; ".join(word for word in (v.why, would) if word))
