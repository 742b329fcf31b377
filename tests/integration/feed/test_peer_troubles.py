"""Peers that are no peers: slow, unknown, another program. The source has it all too."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

import flowos as fo

from .test_peers import SECRET, free_addresses


def one_of_two(data: Path, folder: Path, peers: fo.Peers) -> fo.Feed:
    return fo.Feed(data, folder / "cache", batch_size=5, rank=0, world_size=2, peers=peers)


def two_epochs(feed: fo.Feed) -> int:
    """In the first one a node reads what is its own; the samples of both."""
    return sum(len(samples) for epoch in range(2) for samples, _ in feed.epoch(epoch))


def silent(guest: socket.socket) -> None:
    with guest, suppress(OSError):
        guest.recv(1)


def a_byte_now_and_then(guest: socket.socket, sent: list[list[int]]) -> None:
    """For minutes, unless the other end goes away; each connection's bytes are noted."""
    sent.append(ours := [])
    with guest, suppress(OSError):
        for byte in b"flowos1\n" + bytes(1000):
            guest.sendall(bytes([byte]))
            ours.append(byte)
            time.sleep(0.2)


@contextmanager
def program_at(address: str, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port))) as server:

        def run() -> None:
            with suppress(OSError):
                while True:
                    guest, _ = server.accept()
                    threading.Thread(target=serve, args=(guest,), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        yield
        server.shutdown(socket.SHUT_RDWR)


def complaint_of(feed: fo.Feed) -> str:
    until = time.monotonic() + 30
    while not (complaint := feed.stats().complaint) and time.monotonic() < until:
        time.sleep(0.05)
    return complaint


def test_a_peer_that_sends_a_byte_now_and_then_is_left_alone(data: Path, tmp_path: Path) -> None:
    mine, theirs = free_addresses(2)
    peers = fo.Peers(nodes=[mine, theirs], secret=SECRET, timeout_seconds=0.5, rest_seconds=600)
    sent: list[list[int]] = []
    serve = partial(a_byte_now_and_then, sent=sent)
    with program_at(theirs, serve), one_of_two(data, tmp_path, peers) as feed:
        with pytest.warns(UserWarning, match=rf"^Feed: peer {theirs}: .* in time"):
            assert two_epochs(feed) == 100
        assert 0 < max(map(len, sent)) < 30  # six seconds of them


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("no-such-host.invalid:7000", "no-such-host.invalid:7000: there is no host of this name"),
        ("[::1]:1", "[::1]:1: "),
    ],
)
def test_a_peer_that_is_not_there_is_named_as_it_was_written(
    data: Path, tmp_path: Path, node: str, why: str
) -> None:
    peers = fo.Peers(nodes=[*free_addresses(1), node], secret=SECRET)
    with (
        one_of_two(data, tmp_path, peers) as feed,
        pytest.warns(UserWarning, match=r"^Feed: peer ") as warned,
    ):
        two_epochs(feed)
    assert f"Feed: peer {why}" in str(warned[0].message)


def test_another_program_at_a_nodes_own_address_is_noticed(data: Path, tmp_path: Path) -> None:
    mine, theirs = free_addresses(2)
    peers = fo.Peers(nodes=[mine, theirs], secret=SECRET, timeout_seconds=0.3)
    with program_at(mine, silent), one_of_two(data, tmp_path, peers) as feed:
        complaint = complaint_of(feed)
        assert complaint.startswith(f"peer {mine}: that is this node, but another program")
        with pytest.warns(UserWarning, match=f"Feed: peer {mine}"):
            feed.close()


def test_the_processes_of_a_node_that_share_its_address_are_no_strangers(
    data: Path, tmp_path: Path
) -> None:
    nodes = free_addresses(1)
    peers = fo.Peers(nodes=nodes, secret=SECRET, timeout_seconds=5.0)
    first, second = (
        fo.Feed(data, tmp_path / "cache", batch_size=5, rank=rank, world_size=2, peers=peers)
        for rank in range(2)
    )
    with first, second:
        time.sleep(2.5)  # two looks
        assert (first.stats().complaint, second.stats().complaint) == ("", "")
