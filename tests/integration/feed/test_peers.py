"""Nodes of one run that give each other what they have: as processes here, and in networks."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

NODES = 4
SAMPLES = 1600
KEPT = SAMPLES // 8  # by each node
EPOCHS = 5
SECRET = "only the nodes of this run know it"
PROGRAM = Path(__file__).with_name("peer_node.py")

Json = dict[str, Any]


class Node:
    """One process; `inside` are the words that start it in its network."""

    def __init__(self, data: Path, cache: Path, rank: int, nodes: list[str], **how: Any) -> None:
        self.rank = rank
        inside, secret = how.get("inside", ()), how.get("secret", SECRET)
        numbers = [str(number) for number in (KEPT, rank, len(nodes), EPOCHS)]
        self._process = subprocess.Popen(
            [*inside, sys.executable, PROGRAM, data, cache, *numbers, secret, *nodes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(self) -> Json:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"node {self.rank} ended"
        told: Json = json.loads(line)
        return told

    def go_on(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        with self._process:
            if self._process.poll() is None:
                self._process.kill()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Small files that begin with their names."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(SAMPLES):
        name = f"{number:04}"
        (folder / name).write_bytes(name.encode() * (10 + number % 90))
    return folder


@pytest.fixture
def start(data: Path, tmp_path: Path) -> Iterator[Callable[..., list[Node]]]:
    with ExitStack() as ends:

        def started(nodes: list[str], **how: Any) -> list[Node]:
            insides = how.pop("insides", [()] * len(nodes))
            secrets = how.pop("secrets", [SECRET] * len(nodes))
            made = [
                Node(data, tmp_path / f"cache{rank}", rank, nodes, inside=inside, secret=secret)
                for rank, (inside, secret) in enumerate(zip(insides, secrets, strict=True))
            ]
            for node in made:
                ends.callback(node.close)
            for node in made:
                assert node.told() == {"ready": True}
            return made

        yield started


def free_addresses(count: int) -> list[str]:
    """Below the ports that the kernel gives to whoever asks for any."""
    with ExitStack() as open_:
        found: list[str] = []
        while len(found) < count:
            port = random.SystemRandom().randrange(15_000, 32_000)
            with suppress(OSError):
                open_.enter_context(socket.socket()).bind(("127.0.0.1", port))
                found.append(f"127.0.0.1:{port}")
        return found


@pytest.fixture
def networks() -> Iterator[tuple[list[str], list[tuple[str, ...]]]]:
    """Four hosts on one bridge: their addresses, and the words that start something on each."""
    if os.getuid() != 0:
        pytest.skip("only root makes networks")
    run = os.getpid() % 100_000  # another run of these tests has networks of its own
    names, bridge = [f"flowos-feed-{run}-{node}" for node in range(NODES)], f"fofeed{run}"
    calls = [f"link add {bridge} type bridge", f"link set {bridge} up"]
    for node, name in enumerate(names):
        calls += [
            f"netns add {name}",
            f"link add {bridge}{node} type veth peer name eth0 netns {name}",
            f"link set {bridge}{node} master {bridge} up",
            f"-n {name} addr add 10.231.77.{node + 1}/24 dev eth0",
            f"-n {name} link set eth0 up",
            f"-n {name} link set lo up",
        ]
    try:
        for call in calls:
            subprocess.run(["ip", *call.split()], check=True, timeout=300)
        addresses = [f"10.231.77.{node + 1}:7531" for node in range(NODES)]
        yield addresses, [("ip", "netns", "exec", name) for name in names]
    finally:
        # The links first: a network lives as long as a process in it.
        links = [f"link del {bridge}{node}" for node in range(NODES)]
        for call in [*links, f"link del {bridge}", *(f"netns del {name}" for name in names)]:
            subprocess.run(["ip", *call.split()], timeout=300, check=False)


def one_epoch(nodes: list[Node]) -> list[Json]:
    for node in nodes:
        node.go_on()
    told = [node.told() for node in nodes]
    seen = [sample for one in told for sample in one["seen"]]
    assert sorted(seen) == list(range(SAMPLES))
    return told


def from_source(nodes: list[Node]) -> list[int]:
    """Samples that came from the source, of all nodes, by epoch."""
    totals = [sum(one["source"] for one in one_epoch(nodes)) for _ in range(EPOCHS)]
    return [now - before for before, now in zip([0, *totals], totals, strict=False)]


def check_theory(nodes: list[Node]) -> None:
    """Together they hold half of the data: that half comes from the source once, and not again.

    What is read ahead at the end of an epoch (two batches per node) counts as the epoch's.
    """
    first, *later = from_source(nodes)
    ahead = NODES * 2 * 8
    assert SAMPLES <= first <= SAMPLES + ahead
    for came in later:
        assert came == pytest.approx(SAMPLES / 2, abs=ahead)
    assert sum(later) == pytest.approx(len(later) * SAMPLES / 2, rel=0.03)


def test_four_nodes_read_from_the_source_what_none_of_them_holds(
    start: Callable[..., list[Node]],
) -> None:
    check_theory(start(free_addresses(NODES)))


def test_four_hosts_read_from_the_source_what_none_of_them_holds(
    start: Callable[..., list[Node]], networks: tuple[list[str], list[tuple[str, ...]]]
) -> None:
    addresses, insides = networks
    check_theory(start(addresses, insides=insides))


def test_without_peers_each_node_is_spared_only_what_it_holds_itself(
    start: Callable[..., list[Node]],
) -> None:
    nodes = start(free_addresses(NODES), secrets=[""] * NODES)
    _, *later = from_source(nodes)
    for came in later:
        assert came == pytest.approx(SAMPLES * 7 / 8, rel=0.05)


def test_a_node_that_is_killed_costs_what_it_held(start: Callable[..., list[Node]]) -> None:
    nodes = start(free_addresses(NODES))
    one_epoch(nodes)
    before = sum(one["source"] for one in one_epoch(nodes)[:3])
    nodes[3].kill()
    for node in nodes[:3]:
        node.go_on()
    told = [node.told() for node in nodes[:3]]
    # They go on, and read all that they had to: each a quarter.
    assert all(len(set(one["seen"])) == SAMPLES // NODES for one in told)
    # Half was cached on no node, and an eighth on the dead one.
    came = sum(one["source"] for one in told) - before
    assert came == pytest.approx(SAMPLES * 3 / 4 * 5 / 8, rel=0.1)
    assert all("its samples come from the source meanwhile" in one["complaint"] for one in told)


def test_a_node_with_another_secret_gets_and_gives_nothing(
    start: Callable[..., list[Node]],
) -> None:
    secrets = [SECRET] * (NODES - 1) + ["another one, long enough"]
    nodes = start(free_addresses(NODES), secrets=secrets)
    one_epoch(nodes)
    told = one_epoch(nodes)
    assert told[3]["peers"] == 0
    assert "another secret" in told[3]["complaint"]
    assert all(one["peers"] > 0 for one in told[:3])
