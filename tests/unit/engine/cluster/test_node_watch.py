"""Real sockets of this machine stand for nodes: a port on which nothing listens is a kernel's
refusal, one whose datagrams are not read is silence."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flowos.engine.cluster import _node_watch
from flowos.engine.cluster._node_watch import Echo, NodeWatch
from tests.waiting import comes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_node_watch, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(_node_watch, "_ANSWER_SECONDS", 0.05)


@contextmanager
def free_port() -> Iterator[int]:
    """Of UDP, and not given to others: a connected socket gets what its peer sends alone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        held.connect(("127.0.0.1", 9))
        yield held.getsockname()[1]


@contextmanager
def deaf(port: int) -> Iterator[None]:
    """Datagrams to it are taken, and not answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taking:
        taking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taking.bind(("127.0.0.1", port))
        yield


class FakeNode:
    def __init__(self, port: int, *, daemon: bool = True) -> None:
        self.echo = Echo("127.0.0.1", port)
        self.daemon = daemon
        self.asked = self.unreachable = 0

    def answers(self) -> bool:
        self.asked += 1
        return self.daemon

    def why_unreachable(self, ending_seconds: float = 0.0) -> str:  # noqa: ARG002
        self.unreachable += 1
        return ""


class Watched:
    """busy: whether something runs there."""

    def __init__(self, node: FakeNode) -> None:
        self.node, self.busy, self.looks = node, True, 0
        self.watch = NodeWatch(self.nodes)

    def nodes(self) -> list[FakeNode]:
        self.looks += 1
        return [self.node] if self.busy else []

    def looked(self, times: int) -> bool:
        until = self.looks + times
        return comes(lambda: self.looks >= until)

    def thread_is_gone(self) -> bool:
        return comes(lambda: "flowos-nodes" not in [each.name for each in threading.enumerate()])


@contextmanager
def watched(node: FakeNode) -> Iterator[Watched]:
    watched = Watched(node)
    watched.watch.launched(node)
    try:
        yield watched
    finally:
        watched.busy = False
        assert watched.thread_is_gone()


def test_a_node_that_answers_is_left_alone_and_one_that_does_not_any_more_is_told() -> None:
    with free_port() as port, watched(FakeNode(port)) as on:
        assert comes(lambda: on.node.echo.is_heard)
        assert on.looked(3)
        assert on.node.unreachable == 0
        with deaf(port):
            assert comes(lambda: on.node.unreachable)
    assert on.node.asked == 1


def test_where_a_firewall_drops_what_is_sent_the_daemon_is_asked_at_times() -> None:
    with free_port() as port, deaf(port), watched(FakeNode(port)) as on:
        assert on.looked(25)
        assert 1 <= on.node.unreachable <= 3
        assert not on.node.echo.is_heard


def test_a_node_whose_daemon_never_answered_is_never_lost_by_silence() -> None:
    with free_port() as port, watched(FakeNode(port, daemon=False)) as on:
        assert on.looked(25)
        assert on.node.unreachable == 0


def test_nothing_looks_while_nothing_runs_and_a_launch_begins_it_again() -> None:
    with free_port() as port, watched(FakeNode(port)) as on:
        assert on.looked(1)
        on.busy = False
        assert on.thread_is_gone()
        looks = on.looks
        on.busy = True
        on.watch.launched(on.node)
        assert comes(lambda: on.looks > looks + 1)


def test_a_name_that_is_not_known_is_no_answer() -> None:
    node = FakeNode(1)
    node.echo = Echo("no-such-host.invalid", 1)
    with watched(node) as on:
        assert on.looked(2)
        assert not node.echo.is_heard
