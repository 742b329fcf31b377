"""How many rounds would decide an 'inconclusive' verdict, and the command to run them."""

from collections.abc import Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import Design, Run, Unmeasured, Verdict
from flowos.operations.measure._cases import offered
from flowos.operations.measure._own_command import own_command
from flowos.operations.measure._time import minutes_of, overhead_seconds
from flowos.plan import GEOMEAN, rounds_to_decide
from flowos.probes import probes_for

_FIRST_LOOK, *_, _LAST_LOOK = Design(cases=()).looks
_WHEN_QUIET = "measure when the machine has less to do"
_SCATTER = "the rounds scatter too much here for any sensible number to decide"


def with_time_to_decide(run: Run, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The same verdicts; the inconclusive ones also say how many rounds would decide them."""
    found = tuple(replace(v, needed=rounds_to_decide(v) or 0) for v in verdicts)
    return _with_next_steps(run, found)


def with_end(run: Run, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The same of those that a session examined in looks, after the last of which it ends.

    More time does not decide what needs more rounds than these: the command is not shown then.
    """
    found = tuple(replace(v, needed=rounds_to_decide(v) or 0) for v in verdicts)
    ended = {v for v in found if _beyond_last_look(v)}
    open_ = _with_next_steps(run, tuple(v for v in found if v not in ended))
    others = iter(open_)
    return tuple(_at_its_end(v) if v in ended else next(others) for v in found)


def how_to_judge(run: Run, probes: tuple[str, ...], settings: Sequence[Verdict]) -> str:
    """What lets the settings of these probes be judged: as many rounds as a comparison is first
    looked at with, and where all had these, another hour."""
    if settings and all(v.rounds >= _FIRST_LOOK for v in settings):
        return _WHEN_QUIET
    seconds = _FIRST_LOOK * sum(_round_seconds(run, set(probes)).values())
    return f"to mend it: `{_anew(run, minutes_of(seconds), probes)}`"


def _beyond_last_look(v: Verdict) -> bool:
    return v.answer == "inconclusive" and (not v.needed or v.needed > _LAST_LOOK)


def _at_its_end(v: Verdict) -> Verdict:
    would = f"about {v.needed} rounds would decide" if v.needed else _SCATTER
    end = f"a run ends at {_LAST_LOOK}, so more time does not decide it"
    return _because(replace(v, needed=0), f"{would}, and {end}: {_WHEN_QUIET}")


def _with_next_steps(run: Run, found: Sequence[Verdict]) -> tuple[Verdict, ...]:
    commands = {
        probe: _command(run, probe, seconds * max(v.needed for v in found if _of(v) == probe))
        for probe, seconds in _round_seconds(run, {_of(v) for v in found}).items()
    }
    return tuple(_with_next_step(v, commands.get(_of(v), "")) for v in found)


def _of(v: Verdict) -> str:
    """Its probe, which the metric of an overall verdict is."""
    return v.metric if v.probe == GEOMEAN else v.probe


def _command(run: Run, probe: str, seconds: float) -> str:
    if run.request.commands:
        return ""
    return f"for more rounds: `{_anew(run, minutes_of(seconds), (probe,))}`"


def _anew(run: Run, minutes: int, probes: tuple[str, ...]) -> str:
    """The command that measures these probes once more; that of a suite would go on."""
    return own_command(replace(run, request=replace(run.request, suite=None)), minutes, probes)


def _with_next_step(v: Verdict, command: str) -> Verdict:
    return v if v.answer != "inconclusive" else _because(v, command if v.needed else _SCATTER)


def _because(v: Verdict, more: str) -> Verdict:
    return replace(v, why="; ".join(word for word in (v.why, more) if word))


def _round_seconds(run: Run, probes: set[str]) -> dict[str, float]:
    """Approximate seconds of a round of each probe, both turns, for the requested cases."""
    environments = len(run.environments) or 1
    seconds: dict[str, float] = {}
    for probe in (probe for probe in probes_for(environments) if probe.name in probes):
        found = offered(probe, run.facts, run.request, environments)
        if not isinstance(found, Unmeasured):
            each = (probe.seconds(of.case) + overhead_seconds(environments) for of in found)
            seconds[probe.name] = 2 * environments * sum(each)
    return seconds
