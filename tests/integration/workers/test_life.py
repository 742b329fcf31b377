"""Worker processes: stopped, freed, forgotten."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine import here
from flowos.engine.flow._inside import Surroundings
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.workers._process_lanes import ProcessLanes
from flowos.plan import compile_flow
from tests.waiting import PATIENCE_SECONDS

from .shared import await_file, descendants, gone, one, own_pid, same, task
from .tasks import sleeps


def once_begun(path: Path, act: Callable[[], object]) -> threading.Thread:
    """Acts in another thread, once `sleeps` has begun."""

    def wait() -> None:
        await_file(path)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_stop_from_another_thread_ends_the_run_as_cancelled_and_the_next_run_works(
    tmp_path: Path,
) -> None:
    schedule = compile_flow(fo.flow_output(task("sleeps", sleeps)(fo.flow_input("x", fo.any_))))
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()))
    lane = lanes.lanes[0]
    try:
        assert lane.run(schedule.stages, [[None]]) == [[None]]
        lane.stop()
        assert lane.run(schedule.stages, [[None]]) == [[None]]
        stopper = once_begun(tmp_path / "begun", lane.stop)
        began = time.monotonic()
        with pytest.raises(fo.Cancelled):
            lane.run(schedule.stages, [[tmp_path / "begun"]])
        assert time.monotonic() - began < 2 * PATIENCE_SECONDS
        stopper.join()
        assert lane.run(schedule.stages, [[None]]) == [[None]]
    finally:
        lanes.close()
        lanes.close()


def test_stop_while_a_worker_starts_ends_the_start(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 300\n")
    slow.chmod(0o755)
    schedule = compile_flow(fo.flow_output(task("only", same)(fo.flow_input("x", fo.any_))))
    before = descendants(os.getpid())
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()), python=str(slow))
    try:
        stopper = once_begun(tmp_path / "begun", lanes.lanes[0].stop)
        with pytest.raises(fo.Cancelled):
            lanes.lanes[0].run(schedule.stages, [[1]])
        stopper.join()
        assert gone(descendants(os.getpid()) - before)
    finally:
        lanes.close()


def test_free_while_a_worker_runs_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    s = one(sleeps)
    s.run(None)
    pids = descendants(os.getpid())
    assert pids
    freer = once_begun(tmp_path / "begun", s.free)
    with pytest.raises(fo.SliceFreed):
        s.run(tmp_path / "begun")
    freer.join()
    assert gone(pids)


def test_freeing_leaves_no_process_thread_descriptor_or_folder() -> None:
    def state() -> "Counter[int | str]":
        threads = (t.name for t in threading.enumerate())
        folders = (path.name for path in here().folder().iterdir())
        files = ("descriptor" for _ in Path("/proc/self/fd").iterdir())
        return Counter([*descendants(os.getpid()), *files, *threads, *folders])

    with one(same) as s:
        s.run(1)
    before = state()
    for _ in range(5):
        with one(same, cores=2) as s:
            s.run(1)
    until = time.monotonic() + PATIENCE_SECONDS
    while (left := state() - before) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left


def test_a_slice_that_was_forgotten_ends_its_workers() -> None:
    s = one(same)
    s.run(1)
    pids = descendants(os.getpid())
    assert pids
    del s
    assert gone(pids)


def test_a_stop_that_comes_before_its_run_holds_until_the_next(tmp_path: Path) -> None:
    schedule = compile_flow(fo.flow_output(task("sleeps", sleeps)(fo.flow_input("x", fo.any_))))
    stop_flag = StopFlag()
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()), stop_flags=[stop_flag])
    try:
        stop_flag.on = True
        with pytest.raises(fo.Cancelled):
            lanes.lanes[0].run(schedule.stages, [[tmp_path / "begun"]])
        stop_flag.on = False
        assert lanes.lanes[0].run(schedule.stages, [[None]]) == [[None]]
    finally:
        lanes.close()


reading, read_on = threading.Event(), threading.Event()


class SlowToRead:
    """Crosses quickly; in this process it is being read until `read_on` is set."""

    def __reduce__(self) -> Any:
        return slow, (os.getpid(),)


def slow(maker: int) -> SlowToRead:
    if os.getpid() != maker and os.environ.get("FLOWOS_TEST_READER") == str(os.getpid()):
        reading.set()
        read_on.wait(PATIENCE_SECONDS)
    return SlowToRead()


def test_close_during_a_run_that_no_kill_ends_gives_all_back_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLOWOS_TEST_READER", str(os.getpid()))
    schedule = compile_flow(fo.flow_output(task("same", same)(fo.flow_input("x", fo.any_))))
    before = open_files()
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()))
    run = threading.Thread(target=lanes.lanes[0].run, args=(schedule.stages, [[SlowToRead()]]))
    run.start()
    assert reading.wait(PATIENCE_SECONDS)
    lanes.close()
    assert run.is_alive()
    read_on.set()
    run.join()
    until = time.monotonic() + PATIENCE_SECONDS
    while open_files() > before and time.monotonic() < until:
        time.sleep(0.02)
    assert open_files() <= before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_worker_waits_for_the_next_task_that_has_its_gpus() -> None:
    schedule = compile_flow(fo.flow_output(task("pid", own_pid)(fo.flow_input("x", fo.any_))))
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()))
    (lane,) = lanes.lanes

    def ran_on(*gpus: int) -> Any:
        lane.bind((), (("gpu", gpus),))
        return lane.run(schedule.stages, [[None]])[0][0]

    try:
        first, without, other = ran_on(0), ran_on(), ran_on(1)
        assert len({first, without, other}) == 3
        assert [ran_on(0), ran_on(), ran_on(1), ran_on()] == [first, without, other, without]
        both = ran_on(0, 1)
        assert gone({first, other})  # with what they hold on these GPUs
        assert ran_on() == without
        assert ran_on(0) not in (first, both)
        assert gone({both})
    finally:
        lanes.close()
    assert not descendants(os.getpid()) & {without}
