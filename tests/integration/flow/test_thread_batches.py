"""Quick tasks side by side in threads: a thread takes some at once, idle ones take from those."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

import flowos as fo
from flowos.engine._waiting_tasks import waiting_tasks

QUICK = 400
HALVES = range(QUICK // 2), range(QUICK // 2, QUICK)
"""Enough of them that threads take many at once."""
seen: Counter[int] = Counter()
met = threading.Event()
left = threading.Event()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    seen.clear()
    met.clear()
    left.clear()
    yield
    left.set()


@fo.task
def counted(x: fo.int64, number: fo.int64) -> fo.int64:
    seen[x] += 1
    return x + number


@fo.task
def waits(x: fo.int64) -> fo.int64:
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
    time.sleep(0.05)
    seen[-1] += 1
    return x


@fo.task(needs=fo.Needs(alone=True))
def by_itself(x: fo.int64) -> fo.int64:
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
        for x in range(20):
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
    threading.Timer(0.1, left.set).start()
    s.free()
    assert isinstance(future.exception(60), fo.FlowosError)
    begun = seen[1]
    assert begun < QUICK
    time.sleep(0.05)
    assert seen[1] == begun


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
    """So many are taken at once, as quick ones came before, that these would take three seconds."""
    x = fo.flow_input("x", fo.int64)
    other = fo.slice(fo.flow_output(by_itself(x)), workers="thread")
    s = fo.slice(around(*[slow] * 200), workers="thread", cores=1)
    with other, s:
        future = s.submit(1)
        assert met.wait(60)
        before = seen[-1]
        assert other.run(2) == [2]
        assert seen[-1] - before < 40
        s.free()
        assert isinstance(future.exception(60), fo.FlowosError)
