"""What becomes of runs when a node is lost, or a script of a fake pool says so."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine import Event, HeldSlice, SliceOptions, open_slice, provider_of
from flowos.model import Ask
from tests.waiting import PATIENCE_SECONDS, comes

from .test_providers import AWAITS, DOUBLE, Heard, flow_of, on, pool, touched_once

Way = Callable[[HeldSlice, fo.Flow, object], object]
WAYS: dict[str, Way] = {
    "run": lambda s, flow, value: s.run(flow, value),
    "submit": lambda s, flow, value: s.submit(flow, value).result(PATIENCE_SECONDS),
    "arun": lambda s, flow, value: asyncio.run(s.arun(flow, value)),
    "map": lambda s, flow, value: next(s.map(flow, [value])),
}


def test_a_fake_pool_waits_and_refuses_as_its_script_says() -> None:
    fake = provider_of(pool("fake", "wait 0.01 Priority; wait 0.01 Resources", "refuse no account"))
    heard = Heard()
    fake.free(fake.hold(Ask(), heard))
    assert [(e.what, e.reason) for e in heard.events] == [
        ("waiting", "Priority"),
        ("waiting", "Resources"),
        ("held", ""),
    ]
    with pytest.raises(fo.SliceRefused, match="no account"):
        fake.hold(Ask())
    fake.free(fake.hold(Ask()))


def test_a_lost_node_ends_its_runs_and_the_others_go_on(tmp_path: Path) -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.2"))
    heard = Heard()
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(), heard, requeue=False) as s:
        lost, left = s.nodes
        touching = touched_once(tmp_path / "lost", lambda: len(s.nodes) == 1)
        with pytest.raises(fo.WorkerLost, match=f"node {lost} is lost"):
            s.run(AWAITS, str(tmp_path / "lost"))
        touching.join()
        assert s.nodes == (left,)
        assert s.run(DOUBLE, 3) == [6]
        assert [e.node for e in heard.events if e.what == "lost"] == [lost]
    assert [node.state for node in fake.nodes()] == ["lost", "free", "free"]
    with pytest.raises(fo.SliceRefused, match="3 nodes asked for, it has 2"):
        fake.hold(Ask(nodes=3))


def test_a_node_that_is_lost_while_a_resize_waits_is_held_no_more() -> None:
    fake, heard = provider_of(replace(pool("fake", "lose 1 after 0.2"), nodes=4)), Heard()
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(), heard) as s:
        lost, left = s.nodes
        other = fake.hold(Ask(nodes=2))
        waits = threading.Thread(target=s.resize, args=(3,))
        waits.start()
        assert comes(lambda: "lost" in heard.whats)
        fake.free(other)
        waits.join()
        for count in (3, 2, 3):
            s.resize(count)
            assert len({*s.nodes} - {lost}) == count
            assert left in s.nodes


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_ran_on_a_lost_node_runs_again_on_another(way: Way, tmp_path: Path) -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.2"))
    with HeldSlice(fake, Ask(nodes=2), SliceOptions()) as s:
        touching = touched_once(tmp_path / "lost", lambda: len(s.nodes) == 1)
        assert way(s, AWAITS, str(tmp_path / "lost")) == [str(tmp_path / "lost")]
        touching.join()


class Losing:
    """Nodes of which those are lost, as often as is said, on which one of its tasks runs."""

    def __init__(self, losses: int) -> None:
        self._fake = provider_of(replace(pool("fake"), nodes=5))
        self._left = losses
        self.lost: list[str] = []
        self.begun: list[str] = []
        self.s = self.held(SliceOptions(workers="inline"))

    def held(self, options: SliceOptions) -> HeldSlice:
        return HeldSlice(self._fake, Ask(nodes=5), options)

    def task(self, name: str, *, loses: bool, requeue: bool = True) -> fo.Task:
        def fun(x: fo.int64) -> fo.int64:
            self.begun.append(name)
            if loses and self._left:
                self._lose()
                raise ConnectionError("its node is gone")
            return x

        return fo.task(fun, name=name, requeue=requeue)

    def _lose(self) -> None:
        of_map = threading.current_thread().name.removeprefix("flowos-map-")
        busy = [node.name for node in self.s.held.nodes if self.s._busy[node]]
        (name,) = busy or [of_map]
        self._left -= 1
        self.lost.append(name)
        self._fake._lose(self.s.held, name)  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_has_lost_more_than_three_nodes_may_be_what_ends_them(way: Way) -> None:
    losing = Losing(4)
    with losing.s as s:
        with pytest.raises(fo.WorkerLost, match=r"node fake\d+-\d is lost"):
            way(s, flow_of(losing.task("ends", loses=True), fo.int64), 1)
        assert len({*losing.lost}) == 4
        assert set(s.nodes).isdisjoint(losing.lost)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("last", ["before", "once", "after"])
def test_a_task_that_is_not_requeued_runs_at_most_once_although_its_node_is_lost(
    way: Way, last: str
) -> None:
    losing = Losing(1)
    x: Any = fo.flow_input("x", fo.int64)
    for name in ("before", "once", "after"):
        x = losing.task(name, loses=name == last, requeue=name != "once")(x)
    with losing.s as s:
        if last == "before":
            assert way(s, fo.flow_output(x), 7) == [7]
        else:
            with pytest.raises(fo.WorkerLost, match="is lost"):
                way(s, fo.flow_output(x), 7)
    assert losing.begun.count("once") == 1
    assert len(losing.lost) == 1


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_attempts_count_on_after_a_lost_node(way: Way, tmp_path: Path) -> None:
    losing, log = Losing(2), tmp_path / "log"
    events: list[Event] = []
    options = SliceOptions(workers="inline", log=log, on_stage=events.append)
    x = losing.task("python", loses=True)(fo.flow_input("x", fo.int64))
    words = ["sh", "-c", "echo ${FLOWOS_ATTEMPT-first}", fo.In("x")]
    attempt = fo.command(words, name="command", inputs={"x": fo.int64}, stdout="said")
    losing.s.free()
    losing.s = losing.held(options)
    with losing.s as s:
        assert way(s, fo.flow_output(attempt(x)), 7) == ["3\n"]
        assert s.run(fo.flow_output(attempt(fo.flow_input("x", fo.int64))), 7) == ["first\n"]
    started = [(each.label, each.attempt) for each in events if each.what == "started"]
    ends = [("python", 3), ("command", 3), ("command", 1)]
    assert started == [("python", 1), ("python", 2), *ends]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["task"], line.get("attempt", 1)) for line in lines] == ends


def test_attempts_of_a_retry_and_of_a_lost_node_are_counted_together() -> None:
    losing = Losing(1)
    failures = iter([True, True, False, True, False])

    def fails(x: fo.int64) -> fo.int64:
        if next(failures):
            raise ConnectionError("once more")
        return x

    first = fo.task(fails, retries=2)(fo.flow_input("x", fo.int64))
    flow = fo.flow_output(losing.task("loses", loses=True)(first))
    with losing.s as s:
        (result,) = s.map(flow, [1], on_error="return")
    assert (result.outputs, result.attempts) == ([1], 5)


def test_a_map_that_goes_on_returns_the_item_that_is_not_requeued() -> None:
    losing = Losing(1)
    flow = flow_of(losing.task("once", loses=True, requeue=False), fo.int64)
    with losing.s as s:
        results = list(s.map(flow, range(20), on_error="return"))
    assert [type(each.error) for each in results if each.error] == [fo.WorkerLost]
    assert losing.begun == ["once"] * 20


def test_a_run_that_is_cancelled_while_it_moves_to_another_node_is_over(tmp_path: Path) -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.2"))
    with HeldSlice(fake, Ask(nodes=2), SliceOptions()) as s:
        s.begin_anew = lambda *_: s.is_over or comes(run.cancelled)  # type: ignore[method-assign]
        run = s.submit(AWAITS, str(tmp_path / "never"))
        assert comes(lambda: len(s.nodes) == 1)
        assert run.cancel()
        assert run.cancelled()
        assert list(fo.as_completed([run])) == [run]


@pytest.mark.parametrize("requeue", [True, False])
def test_items_without_a_result_when_their_node_is_lost_run_again(
    requeue: bool, tmp_path: Path
) -> None:
    fake, go = provider_of(pool("fake", "lose 1 after 1")), tmp_path / "go"
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(cores=1), requeue=requeue) as s:
        touching = touched_once(go, lambda: len(s.nodes) == 1)
        if requeue:
            assert list(s.map(AWAITS, [str(go)] * 40)) == [[str(go)]] * 40
        else:
            with pytest.raises(fo.WorkerLost, match="is lost"):  # also while it is made ready there
                list(s.map(AWAITS, [str(go)] * 40))
        touching.join()
        assert len(s.nodes) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_node_that_is_lost_while_a_flow_is_made_ready_there_is_passed_over(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, heard = provider_of(pool("fake", "lose 1 after 0.2")), Heard()

    def late(*given: Any) -> Any:
        assert comes(lambda: "lost" in heard.whats)
        return open_slice(*given)

    monkeypatch.setattr("flowos.engine._open_slices.open_slice", late)
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(cores=1), heard) as s:
        assert WAYS[way](s, DOUBLE, 4) == [8]
        assert len(s.nodes) == 1


def test_items_that_fail_are_told_by_their_number_after_a_node_was_lost() -> None:
    @fo.task
    def slow_or_bad(x: fo.int64) -> fo.int64:
        time.sleep(0.03)
        return x // (x - 37)

    fake = provider_of(pool("fake", "lose 1 after 0.3"))
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(cores=1)) as s:
        results = list(s.map(flow_of(slow_or_bad, fo.int64), range(40), on_error="return"))
        assert [i for i, r in enumerate(results) if r.error is not None] == [37]
        assert "item 37" in str(results[37].error)


def test_a_slice_whose_last_node_is_lost_says_so() -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.01"))
    with on(fake) as s:
        assert comes(lambda: "lost" in [node.state for node in fake.nodes()])
        assert comes(lambda: not s._held.nodes or bool(s._lost))
        with pytest.raises(fo.WorkerLost, match="all its nodes are lost"):
            s.run(DOUBLE, 1)
        assert s.nodes == ()
        assert "nodes: none>" in repr(s)


def test_a_script_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="'explode 3': expected wait SECONDS"):
        pool("fake", "wait 1 x; explode 3")
