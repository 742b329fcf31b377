"""All slices of a process share one ledger of the node: nothing is used twice, nothing hangs."""

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import flowos as fo
from flowos.engine import here
from flowos.engine.local._processors import usable_cores
from flowos.model import flow_input
from tests.waiting import PATIENCE_SECONDS, in_a_thread

CORES = usable_cores()

Way = Literal["thread", "inline"]


@pytest.fixture(autouse=True)
def _all_is_given_back() -> Iterator[None]:
    yield
    ledger = here().ledger
    assert sorted(ledger.idle) == sorted(os.sched_getaffinity(0))[:CORES]
    assert not ledger.line


def integer(name: str = "a") -> Any:
    return flow_input(name, fo.int64)


class Watched:
    """Counts the threads that are inside at the same time."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.now = self.most = self.entered = 0

    def __enter__(self) -> "Watched":
        with self.changed:
            self.now += 1
            self.entered += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.now -= 1
            self.changed.notify_all()

    def comes(self, entered: int, seconds: float = PATIENCE_SECONDS) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.entered >= entered, seconds)


def answer(act: Any) -> Any:
    thread, answers = in_a_thread(act)
    thread.join(PATIENCE_SECONDS)
    assert answers, "it hangs"
    return answers[0]


@pytest.mark.parametrize("wide", [1, 3])
@pytest.mark.parametrize("cores", [1, CORES])
@pytest.mark.parametrize("way", ["thread", "inline"])
def test_a_task_may_run_its_own_slice_many_deep(way: Way, cores: int, wide: int) -> None:
    held: list[Any] = []

    @fo.task
    def down(depth: fo.int64) -> fo.int64:
        return 1 + sum(held[0].run(depth - 1)) if depth else 0

    depth = integer("depth")
    flow = fo.flow_output(*(down(depth) for _ in range(wide)))
    with fo.slice(flow, workers=way, cores=cores) as s:
        held.append(s)
        deep = 5 if wide > 1 else 20
        expected = 0
        for _ in range(deep):
            expected = 1 + wide * expected
        assert answer(lambda: s.run(deep)) == [expected] * wide
        assert s.run(0) == [0] * wide


@pytest.mark.parametrize("inner", ["thread", "inline", "process"])
@pytest.mark.parametrize("wide", [1, CORES + 1])
def test_tasks_may_open_slices_of_their_own_as_deep_as_they_like(inner: Any, wide: int) -> None:
    @fo.task
    def same(x: fo.int64) -> fo.int64:
        return x

    def opened(depth: int) -> int:
        @fo.task
        def down(x: fo.int64) -> fo.int64:
            return 1 + opened(depth - 1) if depth else x

        task = down if depth else same
        way: Any = "thread" if depth else inner
        with fo.slice([task(a) for a in [integer()] for _ in range(wide)], workers=way) as s:
            results: list[Any] = s.run(1)
            return sum(results)

    expected = wide
    for _ in range(2):
        expected = wide * (1 + expected)
    assert answer(lambda: opened(2)) == expected


def test_a_task_that_needs_all_cores_may_run_another_that_does() -> None:
    @fo.task(needs=fo.Needs(cores=CORES))
    def inner(x: fo.int64) -> fo.int64:
        return x + 1

    @fo.task(needs=fo.Needs(alone=True))
    def outer(x: fo.int64) -> fo.int64:
        with fo.slice([inner(a) for a in [integer()] for _ in range(3)]) as s:
            results: list[Any] = s.run(x)
            return sum(results)

    with fo.slice([outer(a) for a in [integer()] for _ in range(2)]) as s:
        assert answer(lambda: s.run(1)) == [6, 6]


def test_two_slices_together_use_no_more_cores_than_there_are() -> None:
    inside = Watched()

    @fo.task
    def work(x: fo.int64) -> fo.int64:
        with inside:
            inside.comes(CORES + 1, 0.002)
        return x

    flow = fo.flow_output(*(work(integer()) for _ in range(1)))
    wide = fo.flow_output(*(work(a) for a in [integer()] for _ in range(8)))
    with fo.slice(wide) as first, fo.slice(wide) as second, fo.slice(flow) as third:
        acts = [lambda s=s: [s.run(1) for _ in range(4)] for s in (first, second, third)]
        threads = [in_a_thread(act) for act in acts]
        for thread, answers in threads:
            thread.join(PATIENCE_SECONDS)
            assert answers, "it hangs"
            assert isinstance(answers[0], list), answers
    assert inside.most <= CORES
    assert inside.entered == 4 * (8 + 8 + 1)


def test_who_is_alone_is_alone_on_the_node() -> None:
    inside, alone = Watched(), Watched()
    seen: list[int] = []

    @fo.task
    def work(x: fo.int64) -> fo.int64:
        with inside:
            seen.append(alone.now)
            inside.comes(10**6, 0.001)
            seen.append(alone.now)
        return x

    @fo.task(needs=fo.Needs(alone=True))
    def measure(x: fo.int64) -> fo.int64:
        with alone:
            seen.append(inside.now)
            alone.comes(10**6, 0.002)
            seen.append(inside.now)
        return x

    a = integer()
    with (
        fo.slice([work(a) for _ in range(6)]) as first,
        fo.slice([measure(a), work(a), measure(a)]) as second,
    ):
        threads = [in_a_thread(lambda s=s: [s.run(1) for _ in range(5)]) for s in (first, second)]
        for thread, answers in threads:
            thread.join(PATIENCE_SECONDS)
            assert answers, "it hangs"
    assert alone.entered == 10
    assert inside.entered == 35
    assert set(seen) == {0}


def test_memory_is_counted_over_all_slices() -> None:
    inside = Watched()
    most = here().ledger.whole.memory_bytes

    @fo.task(needs=fo.Needs(memory_bytes=most // 2 + 1))
    def large(x: fo.int64) -> fo.int64:
        with inside:
            inside.comes(2, 0.02)
        return x

    with fo.slice(large(integer())) as first, fo.slice(large(integer())) as second:
        threads = [in_a_thread(lambda s=s: s.run(1)) for s in (first, second)]
        for thread, answers in threads:
            thread.join(PATIENCE_SECONDS)
            assert answers == [[1]]
    assert (inside.most, inside.entered) == (1, 2)


@pytest.mark.skipif(CORES < 2, reason="on one core everything waits for everything")
def test_small_tasks_run_beside_a_large_one_that_waits() -> None:
    begun, small, go_on = threading.Event(), Watched(), threading.Event()
    order: list[str] = []

    @fo.task
    def long(x: fo.int64) -> fo.int64:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        order.append("long")
        return x

    @fo.task(needs=fo.Needs(cores=2))
    def large(x: fo.int64) -> fo.int64:
        order.append("large")
        return x

    @fo.task
    def quick(x: fo.int64) -> fo.int64:
        order.append("quick")
        with small:
            return x

    a = integer()
    flow = fo.flow_output(long(a), large(a), *(quick(a) for _ in range(5)))
    with fo.slice(flow, cores=2) as s:
        thread, answers = in_a_thread(lambda: s.run(1))
        assert begun.wait(PATIENCE_SECONDS)
        assert small.comes(5), "a core lies idle"
        go_on.set()
        thread.join(PATIENCE_SECONDS)
    assert answers == [[1] * 7]
    assert order == ["quick"] * 5 + ["long", "large"]


@pytest.mark.skipif(CORES < 2, reason="on one core everything waits for everything")
def test_a_large_task_begins_though_small_ones_never_end() -> None:
    begun, stop = threading.Event(), threading.Event()

    @fo.task
    def small(x: fo.int64) -> fo.int64:
        return x

    @fo.task(needs=fo.Needs(cores=2))
    def large(x: fo.int64) -> fo.int64:
        begun.set()
        return x

    def for_ever(s: Any) -> int:
        count = 0
        while not stop.is_set():
            s.run(1)
            count += 1
        return count

    a = integer()
    with (
        fo.slice([small(a), small(a), small(a)]) as first,
        fo.slice(small(a)) as second,
        fo.slice(large(a)) as third,
    ):
        others = [in_a_thread(lambda s=s: for_ever(s)) for s in (first, second)]
        for _ in range(20):
            begun.clear()
            assert answer(lambda: third.run(1)) == [1]
        stop.set()
        for thread, answers in others:
            thread.join(PATIENCE_SECONDS)
            assert answers, "it hangs"
            assert answers[0] > 0


def test_a_run_that_fails_leaves_nothing_in_the_line() -> None:
    @fo.task
    def fails(x: fo.int64) -> fo.int64:
        raise ZeroDivisionError(x)

    @fo.task(needs=fo.Needs(cores=CORES))
    def large(x: fo.int64) -> fo.int64:
        return x

    a = integer()
    with fo.slice([fails(a), *(large(a) for _ in range(4))]) as s, fo.slice(large(a)) as other:
        for _ in range(10):
            with pytest.raises(fo.TaskFailed):
                s.run(1)
            assert answer(lambda: other.run(1)) == [1]


def test_after_a_ctrl_c_all_cores_are_there_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
            import signal, time
            import flowos as fo
            from flowos.engine import here

            @fo.task
            def nap(x: fo.float64) -> fo.float64:
                end = time.monotonic() + x
                while time.monotonic() < end:
                    time.sleep(0.01)
                return x

            x = fo.flow_input("x", fo.float64)
            ledger = here().ledger
            before = sorted(ledger.idle)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            for flow in ([nap(x)], [nap(x)] * 1 + [nap(x), nap(x), nap(x)]):
                with fo.slice(flow) as s:
                    for _ in range(3):
                        try:
                            signal.setitimer(signal.ITIMER_REAL, 0.1)
                            s.run(1.0)
                        except KeyboardInterrupt:
                            pass
                    assert s.run(0.0) == [0.0] * len(flow)
            print(sorted(ledger.idle) == before, len(ledger.line))
        """)
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_a_forked_child_has_all_cores() -> None:
    ledger = here().ledger
    core = ledger.idle.pop()
    try:
        child = os.fork()
        if child == 0:
            os._exit(len(here().ledger.idle))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == CORES
    finally:
        ledger.idle.append(core)


def test_what_the_node_has_gained_since_the_first_slice_is_there_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task that was promised a GPU waited for ever for the ledger of before."""
    had = fo.command(["echo", "had"], stdout="said")
    with fo.slice(fo.flow_output(had())) as s:
        s.run()
    monkeypatch.setattr("flowos.engine.local._processors.gpu_count", lambda: 3)
    asks = fo.command(["echo", "had"], stdout="said", needs=fo.Needs(gpus=3))
    for _ in range(2):
        with fo.slice(fo.flow_output(asks())) as s:
            assert s.run() == ["had\n"]
