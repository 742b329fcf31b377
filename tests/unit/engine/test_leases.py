"""Leases of one pool: what is over is given back before anything says so."""

import threading
from collections.abc import Collection

from flowos.engine._leases import Leases
from flowos.engine._node import Node
from flowos.engine._provider import HoldEvent
from flowos.model import Ask, Pool


def test_freeing_waits_for_the_thread_that_gives_back_what_is_over() -> None:
    """Else the program may end first, and that thread with it: its job would stay held."""
    ending, may_end, given = threading.Event(), threading.Event(), threading.Event()

    def give_back(nodes: Collection[Node]) -> None:  # noqa: ARG001
        ending.set()
        may_end.wait()
        given.set()

    leases = Leases(Pool(name="p"), give_back)
    held = leases.begin((), Ask(), lambda _: None)
    other = threading.Thread(target=leases.end, args=(held, "early"))
    other.start()
    ending.wait()
    threading.Timer(0.05, may_end.set).start()
    leases.free(held)
    assert given.is_set()
    other.join()


def test_what_hears_of_the_end_may_free() -> None:
    given: list[str] = []
    leases = Leases(Pool(name="p"), lambda _: given.append("once"))

    def heard(event: HoldEvent) -> None:
        if event.what == "ended":
            leases.free(held)

    held = leases.begin((), Ask(), heard)
    leases.end(held, "early")
    leases.free(held)
    assert given == ["once"]
