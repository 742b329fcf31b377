"""How far the runs of a slice are, as a function sees it."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import flowos as fo
from flowos.model import Progress
from tests.integration.flow.slow_tasks import add, fast, odd, slow
from tests.waiting import comes

Way = Literal["thread", "process", "inline"]


def number() -> Any:
    return fo.flow_input("n", fo.int64)


def ladder(steps: int) -> fo.Flow:
    n = number()
    last = n
    for _ in range(steps):
        last = add(last, slow(n))
    return fo.flow_output(last)


class Seen(list[Progress]):
    """What was said, and what it came to at the end of each stretch."""

    def __call__(self, progress: Progress) -> None:
        self.append(progress)

    @property
    def counts(self) -> list[tuple[float, float, str]]:
        return [(each.done, each.total, each.unit) for each in self]


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.mark.parametrize("way", ["thread", "process", "inline"])
def test_a_run_counts_its_tasks_up_to_all(seen: Seen, way: Way) -> None:
    def shown() -> bool:
        """Also before the end, if others leave us a processor."""
        seen.clear()
        with fo.slice(ladder(8), workers=way, progress=seen) as s:
            assert s.run(1) == [9]
        done = [each.done for each in seen]
        assert done == sorted(done)
        assert seen.counts[-1] == (16, 16, "task")
        return done[0] < 16

    assert comes(shown)
    middle = seen[len(seen) // 2]
    assert any(name in middle.detail for name in ("slow", "add"))
    assert f"{middle.done}/16 tasks" in middle.detail
    assert (middle.left_seconds or 0) > 0 or middle.done == 0
    assert seen[-1].left_seconds is None


@pytest.mark.parametrize("way", ["thread", "process", "inline"])
def test_tasks_of_a_chain_are_counted_one_by_one(seen: Seen, way: Way) -> None:
    """They go to a worker as one."""
    last = number()
    for _ in range(10):
        last = slow(last)

    def counted() -> bool:
        """Some of them, as others may have the processors meanwhile."""
        seen.clear()
        with fo.slice(last, workers=way, progress=seen) as s:
            assert s.run(3) == [3]
        done = [each.done for each in seen]
        assert done == sorted(done)
        return len(set(done)) > 3

    assert comes(counted)
    assert seen.counts[-1] == (10, 10, "task")
    for each in seen[:-1]:
        label = "slow" if each.done == 0 else f"slow#{each.done + 1:.0f}"
        assert label in each.detail.split("  ")[-1].split()


@pytest.mark.parametrize("way", ["thread", "process"])
def test_a_map_counts_its_items_and_knows_their_number(seen: Seen, way: Way) -> None:
    with fo.slice(slow(number()), workers=way, progress=seen) as s:
        assert len(list(s.map(range(20)))) == 20
        assert seen.counts[-1] == (20, 20, "item")
        assert {total for _, total, _ in seen.counts} == {20}
        seen.clear()
        assert len(list(s.map(i for i in range(20)))) == 20  # has no length
        assert seen.counts[-1] == (20, 20, "item")
        assert {total for _, total, _ in seen.counts[:-1]} == {0}
        assert all(each.left_seconds is None for each in seen)


def test_failures_are_counted_and_failed_items_are_over(seen: Seen) -> None:
    with fo.slice(odd(number()), progress=seen) as s:
        results = list(s.map(range(20), on_error="return"))
    assert sum(each.error is not None for each in results) == 10
    assert seen.counts[-1] == (20, 20, "item")
    assert seen[-1].detail.endswith("10 failed")


def test_a_map_that_fails_or_is_left_is_over(seen: Seen) -> None:
    with fo.slice(odd(number()), progress=seen) as s:
        with pytest.raises(fo.TaskFailed):
            list(s.map([0] * 20 + [1] + [0] * 50))
        assert seen.counts[-1] == (20, 20, "item")
        for i, _ in enumerate(s.map([0] * 100)):
            if i == 20:
                break
        assert comes(lambda: seen.counts[-1] == (21, 21, "item"))
        assert s.run(2) == [2]


def test_submitted_runs_are_counted_as_runs(seen: Seen) -> None:
    with fo.slice(ladder(2), progress=seen) as s:
        runs = [s.submit(i) for i in range(6)]
        assert [run.result() for run in runs] == [[3 * i] for i in range(6)]
        assert comes(lambda: seen.counts[-1] == (6, 6, "run"))
    assert {total for _, total, _ in seen.counts} == {6}


def test_what_is_found_in_a_journal_is_done(seen: Seen, tmp_path: Path) -> None:
    for _ in range(2):
        with fo.slice(slow(number()), journal=tmp_path / "kept", progress=seen) as s:
            for _ in s.map(range(10)):
                time.sleep(0.02)
        assert seen.counts[-1] == (10, 10, "item")


def test_items_over_several_nodes_are_counted_together(
    seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flowos.toml").write_text('[pools.pair]\nkind = "fake"\nnodes = 2\n')
    with fo.slice(slow(number()), pool="pair", nodes=2, cores=1, progress=seen) as s:
        assert len(list(s.map(range(25)))) == 25
        assert comes(lambda: seen.counts[-1] == (25, 25, "item"))
        assert {total for _, total, _ in seen.counts} == {25}
        seen.clear()
        assert len(list(s.map(i for i in range(25)))) == 25
        assert comes(lambda: seen.counts[-1] == (25, 25, "item"))
        assert {total for _, total, _ in seen.counts[:-1]} == {0}
        runs = [s.submit(i) for i in range(20)]
        assert [run.result() for run in runs] == [[i] for i in range(20)]
        assert comes(lambda: seen.counts[-1] == (20, 20, "run"))


def test_a_task_is_named_with_how_long_it_has_been_running(seen: Seen) -> None:
    @fo.task
    def long(n: fo.int64) -> fo.int64:
        assert comes(lambda: named.search("\n".join(p.detail for p in seen)))
        return n

    named = re.compile(r"^0/1 tasks  long for [1-9]\d* s$", re.MULTILINE)
    with fo.slice(long(number()), progress=seen) as s:
        s.run(1)


def test_at_most_ten_times_a_second_and_nothing_of_what_is_short(seen: Seen) -> None:
    began = time.monotonic()
    with fo.slice(slow(number()), progress=seen) as s:
        list(s.map(range(40)))
    assert 1 <= len(seen) <= (time.monotonic() - began) * 10 + 1
    seen.clear()
    flow, late = fo.flow_output(fast(number())), 0.0
    with fo.slice(flow, progress=seen) as s:
        for i in range(200):
            began = time.monotonic()
            s.run(i)
            late += max(0.0, time.monotonic() - began - 0.1)
    assert len(seen) <= 4 + 20 * late  # a busy machine may make some runs of them long


def test_runs_of_many_threads_are_counted(seen: Seen) -> None:
    with fo.slice(ladder(2), progress=seen) as s:
        gate = threading.Barrier(4)

        def use() -> None:
            gate.wait()
            for i in range(3):
                assert s.run(i) == [3 * i]

        threads = [threading.Thread(target=use) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert max(each.done for each in seen) <= 12
    assert seen[-1].done == seen[-1].total


def test_a_task_that_runs_its_own_slice_again_is_counted_once(seen: Seen) -> None:
    inner = Seen()

    @fo.task
    def sums(n: fo.int64) -> fo.int64:
        with fo.slice(slow(number()), progress=inner) as s:
            return sum(int(str(out[0])) for out in s.map(range(n)))

    with fo.slice(sums(number()), progress=seen) as s:
        assert s.run(20) == [190]
    assert seen.counts[-1] == (1, 1, "task")
    assert inner.counts[-1] == (20, 20, "item")


def test_a_function_that_raises_is_called_no_more_and_the_run_goes_on() -> None:
    calls = []

    def shows(progress: Progress) -> None:
        calls.append(progress)
        raise KeyError("mine")

    with fo.slice(slow(number()), progress=shows) as s:
        assert len(list(s.map(range(20)))) == 20
        assert s.notes == ("progress is shown no more, as showing it raised KeyError: 'mine'",)
    assert len(calls) == 1


class Unsizable(list[int]):
    def __len__(self) -> int:
        raise RuntimeError("no length")


class Miscounted(list[int]):
    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize(("values", "first_total"), [(Unsizable, 0), (Miscounted, 3)])
def test_a_wrong_length_harms_nothing(
    seen: Seen, values: Callable[[Any], Any], first_total: int
) -> None:
    with fo.slice(slow(number()), progress=seen) as s:
        assert len(list(s.map(values([0] * 15)))) == 15
    assert seen[0].total >= first_total
    assert all(each.done <= each.total or each.total == 0 for each in seen)
    assert seen.counts[-1] == (15, 15, "item")


def test_results_that_are_not_taken_hold_no_thread(seen: Seen) -> None:
    with fo.slice(slow(number()), progress=seen) as s:
        results: Iterator[Any] = s.map(range(100))
        next(results)
        assert comes(lambda: len(seen) > 0)

        def quiet() -> bool:
            said = len(seen)
            time.sleep(0.5)
            return len(seen) == said

        assert comes(quiet)  # nothing runs, so nothing is said
        assert len(list(results)) == 99
    assert seen.counts[-1] == (100, 100, "item")


@pytest.mark.parametrize("wrong", [1, "yes", None, 0])
def test_what_is_no_way_to_show_progress_is_refused(wrong: Any) -> None:
    with pytest.raises(fo.SliceRefused, match="expected True, False or a function"):
        fo.slice(slow(number()), progress=wrong)


def test_without_a_terminal_nothing_is_watched(capfd: pytest.CaptureFixture[str]) -> None:
    with fo.slice(slow(number()), progress=True) as s:
        assert type(s).__name__ == "Slice"
        assert len(list(s.map(range(20)))) == 20
    assert capfd.readouterr() == ("", "")
