"""A slice that grows with its work: what it holds, what waits, and what becomes of failures."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine import (
    CancelToken,
    GrowingSlice,
    HoldEvent,
    Provider,
    SliceOptions,
    provider_of,
)
from flowos.engine._elastic_hold import ElasticHold
from flowos.model import Ask
from flowos.plan import NodeRange
from tests.waiting import PATIENCE_SECONDS, comes

from .test_providers import DOUBLE, NAP, Heard, flow_of, pool, touched_once


def grows(
    provider: Provider,
    min_nodes: int = 0,
    max_nodes: int = 3,
    idle_seconds: float = 0.3,
    on_event: Callable[[HoldEvent], None] | None = None,
    **options: Any,
) -> GrowingSlice:
    seconds, requeue = options.pop("seconds", None), options.pop("requeue", True)
    return GrowingSlice(
        provider,
        Ask(seconds=seconds),
        SliceOptions(**options),
        on_event or Heard(),
        bounds=NodeRange(min_nodes=min_nodes, max_nodes=max_nodes, idle_seconds=idle_seconds),
        requeue=requeue,
    )


@pytest.fixture
def fake() -> Provider:
    return provider_of(pool("fake"))


def held(provider: Provider) -> int:
    return sum(node.state == "held" for node in provider.nodes())


@fo.task
def met(folder: fo.str_, count: fo.int64) -> fo.int64:
    """So many of it run at once: each on a node of its own, with its one core."""
    (Path(folder) / str(threading.get_ident())).touch()
    assert comes(lambda: len(list(Path(folder).iterdir())) >= count)
    return count


MET = fo.flow_output(met(fo.flow_input("folder", fo.str_), fo.flow_input("count", fo.int64)))


@fo.task
def waits(path: fo.str_) -> fo.str_:
    assert comes(Path(path).exists)
    return path


WAITS = flow_of(waits, fo.str_)


@pytest.mark.parametrize("kind", ["local", "fake"])
def test_nothing_is_held_before_the_first_run_and_after_all_is_idle(kind: Any) -> None:
    provider, heard = provider_of(pool(kind)), Heard()
    with grows(provider, max_nodes=1, on_event=heard) as s:
        time.sleep(0.2)
        assert (s.nodes, heard.whats) == ((), [])
        for _ in range(2):
            assert s.run(DOUBLE, 4) == [8]
            assert comes(lambda: not s.nodes)
        assert list(s.map(DOUBLE, range(100))) == [[2 * i] for i in range(100)]
        assert s.submit(DOUBLE, 1).result(PATIENCE_SECONDS) == [2]
        assert heard.whats.count("held") >= 3


def test_a_map_gets_nodes_until_its_items_run_side_by_side(fake: Provider, tmp_path: Path) -> None:
    with grows(fake) as s:
        items = [(str(tmp_path), 3)] * 4
        assert list(s.map(MET, items)) == [[3]] * 4
        assert comes(lambda: held(fake) == 0)


def test_runs_and_submitted_runs_get_nodes(fake: Provider, tmp_path: Path) -> None:
    with grows(fake, idle_seconds=60) as s:
        runs = [s.submit(MET, str(tmp_path), 3) for _ in range(2)]
        assert s.run(MET, str(tmp_path), 3) == [3]
        assert [run.result(PATIENCE_SECONDS) for run in runs] == [[3]] * 2
        assert len(s.nodes) == 3


def test_it_grows_no_further_than_it_may(fake: Provider) -> None:
    with grows(fake, max_nodes=2, idle_seconds=60) as s:
        runs = [s.submit(NAP, 0.2) for _ in range(16)]
        assert [run.result(PATIENCE_SECONDS) for run in runs] == [[0.2]] * 16
        assert len(s.nodes) == 2
        assert held(fake) == 2


def test_it_holds_no_more_although_the_pool_kept_what_it_gave_back(fake: Provider) -> None:
    hold = ElasticHold(fake, Ask(), 2, Heard(), lambda: None)
    for count in (1, 9, 1):
        hold.more(count, CancelToken())
    assert held(fake) == 2
    hold.free()


def test_the_least_stay_and_come_again_when_they_are_lost() -> None:
    fake, heard = provider_of(pool("fake", "lose 1 after 0.3")), Heard()
    with grows(fake, min_nodes=2, on_event=heard) as s:
        first = {node.name for node in fake.nodes() if node.state != "free"}
        assert len(first) == 2
        assert comes(lambda: "lost" in heard.whats)
        assert comes(lambda: len(s.nodes) == 2)
        assert set(s.nodes) != first
        time.sleep(0.5)
        assert len(s.nodes) == 2


def test_callers_hear_why_they_wait_for_the_first_node() -> None:
    fake, heard = provider_of(pool("fake", "wait 0.2 Priority")), Heard()
    with grows(fake, on_event=heard) as s:
        assert s.run(DOUBLE, 1) == [2]
    assert [(e.what, e.reason) for e in heard.events[:2]] == [("waiting", "Priority"), ("held", "")]


def test_free_while_it_waits_for_a_node_leaves_nothing_held(fake: Provider) -> None:
    others, heard = fake.hold(Ask(nodes=3)), Heard()
    s, ended = grows(fake, on_event=heard), list[BaseException]()

    def run() -> None:
        with pytest.raises(fo.SliceFreed) as raised:
            s.run(DOUBLE, 1)
        ended.append(raised.value)

    def results() -> None:
        with pytest.raises(fo.SliceFreed) as raised:
            list(s.map(DOUBLE, range(3)))
        ended.append(raised.value)

    threads = [threading.Thread(target=each) for each in (run, results)]
    for thread in threads:
        thread.start()
    later = s.submit(DOUBLE, 1)
    assert comes(lambda: "waiting" in heard.whats)
    assert comes(lambda: len(s._callers) == 1 and len(s._maps.all()) == 1)
    s.free()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert len(ended) == 2
    with pytest.raises(fo.SliceFreed):
        later.result(PATIENCE_SECONDS)
    for call in (lambda: s.run(DOUBLE, 1), lambda: s.submit(DOUBLE, 1), lambda: s.resize(1)):
        with pytest.raises(fo.SliceFreed):
            call()
    fake.free(others)
    time.sleep(0.1)
    assert held(fake) == 0


def test_what_waits_in_line_can_be_cancelled_and_awaited(fake: Provider) -> None:
    others = fake.hold(Ask(nodes=3))
    with grows(fake) as s:
        run = s.submit(DOUBLE, 1)
        assert run.running()
        assert run.cancel()
        assert run.cancel()
        with pytest.raises(CancelledError):
            run.result()

        async def awaits() -> list[object]:
            waiting = asyncio.create_task(s.arun(DOUBLE, 4))
            await asyncio.sleep(0.1)
            fake.free(others)
            return await waiting

        assert asyncio.run(awaits()) == [8]


def test_a_submitted_run_ends_with_its_own_error_and_is_cancelled_while_it_runs(
    fake: Provider, tmp_path: Path
) -> None:
    with grows(fake) as s:
        with pytest.raises(fo.ValueRefused):
            s.submit(DOUBLE, 1, 2, 3)
        with pytest.raises(fo.ValueRefused, match="'x'"):
            s.submit(DOUBLE, "no number").result(PATIENCE_SECONDS)
        with pytest.raises(fo.WiringError, match="is a flow"):
            s.submit(3)  # type: ignore[arg-type]
        assert comes(lambda: not s.nodes)
        run = s.submit(WAITS, str(tmp_path / "go"))
        assert comes(lambda: sum(s._busy.values()) == 1)
        assert run.cancel()
        (tmp_path / "go").touch()
        with pytest.raises(CancelledError):
            run.result(PATIENCE_SECONDS)


def test_growth_stops_after_three_refusals_and_resize_tries_again() -> None:
    fake, heard = provider_of(pool("fake", *["refuse no account"] * 3)), Heard()
    with grows(fake, on_event=heard) as s:
        later = s.submit(DOUBLE, 1)
        for call in (lambda: s.run(DOUBLE, 1), lambda: list(s.map(DOUBLE, range(9)))):
            with pytest.raises(fo.SliceRefused, match=r"3 failures in a row.*no account; .*resize"):
                call()
        with pytest.raises(fo.SliceRefused, match="no account"):
            later.result(PATIENCE_SECONDS)
        assert heard.whats == ["stopped"]
        assert len(s.notes) == 1
        s.resize(2)
        assert len(s.nodes) == 2
        assert not s.notes
        assert s.run(DOUBLE, 4) == [8]
        assert comes(lambda: not s.nodes)
        assert s.run(DOUBLE, 4) == [8]


def test_nodes_that_are_lost_at_once_stop_growth_and_a_map_ends_with_the_reason() -> None:
    fake = provider_of(pool("fake", *["lose 1 after 0.01"] * 3))
    with (
        grows(fake, max_nodes=1) as s,
        pytest.raises(fo.SliceRefused, match=r"the last one: node .* was lost"),
    ):
        list(s.map(NAP, [0.4] * 5))


def test_a_map_goes_on_with_the_nodes_it_has_when_growth_has_stopped(
    fake: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = fake.hold(Ask(nodes=2))
    heard = Heard()
    with grows(fake, on_event=heard) as s:
        monkeypatch.setattr(s._provider, "resize", _refused)
        assert list(s.map(NAP, [0.05] * 60)) == [[0.05]] * 60
        assert "stopped" in heard.whats
        assert "no quota" in s.notes[-1]
        assert s.run(DOUBLE, 2) == [4]
    fake.free(lacking)


def _refused(*_: object) -> Any:
    raise fo.SliceRefused("no quota")


def test_items_of_a_lost_node_run_on_one_that_comes_for_it() -> None:
    fake, heard = provider_of(pool("fake", "lose 1 after 0.5")), Heard()

    def items() -> Iterator[float]:
        yield from [0.05] * 15
        assert comes(lambda: "lost" in heard.whats)
        yield from [0.05] * 15

    with grows(fake, max_nodes=1, idle_seconds=60, on_event=heard) as s:
        assert list(s.map(NAP, items())) == [[0.05]] * 30
        assert heard.whats.count("held") == 2
        assert heard.whats.count("lost") == 1


@pytest.mark.parametrize("way", ["run", "submit"])
def test_a_run_on_a_lost_node_begins_anew_on_one_that_comes_for_it(
    way: str, tmp_path: Path
) -> None:
    fake, go = provider_of(pool("fake", "lose 1 after 0.3")), tmp_path / "go"
    heard = Heard()
    with grows(fake, max_nodes=1, idle_seconds=60, on_event=heard) as s:
        assert s.run(DOUBLE, 1) == [2]
        touching = touched_once(go, lambda: "lost" in heard.whats)
        if way == "run":
            assert s.run(WAITS, str(go)) == [str(go)]
        else:
            assert s.submit(WAITS, str(go)).result(PATIENCE_SECONDS) == [str(go)]
        touching.join()


def test_the_time_of_a_slice_is_over_for_all_its_nodes(tmp_path: Path) -> None:
    fake = provider_of(pool("fake"))
    with grows(fake, seconds=60, idle_seconds=0.1) as s:
        assert s.run(DOUBLE, 1) == [2]
        assert comes(lambda: not s._held.nodes)
        s._hold._until = time.monotonic() + 0.3
        touching = touched_once(tmp_path / "go", lambda: "over" in repr(s))
        with pytest.raises(fo.SliceFreed, match="lease ended after"):
            s.run(WAITS, str(tmp_path / "go"))
        with pytest.raises(fo.SliceFreed, match="lease ended"):
            s.run(DOUBLE, 1)
        touching.join()
    with grows(fake, seconds=60, idle_seconds=0.05) as s:
        assert s.run(DOUBLE, 1) == [2]
        assert comes(lambda: not s._held.nodes)
        s._hold._until = time.monotonic()
        with pytest.raises(fo.SliceFreed, match="lease ended after 60 s"):
            s.run(DOUBLE, 1)


def test_a_wait_is_given_up_when_its_work_is_gone(fake: Provider) -> None:
    others = fake.hold(Ask(nodes=3))
    with grows(fake, idle_seconds=0.1) as s:
        run = s.submit(DOUBLE, 1)
        assert comes(lambda: s._coming is not None)
        run.cancel()
        s._line.clear()
        assert comes(lambda: s._coming is None)
        fake.free(others)
        assert s.run(DOUBLE, 1) == [2]


def test_an_idle_node_leaves_a_map_that_goes_on_without_it(fake: Provider) -> None:
    go, heard = threading.Event(), Heard()

    def gone(s: GrowingSlice) -> bool:
        """All nodes that it had."""
        return "resized" in heard.whats and not s.nodes

    def items() -> Any:
        yield from [0.15] * 24
        go.wait(PATIENCE_SECONDS)
        yield from [0.01] * 6

    with grows(fake, idle_seconds=0.4, on_event=heard) as s:

        def goes_on() -> None:
            assert comes(lambda: gone(s))
            go.set()

        threading.Thread(target=goes_on).start()
        assert list(s.map(NAP, items(), ahead=2)) == [[0.15]] * 24 + [[0.01]] * 6
        assert heard.whats.count("held") >= 2


def test_resize_holds_so_many_now(fake: Provider) -> None:
    with grows(fake, idle_seconds=60) as s:
        s.resize(3)
        assert len(s.nodes) == 3
        s.resize(1)
        assert len(s.nodes) == 1
        s.resize(0)
        assert (s.nodes, held(fake)) == ((), 0)
        for nodes in (4, -1, True):
            with pytest.raises(fo.SliceRefused, match="this slice has 0 to 3"):
                s.resize(nodes)
        others = fake.hold(Ask(nodes=3))
        later = s.submit(DOUBLE, 1)
        assert comes(lambda: s._coming is not None)
        threading.Timer(0.2, fake.free, (others,)).start()
        s.resize(2)
        assert later.result(PATIENCE_SECONDS) == [2]
    assert held(fake) == 0


def test_a_flow_that_does_not_fit_a_node_is_told_to_its_caller(fake: Provider) -> None:
    @fo.task(needs=fo.Needs(cores=64))
    def large(x: fo.int64) -> fo.int64:
        return x

    flow = flow_of(large, fo.int64)
    with grows(fake) as s:
        for call in (lambda: s.run(flow, 1), lambda: list(s.map(flow, range(3)))):
            with pytest.raises(fo.SliceRefused, match="needs 64 cores"):
                call()
        assert comes(lambda: not s.nodes)
        with pytest.raises(fo.SliceRefused, match="needs 64 cores"):
            list(s.map(flow, range(3)))
        assert s.run(DOUBLE, 2) == [4]


def test_what_the_pool_can_never_give_is_refused_at_once(fake: Provider) -> None:
    with pytest.raises(fo.SliceRefused, match="4 nodes asked for, it has 3"):
        grows(fake, max_nodes=4)
    with pytest.raises(fo.SliceRefused, match="2 nodes asked for, it has 1"):
        grows(provider_of(pool("local")), max_nodes=2)


def test_a_guest_is_refused_as_it_keeps_its_nodes(fake: Provider) -> None:
    with grows(fake) as s, pytest.raises(fo.SliceRefused, match="hold a number, as nodes=2"):
        s.guest("dask")


def test_a_growing_slice_that_nobody_has_any_more_is_given_back(fake: Provider) -> None:
    s = grows(fake, idle_seconds=60)
    assert s.run(DOUBLE, 1) == [2]
    assert comes(lambda: "flowos-grow" in [each.name for each in threading.enumerate()])
    del s
    assert comes(lambda: held(fake) == 0)
    assert comes(lambda: "flowos-grow" not in [each.name for each in threading.enumerate()])
