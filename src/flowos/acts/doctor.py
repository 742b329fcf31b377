"""`flowos doctor`: look at this node, ask the probes, and say what works."""

from dataclasses import dataclass

from flowos.acts._facts import facts
from flowos.model import Facts, Wanted
from flowos.probes import PROBES
from flowos.probes.doctor import Check, can_measure, diagnose


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The node, each check on it, and whether `flowos measure` has something to do."""

    facts: Facts
    checks: tuple[Check, ...]
    can_measure: bool


def doctor(wanted: Wanted | None = None) -> Diagnosis:
    """Nothing is measured and nothing changed; takes some seconds."""
    node = facts(wanted)
    checks = diagnose(node, PROBES, wanted)
    return Diagnosis(facts=node, checks=checks, can_measure=can_measure(checks))
