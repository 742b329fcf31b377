"""Flows become ready on all nodes at once, and nothing that becomes so too late stays."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import cast

import pytest

from flowos.engine import Node, SliceOptions, _open_slices
from flowos.engine._open_slices import OpenSlices
from flowos.engine._warm_nodes import WarmNodes
from flowos.model import Flow, FlowosError, SliceFreed, SliceRefused, WorkerLost

FLOW, A, B = cast(Flow, "flow"), cast(Node, "a"), cast(Node, "b")
OPTIONS = SliceOptions()


@dataclass(eq=False)
class Opened:
    node: Node
    ended: list[Callable[[], FlowosError]] = field(default_factory=list)

    def end(self, error: Callable[[], FlowosError]) -> None:
        self.ended.append(error)


class Opener:
    """Stands in for `open_slice`: each one waits in `inside`."""

    def __init__(self, inside: Callable[[Node], object]) -> None:
        self.made: list[Opened] = []
        self._inside = inside

    def __call__(self, flow: Flow, node: Node, options: SliceOptions) -> Opened:
        assert (flow, options) == (FLOW, OPTIONS)
        self._inside(node)
        self.made.append(Opened(node))
        return self.made[-1]


def opening(monkeypatch: pytest.MonkeyPatch, inside: Callable[[Node], object]) -> Opener:
    opener = Opener(inside)
    monkeypatch.setattr(_open_slices, "open_slice", opener)
    return opener


@pytest.fixture
def slices() -> OpenSlices:
    return OpenSlices(WarmNodes(in_image=True))


def test_all_nodes_open_at_once_and_each_once(
    slices: OpenSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=30)
    opener = opening(monkeypatch, lambda _: both.wait())
    opened = slices.on_all((A, B), FLOW, OPTIONS)
    assert [each.node for each in cast(list[Opened], opened)] == [A, B]
    assert slices.on_all((A, B), FLOW, OPTIONS) == opened
    assert set(slices.all()) == set(opened)
    assert len(opener.made) == 2
    assert slices.but((A,)) == [B]
    assert slices.on_all((), FLOW, OPTIONS) == []


def test_what_is_asked_for_twice_at_once_is_opened_once(
    slices: OpenSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = opening(monkeypatch, lambda _: threading.Event().wait(0.05))
    with ThreadPoolExecutor(4) as pool:
        found = {pool.submit(slices.on, A, FLOW, OPTIONS) for _ in range(4)}
        assert {future.result() for future in found} == set(cast(list[object], opener.made))
    assert len(opener.made) == 1


def test_why_a_node_cannot_is_raised_and_the_other_stays_ready(
    slices: OpenSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_b(node: Node) -> None:
        if node is B:
            raise SliceRefused("no such image")

    opening(monkeypatch, refuse_b)
    with pytest.raises(SliceRefused, match="no such image"):
        slices.on_all((A, B), FLOW, OPTIONS)
    assert slices.on(A, FLOW, OPTIONS) in slices.all()


def test_what_is_ready_once_its_node_is_gone_is_ended(
    slices: OpenSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> FlowosError:
        return WorkerLost("node a is lost")

    opener = opening(monkeypatch, lambda node: slices.close(node, lost))
    with pytest.raises(WorkerLost, match="node a is lost"):
        slices.on(A, FLOW, OPTIONS)
    assert opener.made[0].ended == [lost]
    assert not slices.has(A)
    assert slices.all() == []


def test_after_its_end_nothing_becomes_ready(
    slices: OpenSlices, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = opening(monkeypatch, lambda _: None)
    slices.end(lambda: SliceFreed("freed"))
    with pytest.raises(SliceFreed):
        slices.on(A, FLOW, OPTIONS)
    assert not opener.made
