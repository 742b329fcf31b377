"""Needs of tasks: how many run at once, which run alone, which could never start."""

import threading
import time
from typing import Any

import pytest

import flowos as fo
from flowos.model import flow_input
from tests.waiting import PATIENCE_SECONDS


def integer(name: str = "a") -> Any:
    return flow_input(name, fo.int64)


def max_at_once(needs: fo.Needs, cores: int, wanted: int) -> int:
    """How many of eight such tasks were seen at once; each waits for so many, or a while."""
    changed = threading.Condition()
    now: list[int] = [0, 0]
    seconds = PATIENCE_SECONDS if wanted > 1 else 0.01

    @fo.task(needs=needs)
    def count(x: fo.int64) -> fo.int64:
        with changed:
            now[0] += 1
            now[1] = max(now)
            changed.notify_all()
            changed.wait_for(lambda: now[1] >= max(wanted, 2), seconds)
            now[0] -= 1
        return x

    a = integer()
    with fo.slice(fo.flow_output(*(count(a) for _ in range(8))), cores=cores) as s:
        assert s.run(3) == [3] * 8
    return now[1]


def test_needs_limit_how_many_tasks_run_at_once() -> None:
    assert max_at_once(fo.Needs(), cores=2, wanted=2) == 2
    assert max_at_once(fo.Needs(), cores=1, wanted=1) == 1
    assert max_at_once(fo.Needs(cores=2), cores=2, wanted=1) == 1
    assert max_at_once(fo.Needs(alone=True), cores=2, wanted=1) == 1


def test_nothing_else_of_the_slice_runs_beside_a_task_that_is_alone() -> None:
    seen: list[str] = []

    def note(name: str) -> None:
        seen.append(f"+{name}")
        time.sleep(0.01)
        seen.append(f"-{name}")

    @fo.task
    def plain(x: fo.int64) -> fo.int64:
        note("plain")
        return x

    @fo.task(needs=fo.Needs(alone=True))
    def alone(x: fo.int64) -> fo.int64:
        note("alone")
        return x

    a = integer()
    tasks = [(alone if i % 3 == 1 else plain)(a) for i in range(12)]
    with fo.slice(fo.flow_output(*tasks), cores=2) as s:
        assert len(list(s.map(range(4)))) == 4
    at = [i for i, what in enumerate(seen) if what == "+alone"]
    assert len(at) == 16
    assert all(seen[i + 1] == "-alone" for i in at)


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (fo.Needs(cores=10**6), "task 'f' needs 1000000 cores, the slice has 2"),
        (fo.Needs(cores=1, ranks=99), "needs 1 core for each of 99 ranks, the slice has 2"),
        (fo.Needs(memory_bytes=10**18), "needs 1000000000000000000 bytes, the node has"),
        (fo.Needs(gpus=99), "needs 99 GPUs, the node has"),
        (fo.Needs(devices={"fpga": 1}), "task 'f' needs 1 fpga, node "),
    ],
)
def test_a_task_that_could_never_start_is_refused_at_once(needs: fo.Needs, words: str) -> None:
    @fo.task(needs=needs, name="f")
    def task(x: fo.int64) -> fo.int64:
        return x

    with pytest.raises(fo.SliceRefused) as caught:
        fo.slice(task(integer()), cores=2)
    assert words in str(caught.value)
