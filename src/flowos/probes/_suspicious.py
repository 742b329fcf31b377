"""Readings that may be wrong carry a note `suspicious` with the reason."""

from collections.abc import Iterable, Sequence

from flowos._dataclasses import replace
from flowos.model import Reading

SUSPICIOUS = "suspicious"


def with_suspicion(readings: Iterable[Reading], reasons: Iterable[str]) -> tuple[Reading, ...]:
    """The readings with these reasons added to those noted before."""
    said = [reason for reason in reasons if reason]
    return tuple(_noted(reading, said) if said else reading for reading in readings)


def crowded(readings: Sequence[Reading], threads: int) -> str:
    """A reason if threads shared cpus; "" if each had its own."""
    cpus = int(dict(readings[0].notes).get("cpus", threads))
    return f"{threads} threads were seen on {cpus} cpus" if cpus < threads else ""


def _noted(reading: Reading, reasons: list[str]) -> Reading:
    before = dict(reading.notes)
    earlier = [before.pop(SUSPICIOUS)] if SUSPICIOUS in before else []
    notes = (*before.items(), (SUSPICIOUS, "; ".join(dict.fromkeys((*earlier, *reasons)))))
    return replace(reading, notes=notes)
