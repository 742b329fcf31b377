"""How long a guest may say nothing before it is taken to hang."""

from flowos.drivers.runtimes.qemu import _SILENT_SECONDS, Qemu

SAID_TO_PEOPLE = 31
"""Seconds within which a dead guest is named."""


def test_a_dead_guest_is_named_within_what_people_were_told() -> None:
    assert 0 < _SILENT_SECONDS <= SAID_TO_PEOPLE
    assert Qemu().silent_seconds == _SILENT_SECONDS
