"""Runs the trials of probes in each environment, before any case is chosen."""

from collections.abc import Sequence

from flowos._dataclasses import replace
from flowos.model import Facts, FlowosError, Tried
from flowos.operations.measure._binary_cache import BinaryCache
from flowos.operations.measure._environments import PreparedEnvironment
from flowos.operations.measure._words import words_in
from flowos.probes import Probe, allowed_everywhere


def with_trials(
    probes: Sequence[Probe],
    places: Sequence[PreparedEnvironment],
    node: Facts,
    cache: BinaryCache,
) -> tuple[PreparedEnvironment, ...]:
    """The environments, with the results of these probes' trials added."""
    for probe in probes:
        works = {t.name: t.works for t in allowed_everywhere(p.entered for p in places)}
        places = [_tried(probe, works, place, node, cache) for place in places]
    return tuple(places)


def _tried(
    probe: Probe,
    works: dict[str, bool],
    place: PreparedEnvironment,
    node: Facts,
    cache: BinaryCache,
) -> PreparedEnvironment:
    facts = node if place.binary == "same" else place.facts
    trial = probe.trial(facts, works) if isinstance(facts, Facts) else None
    if trial is None:
        return place
    try:
        outcome = place.run(words_in(place, trial.program, cache), trial.program)
    except FlowosError:  # the case that needs it reports why
        return place
    tried = Tried(name=trial.name, works=outcome.ok, says=trial.complaint(outcome))
    return replace(place, entered=replace(place.entered, tried=(*place.entered.tried, tried)))
