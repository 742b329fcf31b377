"""Worker processes: stopped, freed, forgotten."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine._run_folder import session_folder
from flowos.engine.local._kernel import Halt
from flowos.engine.local._process import ProcessLanes
from flowos.plan import compile_flow

from .shared import descendants, gone, one, parents, same, task


def sleeps(seconds: Any) -> Any:
    time.sleep(seconds)
    return seconds


def test_stop_from_another_thread_ends_the_run_as_cancelled_and_the_next_run_works() -> None:
    schedule = compile_flow(fo.flow_output(task("sleeps", sleeps)(fo.flow_input("x", fo.any_))))
    lanes = ProcessLanes(schedule, 1)
    lane = lanes.lanes[0]
    try:
        assert lane.run(schedule.units, [[0]]) == [[0]]
        lane.stop()
        assert lane.run(schedule.units, [[0]]) == [[0]]
        timer = threading.Timer(0.3, lane.stop)
        timer.start()
        began = time.monotonic()
        with pytest.raises(fo.Cancelled):
            lane.run(schedule.units, [[20]])
        assert time.monotonic() - began < 10
        timer.join()
        assert lane.run(schedule.units, [[0]]) == [[0]]
    finally:
        lanes.close()
        lanes.close()


def test_stop_while_a_worker_starts_ends_the_start(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    schedule = compile_flow(fo.flow_output(task("only", same)(fo.flow_input("x", fo.any_))))
    lanes = ProcessLanes(schedule, 1, python=str(slow))
    try:
        timer = threading.Timer(0.3, lanes.lanes[0].stop)
        timer.start()
        with pytest.raises(fo.Cancelled):
            lanes.lanes[0].run(schedule.units, [[1]])
        timer.join()
        assert not descendants(os.getpid())
    finally:
        lanes.close()


def test_free_while_a_worker_runs_ends_it_and_leaves_nothing() -> None:
    s = one(sleeps)
    s.run(0)
    pids = descendants(os.getpid())
    assert pids
    timer = threading.Timer(0.3, s.free)
    timer.start()
    with pytest.raises(fo.SliceFreed):
        s.run(20)
    timer.join()
    assert not pids & parents().keys()


def test_freeing_leaves_no_process_thread_descriptor_or_folder() -> None:
    def state() -> tuple[set[int], int, set[str], list[Path]]:
        threads = {t.name for t in threading.enumerate()}
        folders = list(session_folder().iterdir())
        fds = len(list(Path("/proc/self/fd").iterdir()))
        return descendants(os.getpid()), fds, threads, folders

    with one(same) as s:
        s.run(1)
    before = state()
    for _ in range(5):
        with one(same, cores=2) as s:
            s.run(1)
    assert state() == before


def test_a_slice_that_was_forgotten_ends_its_workers() -> None:
    s = one(same)
    s.run(1)
    pids = descendants(os.getpid())
    assert pids
    del s
    assert gone(pids, 5)


def test_a_stop_that_comes_before_its_run_holds_until_the_next() -> None:
    schedule = compile_flow(fo.flow_output(task("sleeps", sleeps)(fo.flow_input("x", fo.any_))))
    halt = Halt()
    lanes = ProcessLanes(schedule, 1, halts=[halt])
    try:
        halt.on = True
        with pytest.raises(fo.Cancelled):
            lanes.lanes[0].run(schedule.units, [[20]])
        halt.on = False
        assert lanes.lanes[0].run(schedule.units, [[0]]) == [[0]]
    finally:
        lanes.close()


class SlowToRead:
    """Crosses quickly; each process takes this long to read it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> Any:
        return slow, (self.seconds, os.getpid())


def slow(seconds: float, maker: int) -> SlowToRead:
    if os.getpid() != maker and os.environ.get("FLOWOS_TEST_READER") == str(os.getpid()):
        time.sleep(seconds)
    return SlowToRead(seconds)


def test_close_during_a_run_that_no_kill_ends_gives_all_back_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLOWOS_TEST_READER", str(os.getpid()))
    schedule = compile_flow(fo.flow_output(task("same", same)(fo.flow_input("x", fo.any_))))
    before = open_files()
    lanes = ProcessLanes(schedule, 1)
    run = threading.Thread(target=lanes.lanes[0].run, args=(schedule.units, [[SlowToRead(3.0)]]))
    run.start()
    time.sleep(1.0)
    lanes.close()
    assert run.is_alive()
    run.join()
    until = time.monotonic() + 5
    while open_files() != before and time.monotonic() < until:
        time.sleep(0.02)
    assert open_files() == before


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
