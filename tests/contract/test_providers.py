"""What every provider of nodes promises; see flowos.engine._provider. A new kind joins `KINDS`.

What takes a cluster of its own runs these tests by `promises`; see `tests/cluster`.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import (
    Held,
    HeldSlice,
    HoldEvent,
    Provider,
    SliceOptions,
    provider_of,
)
from flowos.model import Ask, Launch, Lost, Pool, PoolKind
from tests.contract.tasks import awaits, double, nap
from tests.waiting import PATIENCE_SECONDS, comes

KINDS: tuple[PoolKind, ...] = ("local", "fake")


@dataclass
class Heard:
    """The events of one slice."""

    events: list[HoldEvent] = field(default_factory=list)

    def __call__(self, event: HoldEvent) -> None:
        self.events.append(event)

    @property
    def whats(self) -> list[str]:
        return [event.what for event in self.events]


_pools = iter(range(1_000_000))


def pool(kind: PoolKind, *script: str, max_seconds: float | None = None) -> Pool:
    """A small one, like no other."""
    name, nodes, cores = f"{kind}{next(_pools)}", 1, None
    if kind != "local":
        nodes, cores = 3, 1
    return Pool(
        name=name, kind=kind, nodes=nodes, cores=cores, script=script, max_seconds=max_seconds
    )


@pytest.fixture(params=KINDS)
def provider(request: pytest.FixtureRequest) -> Provider:
    return provider_of(pool(request.param))


@pytest.fixture(params=[kind for kind in KINDS if kind != "local"])
def several(request: pytest.FixtureRequest) -> Provider:
    """Of a pool with three nodes; this machine is one."""
    return provider_of(pool(request.param))


@pytest.fixture(params=KINDS)
def limited(request: pytest.FixtureRequest) -> Provider:
    """Of a pool that is held for 50 s at most."""
    return provider_of(pool(request.param, max_seconds=50))


@pytest.fixture
def held(provider: Provider) -> Iterator[Held]:
    held = provider.hold(Ask())
    yield held
    provider.free(held)


def promises(*, but: Mapping[str, str]) -> dict[str, Callable[..., None]]:
    """The tests of this file by their names, for a module with fixtures of its own.

    but: those which a pool of that kind cannot pass, each with the reason.
    """
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    assert set(but) < set(tests), "there is a reason for a test that is gone"
    return {name: test for name, test in tests.items() if name not in but}


def names(held: Held) -> list[str]:
    return [node.name for node in held.nodes]


def flow_of(task: fo.Task, kind: object) -> fo.Flow:
    return fo.flow_output(task(fo.flow_input("x", kind)))


DOUBLE, NAP = flow_of(double, fo.int64), flow_of(nap, fo.float64)
AWAITS = flow_of(awaits, fo.str_)


def touched_once(path: Path, true: Callable[[], bool]) -> threading.Thread:
    """What `awaits` the path goes on once this is true."""

    def touch() -> None:
        assert comes(true)
        path.touch()

    thread = threading.Thread(target=touch)
    thread.start()
    return thread


def test_as_many_nodes_are_held_as_were_asked_for(provider: Provider) -> None:
    heard = Heard()
    held = provider.hold(Ask(nodes=provider.pool.nodes), heard)
    assert len(set(names(held))) == provider.pool.nodes
    assert held.pool == provider.pool.name
    assert heard.whats[-1] == "held"
    provider.free(held)


def test_each_slice_has_an_id_of_its_own(provider: Provider, held: Held) -> None:
    other = provider.hold(Ask())
    assert other.id != held.id
    provider.free(other)


def test_what_a_pool_can_never_give_is_refused_at_once(provider: Provider) -> None:
    with pytest.raises(fo.SliceRefused, match=f"pool {provider.pool.name}: 9 nodes asked for"):
        provider.hold(Ask(nodes=9))
    provider.free(provider.hold(Ask(nodes=provider.pool.nodes)))


@pytest.mark.parametrize("ask", [Ask(cores=100_000), Ask(gpus=1000)])
def test_nodes_that_lack_what_is_asked_of_each_are_refused(provider: Provider, ask: Ask) -> None:
    with pytest.raises(fo.SliceRefused, match=f"pool {provider.pool.name}: .* asked for, .* has"):
        provider.hold(ask)


def test_a_device_that_no_node_has_is_refused(provider: Provider) -> None:
    words = f"pool {provider.pool.name}: no node has a device 'fpga'; they have none"
    with pytest.raises(fo.SliceRefused, match=words):
        provider.hold(Ask(devices={"fpga": 1}))


def test_what_ends_with_this_program_is_not_leased(provider: Provider) -> None:
    with pytest.raises(fo.SliceRefused, match="lease_seconds: what it holds ends with this"):
        provider.hold(Ask(lease_seconds=5))


def test_what_is_left_and_has_no_lease_is_freed(provider: Provider) -> None:
    held = provider.hold(Ask())
    provider.leave(held)
    assert isinstance(provider.attach(held.id), Lost)


def test_the_pool_says_what_nodes_it_has(provider: Provider, held: Held) -> None:
    found = {node.name: node for node in provider.nodes()}
    assert len(found) == provider.pool.nodes
    assert set(names(held)) <= set(found)
    assert all(node.cores >= 1 for node in found.values())


def test_a_node_tells_what_it_has_and_runs_flows(held: Held) -> None:
    for node in held.nodes:
        assert len(node.resources().cpus) >= 1
        assert sorted(node.ledger.idle) == sorted(node.resources().cpus)
        assert node.folder().is_dir()
        node.run(Launch(argv=("sleep", "0.2")))
        assert node.look().at > 0.15


def test_freeing_twice_is_once(provider: Provider) -> None:
    held = provider.hold(Ask(nodes=provider.pool.nodes))
    provider.free(held)
    provider.free(held)
    provider.free(provider.hold(Ask(nodes=provider.pool.nodes)))


def test_no_event_comes_after_it_was_freed(provider: Provider) -> None:
    heard = Heard()
    provider.free(provider.hold(Ask(seconds=0.05), heard))
    before = list(heard.events)
    time.sleep(0.15)
    assert heard.events == before


def test_what_is_held_is_found_by_its_id(provider: Provider, held: Held) -> None:
    assert provider.attach(held.id) == held


def test_what_was_freed_or_never_was_is_lost_with_a_reason(provider: Provider) -> None:
    held = provider.hold(Ask())
    provider.free(held)
    for id_ in (held.id, "no-such-slice"):
        found = provider.attach(id_)
        assert isinstance(found, Lost)
        assert found.reason


def test_a_lease_ends_with_an_event_and_gives_all_back(provider: Provider) -> None:
    heard = Heard()
    before = time.time()
    held = provider.hold(Ask(nodes=provider.pool.nodes, seconds=0.05), heard)
    assert held.until is not None
    assert before < held.until < time.time() + 0.05
    assert comes(lambda: heard.whats[-2:] == ["held", "ended"])
    assert comes(lambda: isinstance(provider.attach(held.id), Lost))
    provider.free(held)
    provider.free(provider.hold(Ask(nodes=provider.pool.nodes)))


def test_no_lease_is_longer_than_the_pool_allows(limited: Provider) -> None:
    for seconds in (None, 100.0):
        held = limited.hold(Ask(seconds=seconds))
        assert held.until is not None
        assert held.until < time.time() + 51
        limited.free(held)


def test_resizing_keeps_the_id_and_the_nodes_that_stay(several: Provider) -> None:
    heard = Heard()
    held = several.hold(Ask(nodes=1), heard)
    more = several.resize(held, 3)
    assert (more.id, names(more)[0], len(more.nodes)) == (held.id, names(held)[0], 3)
    less = several.resize(more, 2)
    assert names(less) == names(more)[:2]
    assert several.attach(held.id) == less
    assert heard.whats == ["held", "resized", "resized"]
    several.free(less)


def test_a_refused_resize_leaves_what_is_held_as_it_was(provider: Provider, held: Held) -> None:
    for nodes in (0, 9):
        with pytest.raises(fo.SliceRefused):
            provider.resize(held, nodes)
    assert provider.attach(held.id) == held


def test_what_was_freed_cannot_be_resized(provider: Provider) -> None:
    held = provider.hold(Ask())
    provider.free(held)
    with pytest.raises(fo.SliceRefused, match="it was freed"):
        provider.resize(held, 1)


def test_who_asks_for_more_than_is_free_waits_and_hears_why(several: Provider) -> None:
    first = several.hold(Ask(nodes=2))
    heard, got = Heard(), list[Held]()
    waits = threading.Thread(target=lambda: got.append(several.hold(Ask(nodes=2), heard)))
    waits.start()
    assert comes(lambda: "waiting" in heard.whats)
    assert all(event.reason for event in heard.events if event.what == "waiting")
    assert not got
    several.free(first)
    waits.join(PATIENCE_SECONDS)
    assert heard.whats[-1] == "held"
    several.free(got[0])


def on(provider: Provider, nodes: int = 1, seconds: float | None = None) -> HeldSlice:
    return HeldSlice(provider, Ask(nodes=nodes, seconds=seconds), SliceOptions())


def test_several_flows_run_on_one_slice(provider: Provider) -> None:
    with on(provider) as s:
        assert s.run(DOUBLE, 4) == [8]
        assert s.run(NAP, x=0.0) == [0.0]
        assert s.run(DOUBLE, 5) == [10]
        assert list(s.map(DOUBLE, range(50))) == [[2 * i] for i in range(50)]


def test_runs_go_to_all_nodes(several: Provider) -> None:
    with on(several, 3) as s:
        got: list[object] = []
        runs = [threading.Thread(target=lambda: got.append(s.run(NAP, 0.3))) for _ in range(3)]
        for run in runs:
            run.start()
        assert comes(lambda: sorted(s._busy.values()) == [1, 1, 1])
        for run in runs:
            run.join()
        assert got == [[0.3]] * 3
        assert list(s.map(DOUBLE, range(100))) == [[2 * i] for i in range(100)]


@pytest.mark.parametrize("nodes", [1, 2])
def test_tasks_that_run_flows_on_full_nodes_go_on(several: Provider, nodes: int) -> None:
    """Each lends its core while it waits for its run, and tasks that wait for it are notified."""
    with HeldSlice(several, Ask(nodes=nodes), SliceOptions(cores=1)) as s:

        @fo.task
        def outer(x: fo.float64) -> fo.float64:
            return sum(s.run(NAP, x)[0] for _ in range(2))  # type: ignore[misc]

        flow, got = flow_of(outer, fo.float64), list[object]()

        def run() -> None:
            for _ in range(20):
                got.append(s.run(flow, 0.001))

        threads = [threading.Thread(target=run, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert got == [[0.002]] * 80


def test_what_runs_when_a_slice_is_freed_raises(provider: Provider, tmp_path: Path) -> None:
    s = on(provider)
    got: list[BaseException] = []

    def run() -> None:
        with pytest.raises(fo.SliceFreed) as raised:
            s.run(AWAITS, str(tmp_path / "over"))
        got.append(raised.value)

    thread = threading.Thread(target=run)
    thread.start()
    assert comes(lambda: sum(s._busy.values()) == 1)
    touching = touched_once(tmp_path / "over", lambda: "over" in repr(s))
    s.free()
    touching.join()
    thread.join(PATIENCE_SECONDS)
    assert len(got) == 1
    with pytest.raises(fo.SliceFreed):
        s.run(DOUBLE, 1)


def test_what_runs_when_the_lease_ends_raises(provider: Provider, tmp_path: Path) -> None:
    with on(provider, seconds=0.3) as s:
        touching = touched_once(tmp_path / "over", lambda: "over" in repr(s))
        with pytest.raises(fo.SliceFreed, match=r"lease ended after 0\.3 s"):
            s.run(AWAITS, str(tmp_path / "over"))
        with pytest.raises(fo.SliceFreed, match="lease ended"):
            s.run(DOUBLE, 1)
        touching.join()


def test_a_slice_is_resized_while_it_runs(several: Provider) -> None:
    with on(several) as s:
        assert s.run(DOUBLE, 1) == [2]
        s.resize(3)
        assert len(s.nodes) == 3
        assert list(s.map(DOUBLE, range(9))) == [[2 * i] for i in range(9)]
        s.resize(1)
        assert len(s.nodes) == 1
        assert s.run(DOUBLE, 2) == [4]


def test_the_items_of_a_map_begin_on_all_nodes_at_once(several: Provider, tmp_path: Path) -> None:
    @fo.task
    def meets(name: fo.str_) -> fo.int64:
        (tmp_path / name).touch()
        assert comes(lambda: len(list(tmp_path.iterdir())) == 3)
        return 1

    with HeldSlice(several, Ask(nodes=3), SliceOptions(cores=1)) as s:
        assert list(s.map(flow_of(meets, fo.str_), "abc", ahead=0)) == [[1]] * 3


def test_items_of_a_map_go_to_the_node_that_has_room(several: Provider, tmp_path: Path) -> None:
    @fo.task
    def meets(name: fo.str_) -> fo.int64:
        (tmp_path / name).touch()
        assert name != "0" or comes(lambda: len(list(tmp_path.iterdir())) >= 12)
        return int(name)

    with HeldSlice(several, Ask(nodes=3), SliceOptions(cores=1)) as s:
        results = s.map(flow_of(meets, fo.str_), map(str, range(20)))
        assert list(results) == [[i] for i in range(20)]


def test_an_error_among_the_items_of_a_map_comes_in_its_place(several: Provider) -> None:
    def items() -> Iterator[int]:
        yield from range(7)
        raise KeyError("no more")

    with on(several, 3) as s:
        results = s.map(DOUBLE, items())
        assert [next(results) for _ in range(7)] == [[2 * i] for i in range(7)]
        with pytest.raises(KeyError, match="no more"):
            next(results)


def test_a_slice_that_is_collected_is_given_back(several: Provider) -> None:
    before = [node.state for node in several.nodes()]
    s = on(several, 3)
    assert s.run(DOUBLE, 1) == [2]
    id_ = s.held.id
    assert isinstance(several.attach(id_), Held)
    del s
    assert comes(lambda: isinstance(several.attach(id_), Lost))
    if several.pool.kind != "sge":  # nodes of its queue are held by other tests meanwhile
        assert comes(lambda: [node.state for node in several.nodes()] == before)
