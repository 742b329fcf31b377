"""What is acquired of a node's ledger by those that are to be alone on it."""

import threading
import time
from collections import deque

import pytest

from flowos.engine._ledger import ResourceLedger, Resources, granted
from flowos.model import Cancelled, Needs
from tests.askers import NoAsker
from tests.waiting import PATIENCE_SECONDS

ALONE = Needs(alone=True)


def never() -> None:
    """The wait goes on."""


class Overtaken(deque[int]):
    """Idle cores, one of which is taken without asking while another one is being taken."""

    def pop(self) -> int:  # type: ignore[override]
        if len(self) == 3:
            self.popleft()
        return super().pop()


def test_who_is_alone_has_all_cores_or_none() -> None:
    ledger, asker = ResourceLedger(Resources((0, 1, 2), 8)), NoAsker()
    ledger.idle = Overtaken(ledger.idle)
    assert ledger.acquire(ALONE, asker) is None
    assert len(ledger.idle) == 2
    assert [claim.needs for claim in ledger.line] == [ALONE]
    ledger.idle = deque((0, 1, 2))
    grant = ledger.acquire(ALONE, asker)
    assert grant is not None
    assert sorted(grant.cores) == [0, 1, 2]
    assert not ledger.line


def test_what_is_granted_is_waited_for_and_given_back() -> None:
    ledger = ResourceLedger(Resources((0, 1), 8))
    first = ledger.acquire(Needs(), NoAsker())
    assert first is not None

    def give_back() -> None:
        ledger.release(first)
        ledger.wake_askers()

    threading.Timer(0.02, give_back).start()
    with granted(ledger, ALONE, never) as grant:
        assert sorted(grant.cores) == [0, 1]
        assert not ledger.idle
    assert sorted(ledger.idle) == [0, 1]


def test_a_wait_that_is_ended_leaves_the_line() -> None:
    ledger = ResourceLedger(Resources((0, 1), 8))
    assert ledger.acquire(Needs(), NoAsker()) is not None

    def check() -> None:
        raise Cancelled("no more")

    with pytest.raises(Cancelled, match="no more"), granted(ledger, ALONE, check):
        pytest.fail("a core is taken")
    assert not ledger.line
    assert len(ledger.idle) == 1


def test_two_that_are_alone_follow_one_another() -> None:
    ledger, inside, most = ResourceLedger(Resources((0, 1), 8)), [0], [0]

    def hold() -> None:
        with granted(ledger, ALONE, never):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.002)  # another one comes now, if it may
            inside[0] -= 1

    threads = [threading.Thread(target=hold, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert most == [1]
    assert sorted(ledger.idle) == [0, 1]
