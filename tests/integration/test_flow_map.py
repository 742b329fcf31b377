"""`map`: many runs in flight, results in order, no more taken than may be kept."""

import threading
from collections.abc import Iterator
from typing import Any, Literal

import pytest

import flowos as fo
from flowos.model import flow_input

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y


def integer(name: str = "a") -> Any:
    return flow_input(name, fo.int64)


def tree(leaves: int = 64) -> fo.Flow:
    """Joins in pairs, so that most units wait for two others."""
    a = integer()
    row = [add(a, i) for i in range(leaves)]
    while len(row) > 1:
        row = [add(x, y) for x, y in zip(row[::2], row[1::2], strict=True)]
    return fo.flow_output(row[0])


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
    meet = threading.Barrier(2, timeout=60)

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
        with pytest.raises(fo.ValueRefused, match="run: 2 values given"):
            list(s.map([(1, 2)]))
        assert s.run(1) == [10]
