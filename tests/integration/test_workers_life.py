"""Worker processes: their start, loss, output and end."""
# ruff: noqa: T201

import ctypes
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine._run_folder import session_folder
from flowos.engine.local._process import ProcessLanes
from flowos.model import LaunchFailed
from flowos.plan import compile_flow


def parents() -> dict[int, int]:
    """pid -> parent of all processes that are no zombies."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                found[int(folder.name)] = int(fields[1])
    return found


def descendants(pid: int) -> set[int]:
    all_parents = parents()
    found = {pid}
    while True:
        more = {p for p, parent in all_parents.items() if parent in found} - found
        if not more:
            return found - {pid}
        found |= more


def gone(pids: set[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while pids & parents().keys():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def task(name: str, fun: Callable[..., Any], inputs: int = 1) -> Any:
    ports = tuple((f"i{k}", fo.any_) for k in range(inputs))
    return fo.task(
        {"task_name": name, "iport_nametypes": ports, "oport_nametypes": fo.any_, "fun": fun}
    )


def one(fun: Callable[..., Any], **options: Any) -> Any:
    return fo.slice(
        fo.flow_output(task("only", fun)(fo.flow_input("x", fo.any_))),
        workers="process",
        **{"cores": 1, **options},
    )


def same(x: object) -> object:
    return x


def sleeps(seconds: Any) -> Any:
    time.sleep(seconds)
    return seconds


def die(how: object) -> object:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        os._exit(3)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "segfault in a child's parent":
        if os.fork() == 0:
            time.sleep(30)
        ctypes.string_at(0)
    return how


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kill", r"was killed by signal 9 \(SIGKILL\)"),
        ("exit", r"exited with code 3"),
        ("segfault", r"was killed by signal 11 \(SIGSEGV\)"),
        ("segfault in a child's parent", r"was killed by signal 11 \(SIGSEGV\)"),
    ],
)
def test_a_lost_worker_fails_the_run_with_its_tasks_name_and_the_next_run_works(
    how: str, told: str
) -> None:
    x = fo.flow_input("x", fo.any_)
    flow = fo.flow_output(task("after", same)(task("dies", die)(task("before", same)(x))))
    with fo.slice(flow, workers="process", cores=1) as s:
        assert s.run("fine") == ["fine"]
        before = descendants(os.getpid())
        with pytest.raises(
            fo.WorkerLost, match=rf"task 'dies': its worker process is gone: it {told}"
        ):
            s.run(how)
        assert gone(before, 3)
        assert s.run("fine") == ["fine"]
    assert gone(descendants(os.getpid()), 3)


def test_a_worker_killed_from_outside_fails_the_run_at_once(tmp_path: Path) -> None:
    said = tmp_path / "pid"

    def says_its_pid_and_sleeps(_: object) -> None:
        said.with_suffix(".new").write_text(str(os.getpid()))
        said.with_suffix(".new").rename(said)
        time.sleep(15)

    killed: list[float] = []

    def kill() -> None:
        while not said.exists():
            time.sleep(0.01)
        killed.append(time.monotonic())
        os.kill(int(said.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with one(says_its_pid_and_sleeps) as s, pytest.raises(fo.WorkerLost, match="'only'"):
        s.run(1)
    assert time.monotonic() - killed[0] < 10  # the task would sleep on; it is a few ms
    killer.join()


def test_a_worker_that_died_idle_is_replaced_unseen() -> None:
    with one(lambda _: os.getpid()) as s:
        first = s.run(0)[0]
        os.kill(first, signal.SIGKILL)
        assert gone({first}, 3)
        assert s.run(0)[0] != first


def test_lost_workers_leave_no_descriptor_behind() -> None:
    def held() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with one(die) as s:
        counts = []
        for _ in range(8):
            with pytest.raises(fo.WorkerLost):
                s.run("exit")
            counts.append(held())
    assert counts[-1] <= counts[0] + 2


def test_a_python_that_is_missing_or_broken_is_told_in_one_line(tmp_path: Path) -> None:
    schedule = compile_flow(fo.flow_output(task("only", same)(fo.flow_input("x", fo.any_))))
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no module named site' >&2\nexit 1\n")
    broken.chmod(0o755)
    for python, told in (("/no/such/python", "/no/such/python"), (str(broken), "no module named")):
        lanes = ProcessLanes(schedule, 1, python=python)
        try:
            with pytest.raises(LaunchFailed, match=told) as caught:
                lanes.lanes[0].run(schedule.units, [[1]])
            assert str(caught.value).startswith("a worker process could not start: ")
            assert "\n" not in str(caught.value)
        finally:
            lanes.close()


def test_a_module_that_ends_the_worker_while_it_is_imported_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ends.py").write_text(
        f"import os\nif os.getpid() != {os.getpid()}: os._exit(7)\ndef f(x): return x\n"
    )
    ends: Any = __import__("ends")
    with one(ends.f) as s, pytest.raises(fo.WorkerLost, match=r"'only'.*while it loaded.*code 7"):
        s.run(1)


def prints(x: Any) -> Any:
    for i in range(x):
        print("out", i)
        print("err", i, file=sys.stderr)
    os.write(1, b"raw\n")
    print("ü ends without a newline", end="")
    return x


def test_what_tasks_print_is_out_before_the_run_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with one(prints) as s:
        for _ in range(3):
            s.run(200)
            captured = capsys.readouterr()
            lines = [*(f"out {i}" for i in range(200)), "raw", "ü ends without a newline"]
            assert captured.out == "\n".join(lines)
            assert captured.err == "".join(f"err {i}\n" for i in range(200))


def test_much_output_does_not_block_the_worker(capsys: pytest.CaptureFixture[str]) -> None:
    with one(lambda x: print("x" * x)) as s:
        s.run(3_000_000)
    assert len(capsys.readouterr().out) == 3_000_001


def test_what_a_task_printed_before_its_worker_was_killed_is_not_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def last_words(_: object) -> None:
        print("last words", end="")
        os.kill(os.getpid(), signal.SIGKILL)

    with one(last_words) as s, pytest.raises(fo.WorkerLost):
        s.run(1)
    assert capsys.readouterr().out == "last words"


def test_output_comes_while_the_task_runs(tmp_path: Path) -> None:
    script = """
        import flowos as fo, time
        @fo.task
        def f(x: fo.any_) -> fo.any_:
            print("soon")
            time.sleep(30)
        with fo.slice(fo.flow_output(f(fo.flow_input("x", fo.any_))), workers="process") as s:
            s.run(1)
    """
    process = started(tmp_path, script)
    assert read_line(process) == "soon"
    interrupted(process)


def started(folder: Path, script: str) -> "subprocess.Popen[str]":
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    return subprocess.Popen(
        [sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 15)[0]
    return process.stdout.readline().strip()


def interrupted(process: "subprocess.Popen[str]") -> str:
    """Ctrl-C to the whole foreground group; nothing of it is left afterwards."""
    pids = descendants(process.pid)
    assert pids
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert gone(pids, 3)
    return errors


SLEEPS = """
    import flowos as fo, os, subprocess, time
    @fo.task
    def f(x: fo.any_) -> fo.any_:
        subprocess.Popen(["sleep", "60"])
        print(os.getpid(), flush=True)
        time.sleep(60)
    x = fo.flow_input("x", fo.any_)
    with fo.slice(fo.flow_output(f(x), f(x)), workers="process", cores=2) as s:
        s.run(1)
"""


def test_ctrl_c_ends_the_run_and_leaves_no_process(tmp_path: Path) -> None:
    process = started(tmp_path, SLEEPS)
    read_line(process)
    read_line(process)
    assert interrupted(process).rstrip().endswith("KeyboardInterrupt")
    assert process.returncode != 0


def test_workers_go_when_their_driver_is_killed(tmp_path: Path) -> None:
    process = started(tmp_path, SLEEPS)
    read_line(process)
    pids = descendants(process.pid)
    assert len(pids) >= 2
    process.kill()
    process.communicate(timeout=10)
    assert gone(pids, 4)


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
        assert gone(descendants(os.getpid()), 3)
    finally:
        lanes.close()


def test_free_while_a_worker_runs_ends_it_and_leaves_nothing() -> None:
    s = one(sleeps)
    s.run(0)
    pids = descendants(os.getpid())
    assert pids
    threading.Timer(0.3, s.free).start()
    with pytest.raises(fo.SliceFreed):
        s.run(20)
    assert gone(pids, 3)


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


def test_workers_have_our_variables_folder_and_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(_: object) -> object:
        return dict(os.environ), str(Path.cwd()), os.sched_getaffinity(0)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINE", "ü x")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with one(seen) as s:
        variables, folder, processors = s.run(1)[0]
    assert variables["MINE"] == "ü x"
    assert variables["OMP_NUM_THREADS"] == str(len(os.sched_getaffinity(0)))
    assert folder == str(tmp_path)
    assert processors == os.sched_getaffinity(0)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with one(seen) as s:
        assert s.run(1)[0][0]["OMP_NUM_THREADS"] == "5"


def test_driver_and_two_workers_need_at_most_60_mb() -> None:
    script = """
        import os
        import flowos as fo
        @fo.task
        def add(a: fo.int64, b: fo.int64) -> fo.int64: return a + b
        a, b = fo.flow_input("a", fo.int64), fo.flow_input("b", fo.int64)
        with fo.slice(fo.flow_output(add(a, b), add(b, a)), workers="process", cores=2) as s:
            s.run(1, 2)
            print(os.getpid(), flush=True)
            input()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    read_line(process)
    kilobytes = sum(
        int(line.split()[1])
        for pid in (process.pid, *descendants(process.pid))
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        if line.startswith("Pss:")
    )
    process.communicate("\n", timeout=10)
    assert kilobytes * 1024 <= 60e6
