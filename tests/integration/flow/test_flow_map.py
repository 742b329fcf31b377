"""`map`: many runs in flight, results in order, no more taken than may be kept."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import flowos as fo
from flowos.engine.workers.worker import Channel
from tests.integration.flow.number_tasks import add, integer, invert, tree

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


@pytest.mark.parametrize("way", WAYS)
def test_map_gives_results_in_order(way: Way) -> None:
    a, b = integer("a"), integer("b")
    with fo.slice(add(a, b), workers=way) as s:
        assert list(s.map((i, 1) for i in range(300))) == [[i + 1] for i in range(300)]
    with fo.slice(tree(), workers=way) as s:
        assert list(s.map(range(20))) == [[64 * i + sum(range(64))] for i in range(20)]


def test_map_takes_no_more_than_it_may_keep_in_flight() -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        i = 0
        while True:
            taken.append(i)
            yield i
            i += 1

    with fo.slice(add(integer(), 1), cores=2) as s:
        results = s.map(endless(), ahead=3)
        assert taken == []
        for i in range(50):
            assert next(results) == [i + 1]
            assert len(taken) <= i + 1 + 3
        results.close()  # type: ignore[attr-defined]
        assert s.run(1) == [2]


def test_map_runs_side_by_side() -> None:
    meet = threading.Barrier(2, timeout=300)

    @fo.task
    def wait(x: fo.int64) -> fo.int64:
        meet.wait()
        return x

    with fo.slice(wait(integer()), cores=2) as s:
        assert list(s.map(range(10))) == [[i] for i in range(10)]


def test_map_raises_where_the_failed_run_is_in_order() -> None:
    @fo.task
    def invert(x: fo.int64) -> fo.int64:
        return 10 // x

    with fo.slice(invert(integer())) as s:
        results = s.map([5, 2, 0, 1])
        assert [next(results), next(results)] == [[2], [5]]
        with pytest.raises(fo.TaskFailed, match="given x = 0"):
            next(results)
        with pytest.raises(StopIteration):
            next(results)
        with pytest.raises(
            fo.ValueRefused, match=r"run: flow 'flow' takes 1 argument \(a\), 2 given"
        ):
            list(s.map([(1, 2)]))
        assert s.run(1) == [10]


@pytest.mark.parametrize("way", WAYS)
def test_what_came_before_an_error_is_given_first_also_in_batches(way: Way) -> None:
    ran: list[int] = []

    @fo.task
    def invert(x: fo.int64) -> fo.int64:
        ran.append(x)
        return 1000 // x

    with fo.slice(invert(integer()), workers=way) as s:
        for bad in (1, 7, 150, 999):
            results = s.map(0 if i == bad else 1 for i in range(1000))
            assert [next(results) for _ in range(bad)] == [[1000]] * bad
            with pytest.raises(fo.TaskFailed, match="given x = 0"):
                next(results)
            assert list(results) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", [0, 1, 150, 999])
def test_an_error_names_its_item(way: Way, bad: int) -> None:
    values = [0 if i == bad else 1 for i in range(1000)]
    twice = fo.flow_output(invert(integer("a")), add(integer("b"), 1))
    with fo.slice(invert(integer()), workers=way) as one, fo.slice(twice, workers=way) as two:
        for s in (one, two):
            with pytest.raises(
                fo.TaskFailed, match=rf"^item {bad}: task 'invert' raised"
            ) as failed:
                list(s.map(values if s is one else zip(values, values, strict=True)))
            assert isinstance(failed.value.__cause__, ZeroDivisionError)
            refused = [*([1] * bad), "a text", 7]
            with pytest.raises(fo.ValueRefused, match=rf"^item {bad}: "):
                list(s.map(refused if s is one else zip(refused, refused, strict=True)))


def test_an_error_of_what_gives_the_items_is_its_own() -> None:
    with fo.slice(invert(integer())) as s, pytest.raises(fo.TaskFailed, match=r"^item 3: task"):
        list(s.map(x for (x,) in s.map([1, 1, 1, 0, 1])))


@pytest.mark.parametrize("way", WAYS)
def test_what_came_before_a_refused_item_is_given_first(way: Way) -> None:
    with fo.slice(add(integer(), 1), workers=way) as s:
        results = s.map([*range(500), "a text", 7])
        assert [next(results) for _ in range(500)] == [[i + 1] for i in range(500)]
        with pytest.raises(fo.ValueRefused, match="a text"):
            next(results)
        assert list(results) == []


def test_an_error_of_the_iterable_comes_after_the_results_before_it() -> None:
    def values() -> Iterator[int]:
        yield from range(300)
        raise LookupError("no more")

    with fo.slice(add(integer(), 1)) as s:
        results = s.map(values())
        assert [next(results) for _ in range(300)] == [[i + 1] for i in range(300)]
        with pytest.raises(LookupError, match="no more"):
            next(results)


def test_an_input_that_cannot_cross_is_refused_at_its_place() -> None:
    def same(x: object) -> object:
        return x

    task: Any = fo.task(
        {
            "task_name": "same",
            "iport_nametypes": [("x", fo.any_)],
            "oport_nametypes": fo.any_,
            "fun": same,
        }
    )
    with fo.slice(task(fo.flow_input("x", fo.any_)), workers="process") as s:
        results = s.map([*range(400), threading.Lock(), 5])
        assert [next(results) for _ in range(400)] == [[i] for i in range(400)]
        with pytest.raises(fo.ValueRefused, match="cannot cross to a worker process"):
            next(results)
        assert s.run(5) == [5]


def test_quick_items_cross_to_worker_processes_many_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    send = Channel.send

    def counted(channel: Channel, message: Any, fds: Any = ()) -> None:
        if isinstance(message, tuple) and message[0] == "run":
            sent.append(len(message[3]))
        send(channel, message, fds)

    with fo.slice(add(integer(), 1), workers="process", cores=2) as s:
        s.run(1)
        monkeypatch.setattr(Channel, "send", counted)
        assert list(s.map(range(20_000))) == [[i + 1] for i in range(20_000)]
    assert sum(sent) >= 20_000
    assert max(sent) > 16


def test_a_long_item_does_not_hold_up_those_behind_it() -> None:
    """It lies in a batch of quick ones, which are then shared out anew."""
    far = threading.Event()

    @fo.task
    def work(x: fo.int64) -> fo.int64:
        if x == 2000:
            assert far.wait(60)
        if x == 2400:
            far.set()
        return x

    def values() -> Iterator[int]:
        yield from range(4000)

    with fo.slice(work(integer()), cores=2) as s:
        assert list(s.map(values(), ahead=1000)) == [[i] for i in range(4000)]


def test_a_map_goes_through_an_output_that_is_an_input() -> None:
    a, b = integer("a"), integer("b")
    flow = fo.flow_output(b, add(a, 1), a)
    for way in WAYS:
        with fo.slice(flow, workers=way) as s:
            found = list(s.map((i, -i) for i in range(300)))
            assert found == [[-i, i + 1, i] for i in range(300)]


@pytest.mark.parametrize("way", WAYS)
def test_a_map_that_is_left_in_a_batch_ends_at_once(way: Way) -> None:
    with fo.slice(add(integer(), 1), workers=way) as s:
        results = s.map(iter(range(10**9)))
        for i in range(700):
            assert next(results) == [i + 1]
        results.close()  # type: ignore[attr-defined]
        assert s.run(1) == [2]


def test_a_worker_that_dies_in_a_batch_ends_the_map() -> None:
    @fo.task
    def die(x: fo.int64) -> fo.int64:
        import os

        if x == 500:
            os._exit(3)
        return x

    with fo.slice(die(integer()), workers="process") as s:
        found: list[object] = []
        with pytest.raises(fo.WorkerLost, match="die"):
            found.extend(value for (value,) in s.map(range(1000)))
        assert found == list(range(len(found)))
        assert len(found) <= 500
        assert s.run(1) == [1]


@pytest.mark.parametrize("way", ["thread", "process"])
def test_the_next_items_run_while_the_consumer_works_also_on_one_core(
    way: Way, tmp_path: Path
) -> None:
    def touch(x: int) -> int:
        Path(folder, str(x)).touch()
        return x

    folder = str(tmp_path)
    task = fo.task(
        {
            "task_name": "touch",
            "iport_nametypes": [("x", fo.int64)],
            "oport_nametypes": fo.int64,
            "fun": touch,
        }
    )
    with fo.slice(task(integer()), workers=way, cores=1) as s:
        results = s.map(range(10))
        assert next(results) == [0]
        until = time.monotonic() + 60
        while not (tmp_path / "1").exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert (tmp_path / "1").exists()
