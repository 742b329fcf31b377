"""Runs in the background: as futures of concurrent.futures, and awaited."""

import asyncio
import concurrent.futures
import contextlib
import gc
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import flowos as fo
from flowos.engine import Slice
from tests.integration.flow.submitted_tasks import add, invert, sleep, wait_for
from tests.waiting import PATIENCE_SECONDS, comes

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


def integer(name: str = "a") -> Any:
    return fo.flow_input(name, fo.int64)


def text(name: str = "path") -> Any:
    return fo.flow_input(name, fo.str_)


def napping() -> fo.Flow:
    return fo.flow_output(sleep(fo.flow_input("seconds", fo.float64), text()))


@pytest.mark.parametrize("way", WAYS)
def test_submitted_runs_come_as_they_are_completed_with_their_errors(way: Way) -> None:
    several = fo.flow_output(add(invert(integer()), 1), invert(integer("b")))
    with fo.slice(invert(integer()), workers=way) as one, fo.slice(several, workers=way) as two:
        for s, given in ((one, ()), (two, (1,))):
            runs = {s.submit(i, *given): i for i in range(-20, 20)}
            found: dict[int, Any] = {}
            for run in fo.as_completed(runs):
                assert run.done()
                error = run.exception()
                found[runs[run]] = error if error else run.result()[0]
            assert isinstance(found.pop(0), fo.TaskFailed)
            more = int(s is two)
            assert found == {i: 100 // i + more for i in range(-20, 20) if i}


def test_results_come_in_the_order_in_which_they_end(tmp_path: Path) -> None:
    with fo.slice(wait_for(text()), cores=2) as s:
        first, second = (s.submit(str(tmp_path / name)) for name in ("a", "b"))
        assert first.running()
        (tmp_path / "b").touch()
        ended = fo.as_completed([first, second], timeout=PATIENCE_SECONDS)
        assert next(ended) is second
        assert not first.done()
        (tmp_path / "a").touch()
        assert next(ended) is first
        with pytest.raises(StopIteration):
            next(ended)
        assert not first.cancel()


def test_the_ways_of_concurrent_futures_work(tmp_path: Path) -> None:
    with fo.slice(wait_for(text()), cores=2) as s:
        done, held = s.submit(str(tmp_path)), s.submit(str(tmp_path / "never"))
        ended, going = concurrent.futures.wait(
            [done, held], return_when=concurrent.futures.FIRST_COMPLETED
        )
        assert (ended, going) == ({done}, {held})
        with pytest.raises(concurrent.futures.TimeoutError):
            held.result(timeout=0.05)
        told: list[Any] = []
        held.add_done_callback(told.append)
        assert held.cancel()
        assert held.cancelled()
        with pytest.raises(concurrent.futures.CancelledError):
            held.result()
        assert told == [held]
        assert list(fo.as_completed([held, done]))
        (tmp_path / "never").touch()
        assert s.run(str(tmp_path)) == [str(tmp_path)]


def test_ctrl_c_ends_the_runs_that_are_waited_for(tmp_path: Path) -> None:
    main = threading.main_thread().ident
    assert main is not None
    with fo.slice(wait_for(text()), cores=2) as s:
        runs = [s.submit(str(tmp_path / name)) for name in "abc"]
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            list(fo.as_completed(runs))
        assert all(run.cancelled() for run in runs)
        (tmp_path / "d").touch()
        assert s.run(str(tmp_path / "d"))


def test_what_is_no_run_does_not_complete() -> None:
    wrong: Any = 3
    with pytest.raises(fo.ValueRefused, match=r"as_completed: 3 .*expected runs of `submit`"):
        fo.as_completed([wrong])


def test_wrong_values_are_refused_where_they_are_submitted() -> None:
    with fo.slice(invert(integer())) as s:
        with pytest.raises(fo.ValueRefused, match="expected int64, given 'a'"):
            s.submit("a")
        with pytest.raises(fo.ValueRefused, match="takes 1 argument"):
            s.submit(1, 2)
    with pytest.raises(fo.SliceFreed):
        s.submit(1)


def test_a_run_without_tasks_is_done_at_once() -> None:
    with fo.slice(fo.flow_output(integer())) as s:
        assert s.submit(3).result() == [3]
        assert asyncio.run(s.arun(4)) == [4]


@pytest.mark.parametrize("way", ["thread", "process"])
def test_free_ends_what_was_submitted(way: Way, tmp_path: Path) -> None:
    s = fo.slice(wait_for(text()), workers=way, cores=2)
    runs = [s.submit(str(tmp_path / str(i))) for i in range(10)]
    assert comes((tmp_path / "0.begun").exists)

    def goes_on() -> None:
        assert comes(lambda: "freed" in repr(s))
        for i in (0, 1):
            (tmp_path / str(i)).touch()

    going_on = threading.Thread(target=goes_on)
    going_on.start()
    s.free()
    going_on.join()
    for run in runs:
        with pytest.raises(fo.SliceFreed):
            run.result(timeout=PATIENCE_SECONDS)


def test_a_forgotten_slice_ends_once_its_runs_are_done(tmp_path: Path) -> None:
    s = fo.slice(wait_for(text()), cores=1)
    run = s.submit(str(tmp_path / "a"))
    del s
    gc.collect()
    (tmp_path / "a").touch()
    assert run.result(timeout=PATIENCE_SECONDS) == [str(tmp_path / "a")]


def test_a_callback_may_run_the_slice_itself_on_its_only_core() -> None:
    found: list[Any] = []
    over = threading.Event()
    with fo.slice(add(integer(), 1), cores=1) as s:

        def again(run: Any) -> None:
            found.extend([run.result(), s.run(10), s.submit(20).result()])
            over.set()

        s.submit(1).add_done_callback(again)
        assert over.wait(PATIENCE_SECONDS)
    assert found == [[2], [11], [21]]


async def _all_of(inner: Slice, values: list[int]) -> list[Any]:
    return await asyncio.gather(*(inner.arun(value) for value in values))


@pytest.mark.parametrize(
    "results",
    [
        lambda inner, values: [run.result() for run in [inner.submit(v) for v in values]],
        lambda inner, values: [
            run.result() for run in fo.as_completed([inner.submit(v) for v in values])
        ],
        lambda inner, values: asyncio.run(_all_of(inner, values)),
    ],
    ids=["result", "as_completed", "arun"],
)
def test_a_task_may_wait_for_runs_that_it_submits_on_one_core(
    results: Callable[[Slice, list[int]], list[Any]],
) -> None:
    with fo.slice(add(integer(), 1), cores=1) as inner:

        @fo.task
        def outer(x: fo.int64) -> fo.int64:
            return sum(given[0] for given in results(inner, [x, x + 1, x + 2]))

        x = integer()
        with fo.slice([outer(x) for _ in range(8)]) as s:
            assert s.run(1) == [9] * 8
            assert s.submit(2).result() == [12] * 8


def test_submitted_runs_are_retried(tmp_path: Path) -> None:
    path = str(tmp_path / "n")

    @fo.task(retries=2)
    def tries(x: fo.int64) -> fo.int64:
        with Path(path).open("a") as file:
            file.write("x")
        if len(Path(path).read_text()) < 3:
            raise ConnectionError
        return x

    with fo.slice(tries(integer())) as s:
        assert s.submit(1).result() == [1]


def test_thousands_may_be_submitted() -> None:
    with fo.slice(add(integer(), 1)) as s:
        runs = [s.submit(i) for i in range(5000)]
        assert [run.result() for run in runs] == [[i + 1] for i in range(5000)]


def test_runs_are_awaited_together_and_no_thread_waits_for_each(tmp_path: Path) -> None:
    async def all_of(s: Any) -> list[Any]:
        waiting = [asyncio.ensure_future(s.arun(str(tmp_path / "go"))) for _ in range(500)]
        while not (tmp_path / "go.begun").exists():
            await asyncio.sleep(0.005)
        threads = threading.active_count()
        (tmp_path / "go").touch()
        results = await asyncio.gather(*waiting)
        assert threads < 50
        return results

    with fo.slice(wait_for(text()), cores=2) as s:
        assert asyncio.run(all_of(s)) == [[str(tmp_path / "go")]] * 500


def test_an_awaited_run_raises_its_own_error() -> None:
    with fo.slice(invert(integer())) as s:
        with pytest.raises(fo.TaskFailed, match="ZeroDivisionError"):
            asyncio.run(s.arun(0))
        with pytest.raises(fo.ValueRefused):
            asyncio.run(s.arun("a"))


def test_cancelling_the_task_that_awaits_ends_the_run_and_its_worker(
    tmp_path: Path, is_gone: Any
) -> None:
    async def cancels(s: Any) -> None:
        waiting = asyncio.ensure_future(s.arun(600.0, str(tmp_path / "pid")))
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
            await asyncio.sleep(0.005)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        assert waiting.cancelled()

    with fo.slice(napping(), workers="process", cores=1) as s:
        asyncio.run(cancels(s))
        assert is_gone(int((tmp_path / "pid").read_text()))
        assert s.run(0.0, str(tmp_path / "pid")) == [0.0]


def test_a_time_limit_of_asyncio_ends_the_run(tmp_path: Path, is_gone: Any) -> None:
    async def limited(s: Any) -> None:
        await s.arun(0.0, str(tmp_path / "pid"))
        for seconds in (1.0, 10.0, 100.0):  # a busy machine may not have begun it
            (tmp_path / "pid").write_text("")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(s.arun(600.0, str(tmp_path / "pid")), seconds)
            if (tmp_path / "pid").read_text():
                return

    with fo.slice(napping(), workers="process", cores=1) as s:
        asyncio.run(limited(s))
        assert is_gone(int((tmp_path / "pid").read_text()))


def test_slices_of_a_pool_submit_and_await_too() -> None:
    flow = fo.flow_output(invert(integer()))
    with fo.slice(flow, pool="local") as one, fo.slice(pool="local") as several:
        assert one.submit(4).result() == [25]
        assert asyncio.run(one.arun(5)) == [20]
        assert several.submit(flow, 4).result() == [25]
        assert asyncio.run(several.arun(flow, 10)) == [10]
        with pytest.raises(fo.ValueRefused):
            several.submit(flow, "a")
        with pytest.raises(fo.TaskFailed):
            several.submit(flow, 0).result()
