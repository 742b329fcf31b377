"""Tasks that are run again after a failure, and maps that go on after one."""

import math
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import flowos as fo
from tests.integration.flow.retry_tasks import BAD, counted, fails, half, picky, same, succeeds_at
from tests.waiting import comes

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


def made(fun: Any, **options: Any) -> Any:
    ports = {"iport_nametypes": [("folder", fo.str_), ("item", fo.any_)]}
    task = {"task_name": "tries", **ports, "oport_nametypes": fo.any_, "fun": fun}
    return fo.task(task, **options)


def one(fun: Any, way: Way, cores: int = 2, **options: Any) -> Any:
    folder, item = fo.flow_input("folder", fo.str_), fo.flow_input("item", fo.any_)
    return fo.slice(made(fun, **options)(folder, item), workers=way, cores=cores)


def two(fun: Any, way: Way, **options: Any) -> Any:
    """Also a flow of several stages."""
    folder, item = fo.flow_input("folder", fo.str_), fo.flow_input("item", fo.any_)
    before, after = fo.task(same)(item), made(fun, **options)
    flow = fo.flow_output(after(folder, before), fo.task(same)(after(folder, "other")))
    return fo.slice(flow, workers=way, cores=2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("opened", [one, two])
def test_a_task_that_succeeds_the_third_time(way: Way, opened: Any, tmp_path: Path) -> None:
    with opened(succeeds_at(3), way, retries=2) as s:
        assert set(s.run(str(tmp_path), "a")) == {3}
    (tmp_path / "other").unlink(missing_ok=True)
    with (
        opened(succeeds_at(4), way, retries=2) as s,
        pytest.raises(fo.TaskFailed, match=r"'tries.*ConnectionError: not yet: 3.*; attempt 3$"),
    ):
        s.run(str(tmp_path), "b")


@pytest.mark.parametrize("way", WAYS)
def test_without_retries_nothing_is_run_again_or_said_of_attempts(way: Way, tmp_path: Path) -> None:
    with one(succeeds_at(2), way) as s, pytest.raises(fo.TaskFailed) as failed:
        s.run(str(tmp_path), "a")
    assert "attempt" not in str(failed.value)
    assert isinstance(failed.value.__cause__, ConnectionError)
    assert (tmp_path / "a").read_text() == "x"


@pytest.mark.parametrize("way", WAYS)
def test_no_retry_and_a_refused_result_are_final(way: Way, tmp_path: Path) -> None:
    def gives_up(folder: str, item: Any) -> Any:
        counted(folder, item)
        raise fo.NoRetry("of no use") from None

    def wrong(folder: str) -> Any:
        counted(folder, "wrong")
        return "a text"

    with (
        one(gives_up, way, retries=5) as s,
        pytest.raises(fo.TaskFailed, match="of no use") as failed,
    ):
        s.run(str(tmp_path), "a")
    assert isinstance(failed.value.__cause__, fo.NoRetry)
    task: Any = fo.task(
        {
            "task_name": "wrong",
            "iport_nametypes": fo.str_,
            "oport_nametypes": fo.int64,
            "fun": wrong,
        },
        retries=5,
    )
    with (
        fo.slice(task(fo.flow_input("folder", fo.str_)), workers=way) as s,
        pytest.raises(fo.ValueRefused, match="expected int64, given 'a text'"),
    ):
        s.run(str(tmp_path))
    assert [(tmp_path / name).read_text() for name in ("a", "wrong")] == ["x", "x"]


@pytest.mark.parametrize("opened", [one, two])
def test_a_lost_worker_and_a_limit_are_retried_too(opened: Any, tmp_path: Path) -> None:
    def ends(folder: str, item: Any) -> Any:
        attempt = counted(folder, item)
        if attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if attempt == 2:
            time.sleep(600)
        return attempt

    # On a busy machine, the third may take longer than its limit too.
    with opened(ends, "process", retries=5, limit_seconds=2.0) as s:
        assert set(s.run(str(tmp_path), "a")) <= {3, 4, 5, 6}
    (tmp_path / "other").unlink(missing_ok=True)
    with (
        opened(ends, "process", retries=0, limit_seconds=60.0) as s,
        pytest.raises(fo.WorkerLost),
    ):
        s.run(str(tmp_path), "b")


def test_a_command_is_retried(tmp_path: Path) -> None:
    words = f"echo x >> {tmp_path}/n; test $(wc -l < {tmp_path}/n) -ge 3"
    with fo.slice(fo.command(["sh", "-c", words], retries=2)()) as s:
        s.run()
    (tmp_path / "n").unlink()
    with (
        fo.slice(fo.command(["sh", "-c", words], retries=1)()) as s,
        pytest.raises(fo.TaskFailed, match=r"exited with 1;.*; attempt 2$"),
    ):
        s.run()


def test_events_say_which_attempt_it_is(tmp_path: Path) -> None:
    events: list[Any] = []
    folder, item = fo.flow_input("folder", fo.str_), fo.flow_input("item", fo.any_)
    flow = fo.flow_output(made(succeeds_at(3), retries=2)(folder, item))
    with fo.slice(flow, on_stage=events.append) as s:
        s.run(str(tmp_path), "a")
    assert [(e.what, e.attempt) for e in events] == [
        ("started", 1),
        ("failed", 1),
        ("started", 2),
        ("failed", 2),
        ("started", 3),
        ("ended", 3),
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("opened", [one, two])
def test_a_map_of_a_thousand_of_which_thirteen_fail(way: Way, opened: Any, tmp_path: Path) -> None:
    folder = str(tmp_path)
    with opened(fails if opened is one else picky, way) as s:
        results = list(s.map(((folder, i) for i in range(1000)), on_error="return"))
        assert len(results) == 1000
        assert {i for i, r in enumerate(results) if not r.ok} == BAD
        for i, result in enumerate(results):
            assert result.attempts == 1
            assert 0 <= result.seconds < 60
            if result.ok:
                assert result.get()[0] == 2 * i
                assert result.error is None
            else:
                assert str(result.error).startswith(f"item {i}: task 'tries' raised ValueError")
                assert isinstance(result.error.__cause__, ValueError)
                assert result.outputs is None
                with pytest.raises(fo.TaskFailed, match=f"item {i}: "):
                    result.get()
        assert s.run(folder, 1)[0] == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("opened", [one, two])
def test_items_that_succeed_later_keep_their_order_and_count_their_attempts(
    way: Way, opened: Any, tmp_path: Path
) -> None:
    def tries(folder: str, item: Any) -> Any:
        if item == "other" or item % 10:
            return item
        return counted(folder, item), item

    def flaky(folder: str, item: Any) -> Any:
        given = tries(folder, item)
        if isinstance(given, tuple) and given[0] < 3:
            raise ConnectionError
        return item

    folder = str(tmp_path)
    with opened(flaky, way, retries=2) as s:
        assert [r[0] for r in s.map((folder, i) for i in range(60))] == list(range(60))
        for file in tmp_path.iterdir():
            file.unlink()
        results = list(s.map(((folder, i) for i in range(60)), on_error="return"))
        assert [r.get()[0] for r in results] == list(range(60))
        assert [r.attempts for r in results] == [1 if i % 10 else 3 for i in range(60)]


def test_items_that_kill_their_worker_are_the_only_ones_to_fail(tmp_path: Path) -> None:
    def dies(folder: str, item: Any) -> Any:
        if item % 300 == 299:
            os._exit(3)
        return counted(folder, item) * 0 + item

    folder = str(tmp_path)
    with one(dies, "process") as s:
        results = list(s.map(((folder, i) for i in range(900)), on_error="return"))
        found: list[object] = []
        with pytest.raises(fo.WorkerLost, match=r"^item 299: task 'tries': its worker process"):
            found.extend(value for (value,) in s.map((folder, i) for i in range(900)))
    assert [i for i, r in enumerate(results) if not r.ok] == [299, 599, 899]
    assert all(isinstance(r.error, fo.WorkerLost) for r in results if not r.ok)
    assert [r.outputs for r in results if r.ok] == [[i] for i in range(900) if i % 300 != 299]
    assert found == list(range(299))


def test_an_item_over_its_limit_fails_alone(tmp_path: Path) -> None:
    def naps(folder: str, item: Any) -> Any:  # noqa: ARG001
        time.sleep(600 if item == 50 else 0)
        return item

    results: list[Any] = []

    def fails_alone() -> bool:
        """On a busy machine, another one may once be as late."""
        values = ((str(tmp_path), i) for i in range(100))
        results[:] = s.map(values, on_error="return")
        return [i for i, r in enumerate(results) if not r.ok] == [50]

    with one(naps, "process", limit_seconds=1.0) as s:
        assert comes(fails_alone)
    assert isinstance(results[50].error, fo.TimeLimitExceeded)
    assert results[50].seconds >= 1.0
    assert sum(r.seconds for r in results if r.ok) < 60


@pytest.mark.parametrize("way", WAYS)
def test_values_that_are_refused_fail_where_they_stand(way: Way) -> None:
    with fo.slice(fo.task(half)(fo.flow_input("x", fo.float64)), workers=way) as s:
        values = [1.0, "text", (1.0, 2.0), math.nan, 10**400, 3, True, [], {}, 5.0]
        results = list(s.map(values, on_error="return"))
    assert [i for i, r in enumerate(results) if r.ok] == [0, 3, 5, 9]
    assert [r.attempts for r in results] == [int(r.ok) for r in results]
    assert isinstance(results[1].error, fo.ValueRefused)
    assert str(results[1].error) == ("item 1: run: input 'x': expected float64, given 'text' (str)")
    assert str(results[2].error).startswith(
        "item 2: run: flow 'flow' takes 1 argument (x), 2 given"
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_map_that_goes_on_is_as_lazy_as_any(way: Way) -> None:
    taken: list[int] = []

    def endless() -> Iterator[object]:
        while True:
            taken.append(len(taken))
            yield "a text" if len(taken) % 7 == 0 else 1.0

    with fo.slice(fo.task(half)(fo.flow_input("x", fo.float64)), workers=way, cores=2) as s:
        results = s.map(endless(), ahead=3, on_error="return")
        assert taken == []
        for i in range(100):
            assert next(results).ok is bool((i + 1) % 7)
            assert len(taken) <= i + 1 + 3
        results.close()  # type: ignore[attr-defined]
        assert s.run(1.0) == [0.5]


def test_what_is_not_of_an_item_ends_the_map_all_the_same() -> None:
    def broken() -> Iterator[float]:
        yield 1.0
        raise LookupError("no more")

    s = fo.slice(fo.task(half)(fo.flow_input("x", fo.float64)))
    results = s.map(broken(), on_error="return")
    assert next(results).ok
    with pytest.raises(LookupError, match="no more"):
        next(results)
    results = s.map(iter([1.0] * 10_000), on_error="return")
    assert next(results).ok
    s.free()
    with pytest.raises(fo.SliceFreed):
        list(results)


@pytest.mark.parametrize(
    ("values", "words", "said"),
    [
        ([1.0], {"on_error": "retrun"}, "map: on_error='retrun'.*one of raise, return"),
        ([1.0], {"ahead": "x"}, "map: ahead='x'.*expected a whole number"),
        (3, {}, "map: 3 .*has no items"),
    ],
)
@pytest.mark.parametrize("where", [{}, {"pool": "local"}])
def test_a_map_that_cannot_be_is_refused_at_once(
    values: Any, words: dict[str, Any], said: str, where: dict[str, Any]
) -> None:
    flow = fo.flow_output(fo.task(half)(fo.flow_input("x", fo.float64)))
    with fo.slice(flow, **where) as s, pytest.raises(fo.ValueRefused, match=said):
        s.map(values, **words)


def test_a_map_over_nodes_of_a_pool_goes_on_too(tmp_path: Path) -> None:
    folder, item = fo.flow_input("folder", fo.str_), fo.flow_input("item", fo.any_)
    with fo.slice(fo.flow_output(made(fails)(folder, item)), pool="local") as s:
        results = list(s.map(((str(tmp_path), i) for i in range(20)), on_error="return"))
    assert [i for i, r in enumerate(results) if not r.ok] == [7, 8, 9]
