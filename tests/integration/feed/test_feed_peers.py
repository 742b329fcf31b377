"""`fo.Feed` with other nodes of its run: here two feeds of one process, as two nodes."""

import threading
from pathlib import Path

import pytest

import flowos as fo

from .shared import taken
from .test_peers import SECRET, free_addresses


def feeds(data: Path, folder: Path, peers: fo.Peers) -> list[fo.Feed]:
    return [
        fo.Feed(data, folder / f"cache{rank}", batch_size=5, rank=rank, world_size=2, peers=peers)
        for rank in range(2)
    ]


def run(nodes: list[fo.Feed], epoch: int) -> list[str]:
    """The names that both nodes have of an epoch, which they go through together."""
    names: list[list[str]] = [[], []]

    def read(rank: int) -> None:
        names[rank] = taken(nodes[rank].epoch(epoch), nodes[rank])

    threads = [threading.Thread(target=read, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return [*names[0], *names[1]]


def test_what_one_node_has_is_not_read_from_the_source_by_another(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_PEERS_SECRET", SECRET)
    nodes = feeds(data, tmp_path, fo.Peers(nodes=free_addresses(2), timeout_seconds=60.0))
    for epoch in range(4):
        assert len(set(run(nodes, epoch))) == 100
    stats = [feed.stats() for feed in nodes]
    ahead = sum(one.source_samples for one in stats) - 100
    assert 0 <= ahead <= 60  # what was read ahead before the other node had it
    assert sum(one.peer_samples for one in stats) > 20  # of which node depends on which was first
    assert all(one.peer_bytes >= one.peer_samples * 300 for one in stats)
    for feed in nodes:
        feed.close()


@pytest.mark.parametrize(
    ("peers", "why"),
    [
        ({"nodes": ["127.0.0.1:1"]}, "no secret: set secret= or the variable FLOWOS_PEERS_SECRET"),
        ({"nodes": [], "secret": SECRET}, "peers have no nodes"),
        ({"nodes": ["127.0.0.1"], "secret": SECRET}, "127.0.0.1 is no HOST:PORT"),
        ({"nodes": ["127.0.0.1:1"], "secret": "short"}, "a secret of 16 characters at least"),
        ({"nodes": "a:1", "secret": SECRET}, r"nodes='a:1' \(str\); expected \['host:port'"),
        ({"nodes": [7111, 7112], "secret": SECRET}, r"nodes=\[7111, 7112\]"),
        ({"nodes": 1, "secret": SECRET}, r"nodes=1 "),
        ({"nodes": ["a:1", "a:1"], "secret": SECRET}, "a:1 is in nodes= twice"),
        ({"nodes": ["a:1"], "secret": b"sixteen bytes of it"}, "secret is a bytes; expected a str"),
        ({"nodes": ["a:1"], "secret": SECRET, "node_of_rank": [-1, 0]}, r"node_of_rank=\[-1, 0\]"),
        ({"nodes": ["a:1"], "secret": SECRET, "node_of_rank": ["0", "0"]}, "node_of_rank="),
        ({"nodes": ["a:1"], "secret": SECRET, "node_of_rank": [0]}, "1 entries for 2 ranks"),
        ({"nodes": ["a:1"], "secret": SECRET, "node_of_rank": [0, 1]}, "one of 1 nodes"),
    ],
)
def test_peers_that_cannot_be_are_told(
    data: Path, tmp_path: Path, peers: dict[str, object], why: str
) -> None:
    with pytest.raises(fo.FeedError, match=why):
        feeds(data, tmp_path, fo.Peers(**peers))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["timeout_seconds", "rest_seconds"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e9, "2", None, True])
def test_a_time_that_cannot_be_waited_is_refused_in_one_line(
    data: Path, tmp_path: Path, name: str, value: object
) -> None:
    peers = fo.Peers(nodes=["a:1"], secret=SECRET, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(fo.FeedError, match=rf"^Feed: peers: {name}=.*; expected .*$"):
        feeds(data, tmp_path, peers)


@pytest.mark.parametrize("value", [0, 0.0004])
def test_a_peer_has_a_millisecond_at_least_to_answer(
    data: Path, tmp_path: Path, value: float
) -> None:
    peers = fo.Peers(nodes=["a:1"], secret=SECRET, timeout_seconds=value)
    with pytest.raises(fo.FeedError, match=r"timeout_seconds=.*; expected 0\.001 to 86,400"):
        feeds(data, tmp_path, peers)


def test_peers_without_a_cache_are_told(data: Path) -> None:
    peers = fo.Peers(nodes=free_addresses(1), secret=SECRET)
    with pytest.raises(fo.FeedError, match="needs a cache"):
        fo.Feed(data, batch_size=5, peers=peers, rank=0, world_size=1)


def test_the_secret_is_not_shown() -> None:
    assert SECRET not in repr(fo.Peers(nodes=["a:1"], secret=SECRET))
