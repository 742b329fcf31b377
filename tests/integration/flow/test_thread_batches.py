"""Quick tasks side by side in threads: a thread takes some at once, idle ones take from those."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

import flowos as fo
from flowos.engine._waiting_tasks import waiting_tasks
from tests.waiting import comes

QUICK = 400
HALVES = range(QUICK // 2), range(QUICK // 2, QUICK)
"""Enough of them that threads take many at once."""
seen: Counter[int] = Counter()
met, left, waiting, late = (threading.Event() for _ in range(4))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    seen.clear()
    for event in (met, left, waiting, late):
        event.clear()
    yield
    left.set()


@fo.task
def counted(x: fo.int64, number: fo.int64) -> fo.int64:
    seen[x] += 1
    return x + number


@fo.task
def waits(x: fo.int64) -> fo.int64:
    if x:
        waiting.set()
        assert met.wait(60), "the other one has not run"
    return x


@fo.task
def meets(x: fo.int64) -> fo.int64:
    met.set()
    return -x


@fo.task
def stays(x: fo.int64) -> fo.int64:
    met.set()
    left.wait(60)
    return x


@fo.task
def fails(x: fo.int64) -> fo.int64:
    if x == 3:
        raise ValueError(x)
    return x


@fo.task
def slow(x: fo.int64) -> fo.int64:
    met.set()
    left.wait(60)
    time.sleep(0.002)
    seen[-1] += 1
    return x


@fo.task(needs=fo.Needs(alone=True))
def by_itself(x: fo.int64) -> fo.int64:  # noqa: ARG001
    return seen[-1]


@fo.task
def last(x: fo.int64) -> fo.int64:
    """The other place runs this, and then another slice gets its core."""
    if x:
        assert waiting.wait(60)
        late.set()
        assert comes(lambda: left.is_set() or any(e.state == "waits" for e in waiting_tasks("one")))
    return x


@fo.task
def one(x: fo.int64) -> fo.int64:
    left.set()
    return x


@fo.task
def interrupts(x: fo.int64) -> fo.int64:
    signal.raise_signal(signal.SIGINT)
    return x


def around(*middle: fo.Task) -> fo.Flow:
    """These between as many quick ones."""
    x = fo.flow_input("x", fo.int64)
    first, then = HALVES
    before = [counted(x, i) for i in first]
    between = [task(x) for task in middle]
    return fo.flow_output(*before, *between, *(counted(x, i) for i in then))


def expected(x: int, *middle: int) -> list[int]:
    before, after = ([x + i for i in part] for part in HALVES)
    return [*before, *middle, *after]


@pytest.mark.parametrize("waiting_first", [True, False])
def test_a_task_may_wait_for_one_of_its_own_batch(waiting_first: bool) -> None:
    pair = (waits, meets) if waiting_first else (meets, waits)
    with fo.slice(around(*pair), workers="thread", cores=2) as s:
        for x in range(1, 21):
            met.clear()
            assert s.run(x) == expected(x, *((x, -x) if waiting_first else (-x, x)))


def test_each_task_runs_once_for_each_of_many_callers() -> None:
    wrong: list[int] = []
    with fo.slice(around(), workers="thread", cores=2) as s:

        def call(x: int) -> None:
            if s.run(x) != expected(x):
                wrong.append(x)

        callers = [threading.Thread(target=call, args=(x,)) for x in range(16)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(120)
    assert wrong == []
    assert seen == dict.fromkeys(range(16), QUICK)


def test_a_failure_in_a_batch_is_that_of_its_run_alone() -> None:
    with fo.slice(around(fails), workers="thread", cores=2) as s:
        for _ in range(10):
            with pytest.raises(fo.TaskFailed, match="fails"):
                s.run(3)
        futures = [s.submit(0), s.submit(3), s.submit(0)]
        assert isinstance(futures[1].exception(60), fo.TaskFailed)
        assert futures[0].result() == futures[2].result() == expected(0, 0)


def test_a_slice_that_is_freed_begins_nothing_of_a_batch_any_more() -> None:
    s = fo.slice(around(stays), workers="thread", cores=1)
    future = s.submit(1)
    assert met.wait(60)
    frees = threading.Thread(target=s.free)
    frees.start()
    assert isinstance(future.exception(60), fo.FlowosError)
    left.set()
    frees.join(60)
    assert not frees.is_alive()
    assert seen[1] < QUICK


def test_what_runs_of_a_batch_and_what_waits_is_shown() -> None:
    with fo.slice(around(stays), workers="thread", cores=1) as s:
        future = s.submit(1)
        assert met.wait(60)
        states = Counter({(each.task.split("#")[0], each.state): 0 for each in waiting_tasks()})
        for each in waiting_tasks():
            states[each.task.split("#")[0], each.state] += each.number
        left.set()
        assert future.result(60) == expected(1, 1)
    assert states["stays", "runs"] == 1
    assert sum(number for (_, state), number in states.items() if state == "runs") == 1
    assert sum(states.values()) == 1 + len(HALVES[1])


def test_a_run_after_an_interrupted_one_has_all_its_values() -> None:
    with fo.slice(around(interrupts), workers="thread", cores=1) as s:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                s.run(1)
    with fo.slice(around(), workers="thread", cores=1) as s:
        assert s.run(1) == expected(1)


def test_slow_tasks_of_a_batch_leave_the_core_to_another_slice_in_between() -> None:
    """So many are taken at once, as quick ones came before."""
    x = fo.flow_input("x", fo.int64)
    other = fo.slice(fo.flow_output(by_itself(x)), workers="thread")
    s = fo.slice(around(*[slow] * 200), workers="thread", cores=1)
    with other, s:
        future = s.submit(1)
        assert met.wait(60)
        asks = other.submit(2)
        assert comes(lambda: any(each.state == "waits" for each in waiting_tasks("by_itself")))
        left.set()
        (count,) = asks.result(60)
        assert isinstance(count, int)
        assert count < 10
        assert future.result(60) == expected(1, *[1] * 200)


def test_what_is_left_of_a_batch_waits_for_the_core_that_another_slice_has() -> None:
    """Its first task waits for its second one, which needs the core that was given away."""
    x = fo.flow_input("x", fo.int64)
    same = counted(x, 0)
    pair, few = [waits(same), meets(same)], [counted(same, i) for i in range(5)]
    flow = fo.flow_output(*(counted(x, i) for i in range(QUICK)), *pair, *few, last(same))
    other = fo.slice(one(x), workers="thread")
    with fo.slice(flow, workers="thread", cores=2) as s, other:
        for _ in range(20):
            s.run(0)
        met.clear()
        future = s.submit(1)
        assert late.wait(60)
        asks = other.submit(1)
        *_, first, then, _, _, _, _, _, ended = future.result(60)
        assert (first, then, ended) == (1, -1, 1)
        asks.result(60)


def test_tasks_of_batches_are_shown_at_any_moment() -> None:
    with fo.slice(around(), workers="thread", cores=2) as s:
        futures = [s.submit(x) for x in range(100)]
        while not all(future.done() for future in futures):
            waiting_tasks()
