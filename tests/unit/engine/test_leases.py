"""Leases of one pool: what is over is given back before anything says so."""

import json
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from flowos.engine import Here, HoldEvent, Node
from flowos.engine._held_ends import lease_ended
from flowos.engine._leases import Leases
from flowos.engine.slurm._lease_holder import ASKED, LeaseHolder
from flowos.model import Ask, Lost, Pool, SliceRefused, to_plain


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


def test_a_node_that_is_lost_does_not_come_back_with_those_that_are_added() -> None:
    given: list[Node] = []
    leases = Leases(Pool(name="p"), given.extend)
    one, two, three = Here("one"), Here("two"), Here("three")
    held = leases.begin((one, two), Ask(), lambda _: None)
    leases.lose(held, "one", "gone")
    assert leases.add(held, (three,)).nodes == (two, three)
    assert leases.give_back(held, ["two"]).nodes == (three,)
    leases.free(held)
    assert given == [two, three]
    with pytest.raises(SliceRefused, match="it was freed"):
        leases.add(held, (one,))
    assert given == [two, three, one]


def test_an_end_is_told_as_that_of_a_lease_only_where_it_is_one() -> None:
    said = {
        "its job was cancelled": (
            "it has ended: its job was cancelled",
            "the slice has ended: its job was cancelled",
        ),
        "after 3 s": (
            "its lease ended after 3 s",
            "the slice's lease ended after 3 s: ask for more seconds, or free it sooner",
        ),
    }
    for why, (refused, freed) in said.items():
        events: list[HoldEvent] = []
        leases = Leases(Pool(name="p"), lambda _: None)
        held = leases.begin((), Ask(), events.append)
        leases.end(held, why)
        assert leases.find(held.id) == Lost(refused)
        assert events[-1].reason == why
        assert str(lease_ended(why)) == freed


def test_a_lease_that_is_longer_than_a_timer_waits_is_kept(tmp_path: Path) -> None:
    asked = {"pool": Pool(name="p", kind="slurm"), "ask": Ask(lease_seconds=1), "proof": ""}
    (tmp_path / ASKED).write_text(json.dumps(to_plain(asked)))
    holder = LeaseHolder(tmp_path)
    holder.answer("renew", ["1e11"])
    keeps = threading.Thread(target=holder.keep_time, daemon=True)
    keeps.start()
    keeps.join(0.1)
    assert keeps.is_alive()
    holder._ended("it was freed")
    keeps.join()
