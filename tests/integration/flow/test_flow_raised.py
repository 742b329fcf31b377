"""Whatever a task raises ends its run with TaskFailed, and its slice goes on."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn

import pytest

import flowos as fo
from flowos.model import flow_input
from tests.integration.flow.raising_tasks import RAISED, array, raises
from tests.waiting import PATIENCE_SECONDS

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


@contextmanager
def limited(seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """What hangs fails, and says where."""

    def ring(_: int, __: FrameType | None) -> NoReturn:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("wide", [1, 4])
@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_raises_whatever_frees_its_place(way: Way, name: str, wide: int) -> None:
    a = flow_input("a", fo.int64)
    flow = fo.flow_output(*(raises(a, name) for _ in range(wide)))
    with limited(), fo.slice(flow, workers=way, cores=2) as s:
        for _ in range(6):
            with pytest.raises(
                fo.TaskFailed, match=f"'raises(#.)?' raised {name}.*x = 1"
            ) as caught:
                s.run(1)
            assert caught.value.__cause__ is not None
        assert s.run(0) == [0] * wide


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_has_no_text_is_told_without_one(way: Way) -> None:
    @fo.task
    def fails(x: fo.any_) -> fo.int64:
        raise ZeroDivisionError(type(x).__name__)

    with fo.slice(fails(flow_input("a", fo.any_)), workers=way) as s:
        for _ in range(3):
            with pytest.raises(fo.TaskFailed, match=r"x = .* \(array\)"):
                s.run(array())


class Alarm(BaseException):
    pass


def ring(_: int, __: FrameType | None) -> NoReturn:
    raise Alarm


@pytest.mark.parametrize("wide", [1, 4])
def test_what_a_signals_handler_raises_leaves_a_slice_that_runs_again(wide: int) -> None:
    @fo.task
    def nap(seconds: fo.float64) -> fo.float64:
        time.sleep(seconds)
        return seconds

    seconds = flow_input("seconds", fo.float64)
    flow = fo.flow_output(*(nap(seconds) for _ in range(wide)))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with fo.slice(flow, workers="process", cores=2) as s:
            s.run(0.0)
            for _ in range(3):
                with pytest.raises(Alarm):  # noqa: PT012
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    s.run(300.0)
            signal.signal(signal.SIGALRM, before)
            with limited():
                assert s.run(0.0) == [0.0] * wide
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("way", ["thread", "inline"])
def test_free_waits_for_what_runs_and_its_run_does_not_answer(way: Way) -> None:
    begun, go_on = threading.Event(), threading.Event()
    answers: list[Any] = []

    @fo.task
    def waits(x: fo.int64) -> fo.int64:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return x

    s = fo.slice(waits(flow_input("a", fo.int64)), workers=way)

    def call() -> None:
        try:
            answers.append(s.run(1))
        except fo.FlowosError as error:
            answers.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert begun.wait(PATIENCE_SECONDS)
    freeing = threading.Thread(target=s.free)
    freeing.start()
    until = time.monotonic() + PATIENCE_SECONDS
    while "freed" not in repr(s) and time.monotonic() < until:
        time.sleep(0.01)
    freeing.join(0.2)
    assert freeing.is_alive(), "free came back while the task ran"
    go_on.set()
    freeing.join(PATIENCE_SECONDS)
    caller.join(PATIENCE_SECONDS)
    assert [type(answer) for answer in answers] == [fo.SliceFreed]
    assert "freed while this ran" in str(answers[0])


def test_a_callback_that_raises_fails_the_run_and_not_the_slice(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()

    def on_stage(_: object) -> None:
        if broken.exists():
            raise ZeroDivisionError

    flow = fo.flow_output(*(raises(flow_input("a", fo.int64), "Own") for _ in range(1)))
    with limited(), fo.slice(flow, on_stage=on_stage, cores=2) as s:
        for _ in range(4):
            with pytest.raises(fo.TaskFailed, match="'raises' could not be run: ZeroDivisionError"):
                s.run(0)
        broken.unlink()
        assert s.run(0) == [0]


@fo.task
def interrupts(a: fo.int64) -> fo.int64:
    if a == 0:
        raise KeyboardInterrupt("by itself")
    return a


@pytest.mark.parametrize("way", WAYS)
def test_a_keyboard_interrupt_of_a_task_ends_its_run_or_map_and_the_next_works(way: Way) -> None:
    """The caller's own thread passes it on, as it may be a real Ctrl-C."""
    ended = (KeyboardInterrupt, fo.TaskFailed)
    with limited(), fo.slice(interrupts(flow_input("a", fo.int64)), workers=way, cores=2) as s:
        for _ in range(4):
            with pytest.raises(ended, match="by itself"):
                s.run(0)
            assert s.run(5) == [5]
            with pytest.raises(ended, match="by itself"):
                list(s.map([1, 2, 0, 3]))
            assert list(s.map(range(1, 40))) == [[i] for i in range(1, 40)]


def test_a_keyboard_interrupt_of_a_task_in_a_helpers_thread_is_a_failed_task() -> None:
    main, both = threading.get_ident(), threading.Barrier(2, timeout=PATIENCE_SECONDS)

    @fo.task
    def side_by_side(a: fo.int64) -> fo.int64:
        if a:
            return a
        both.wait()
        if threading.get_ident() != main:
            raise KeyboardInterrupt("of a helper")
        return a

    a = flow_input("a", fo.int64)
    flow = fo.flow_output(side_by_side(a), side_by_side(a))
    with limited(), fo.slice(flow, workers="thread", cores=2) as s:
        for _ in range(4):
            with pytest.raises(fo.TaskFailed, match="KeyboardInterrupt: of a helper"):
                s.run(0)
            assert s.run(3) == [3, 3]
