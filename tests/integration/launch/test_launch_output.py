"""What a command prints comes back, and never blocks or fills anything."""

import signal
from dataclasses import replace

import pytest

from flowos.engine import Capture, here
from flowos.model import BARE, Killed, Launch

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def sh(script: str) -> Launch:
    return Launch(argv=("sh", "-c", script), variables=here().variables(BARE))


def test_fifty_megabytes_come_through_whole() -> None:
    outcome = here().run(sh(f"head -c {50 << 20} /dev/zero"))
    assert outcome.ok
    assert outcome.stdout == bytes(50 << 20)


def test_two_full_pipes_do_not_block_each_other() -> None:
    script = "for i in 1 2 3; do head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; done"
    outcome = here().run(sh(script))
    assert (len(outcome.stdout), len(outcome.stderr)) == (3_000_000, 3_000_000)


def test_output_beyond_the_bound_is_left_out_in_the_middle_and_said_so() -> None:
    script = "echo first; head -c 1000000 /dev/zero; echo last"
    outcome = here().run(sh(script), captures=(Capture(100), Capture(100)))
    head, tail = outcome.stdout[:50], outcome.stdout[-50:]
    assert (head, tail) == (b"first\n" + bytes(44), bytes(45) + b"last\n")
    assert outcome.stdout[50:-50] == b"\n[flowos: 999911 bytes left out here]\n"


def test_an_endless_printer_is_ended_by_its_limit_within_its_bound() -> None:
    outcome = here().run(
        replace(sh("exec yes"), limit_seconds=0.3), captures=(Capture(10_000), Capture(10_000))
    )
    assert outcome.end == Killed(signal.SIGTERM, "limit")
    assert len(outcome.stdout) < 10_100
