"""How loops end that fail, are killed or are stopped: the error names task and round."""

import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Literal

import pytest

import flowos as fo
from tests.integration.flow.control_tasks import (
    add,
    dies_at,
    fails_at,
    fails_twice_at,
    half,
    integer,
    minus_one,
    sleeps_at,
    tiny,
    wrong_at_two,
)

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


@pytest.mark.parametrize("way", WAYS)
def test_an_error_names_the_task_and_the_round_of_each_loop(way: Way) -> None:
    for task, words in ((fails_at, ""), (fails_twice_at, "; attempt 2")):
        x, at = integer(), integer("at")
        inner = fo.flow_output(fo.loop(task, x, where=at, max_rounds=3))
        outer = fo.loop(inner, 0, at=7, max_rounds=4)
        name = task.name
        with fo.slice(outer, workers=way) as s, pytest.raises(fo.TaskFailed) as caught:
            s.run()
        assert f"task 'loop/loop/{name}' raised ValueError: not 7" in str(caught.value)
        assert "given x = 7 (int), where = 7 (int)" in str(caught.value)
        assert str(caught.value).endswith(f"{words}; round 2 of 'loop/loop'; round 3 of 'loop'")
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", [half, minus_one])
def test_a_loop_that_is_not_done_says_so_with_its_last_values(way: Way, body: fo.Task) -> None:
    flow = fo.flow_output(add(fo.loop(body, integer(), until=tiny, max_rounds=3), 1))
    with fo.slice(flow, workers=way) as s:
        assert s.run(3) == [2]
        with pytest.raises(fo.RoundLimitExceeded) as caught:
            s.run(1000)
        last = 125 if body is half else 997
        assert str(caught.value) == (
            f"task 'loop' is not done after 3 rounds; the last one gave {body.name} = {last} (int)"
        )
        results = list(s.map([3, 1000, 2], on_error="return"))
    assert [result.ok for result in results] == [True, False, True]
    assert isinstance(results[1].error, fo.RoundLimitExceeded)


@pytest.mark.parametrize("way", WAYS)
def test_a_result_that_its_port_refuses_is_named_with_its_round(way: Way) -> None:
    with (
        fo.slice(fo.loop(wrong_at_two, 0, max_rounds=5), workers=way) as s,
        pytest.raises(fo.ValueRefused) as caught,
    ):
        s.run()
    assert str(caught.value) == (
        "task 'loop/wrong_at_two', output 'out': expected int64, given 'two' (str); "
        "its inputs were x = 2 (int); round 3 of 'loop'"
    )


def test_a_worker_that_is_gone_is_named_with_task_and_round() -> None:
    flow = fo.flow_output(fo.loop(dies_at, 0, where=integer("at"), max_rounds=5))
    with fo.slice(flow, workers="process") as s:
        with pytest.raises(fo.WorkerLost) as caught:
            s.run(2)
        assert str(caught.value).startswith("task 'loop/dies_at': its worker process is gone")
        assert str(caught.value).endswith("; round 3 of 'loop'")
        assert s.run(9) == [5]


def test_a_time_limit_holds_for_the_task_and_not_for_the_loop() -> None:
    flow = fo.flow_output(fo.loop(sleeps_at, 0, where=integer("at"), max_rounds=5))
    with fo.slice(flow, workers="process") as s:
        assert s.run(9) == [5]
        with pytest.raises(fo.TimeLimitExceeded, match=r"limit of 2 s.*round 2 of 'loop'"):
            s.run(1)


SCRIPT = """
import os, sys
import flowos as fo

@fo.task
def step(x: fo.int64, seen: fo.str_) -> fo.int64:
    with open(seen, "a") as file:
        file.write(f"{x}\\n")
    if x == int(os.environ.get("DIES_AT", -1)):
        os.kill(os.getpid(), 9)
    return x + 1

x = fo.flow_input("x", fo.int64)
with fo.slice(fo.loop(step, x, seen=sys.argv[1] + "/seen", max_rounds=20),
              journal=sys.argv[1] + "/journal") as s:
    print(s.run(0))
"""


def test_a_loop_that_is_killed_goes_on_in_its_round(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(**env: str) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, str(script), str(tmp_path)]
        return subprocess.run(
            words, capture_output=True, text=True, timeout=300, env={**os.environ, **env}
        )

    assert run(DIES_AT="13").returncode == -9
    done = run()
    assert (done.stdout, done.stderr) == ("[20]\n", "")
    seen = [int(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert seen == [*range(14), *range(13, 20)]


@pytest.mark.parametrize("body", [half, minus_one])
def test_a_loop_can_be_ended_from_outside(body: fo.Task) -> None:
    started = threading.Event()

    @fo.task
    def start(x: fo.int64) -> fo.int64:
        started.set()
        return x

    flow = fo.flow_output(fo.loop(body, start(1), max_rounds=10**12))
    s = fo.slice(flow)
    run = s.submit()
    assert started.wait(60)
    s.free()
    with pytest.raises(fo.SliceFreed):
        run.result(timeout=300)


def test_a_constant_that_no_worker_can_be_sent_is_said() -> None:
    @fo.task
    def use(x: fo.int64, lock: fo.any_) -> fo.int64:
        return x + (0 if lock is None else 1)

    flow = fo.flow_output(
        fo.loop(fo.flow_output(use(integer(), threading.Lock())), 1, max_rounds=2)
    )
    with fo.slice(flow) as s:
        assert s.run() == [3]
    with pytest.raises(
        fo.SliceRefused, match="a constant in task 'loop' cannot be sent to a worker"
    ):
        fo.slice(flow, workers="process")


class Held(list[int]):
    """A list that can be looked after."""


@pytest.mark.parametrize("retries", [0, 1])
def test_what_a_failed_loop_held_goes_with_its_error(retries: int) -> None:
    @fo.task(retries=retries)
    def fail(values: fo.any_, x: fo.int64) -> fo.any_:
        raise ValueError(len(values) + x)

    values = Held()
    seen = weakref.ref(values)
    with fo.slice(fo.loop(fail, fo.flow_input("v", fo.any_), x=1, max_rounds=3)) as s:
        with pytest.raises(fo.TaskFailed):
            s.run(values)
        del values
        assert seen() is None
