"""A slice's life: freed, freed while it runs, forgotten, interrupted. Nothing hangs or stays."""

import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Literal, Self

import pytest

import flowos as fo
from flowos.model import flow_input
from tests.integration.flow.number_tasks import add, begins, integer, nap
from tests.waiting import PATIENCE_SECONDS, comes

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")
SECONDS = float(f"300.{os.getpid()}")
"""No other process of this machine sleeps just as long."""


def helpers() -> list[str]:
    names = [t.name for t in threading.enumerate()]
    return [name for name in names if re.fullmatch(r"flowos-\d+", name)]


@pytest.mark.parametrize("way", WAYS)
def test_a_freed_slice_says_so_and_freeing_twice_is_once(way: Way) -> None:
    s = fo.slice(add(integer(), 1), workers=way)
    assert s.run(1) == [2]
    s.free()
    s.free()
    with pytest.raises(fo.SliceFreed, match="the slice was freed: make another"):
        s.run(1)
    with pytest.raises(fo.SliceFreed, match="the slice was freed: make another"):
        next(s.map([1]))
    with pytest.raises(fo.SliceFreed, match="the slice was freed: make another"):
        s.plan(1)
    assert "freed" in repr(s)


def uses(s: Any) -> list[str]:
    """What each way to run it gives, or the error."""
    said = []
    ways: list[Any] = [lambda: s.run(1), lambda: s.submit(1).result(), lambda: next(s.map([1]))]
    for use in ways:
        try:
            said.append(str(use()))
        except fo.SliceFreed as error:
            said.append(str(error))
    return said


@pytest.mark.parametrize("way", WAYS)
def test_a_forked_child_uses_threads_of_its_own_and_no_worker_of_its_parent(
    way: Way, tmp_path: Path
) -> None:
    with fo.slice(add(integer(), 1), workers=way) as s:
        assert s.submit(1).result() == [2]
        assert len(list(s.map(range(2000)))) == 2000
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(int(PATIENCE_SECONDS))
                (tmp_path / "said").write_text("\n".join(uses(s)))
                s.free()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        said = (tmp_path / "said").read_text().splitlines()
        refused = f"this slice belongs to process {os.getpid()}: make another"
        assert said == [refused if way == "process" else "[2]"] * 3
        assert s.run(1) == [2]


def test_leaving_a_with_frees_the_slice_also_on_an_error() -> None:
    with pytest.raises(ZeroDivisionError), fo.slice(add(integer(), 1)) as s:
        raise ZeroDivisionError
    with pytest.raises(fo.SliceFreed):
        s.run(1)


def test_the_helpers_of_a_freed_slice_are_gone() -> None:
    a = integer()
    with fo.slice([add(a, i) for i in range(100)], cores=2) as s:
        s.run(1)
        assert helpers()
    assert comes(lambda: not helpers())


def test_a_forgotten_slice_leaves_no_thread_behind() -> None:
    a = integer()
    s = fo.slice([add(a, i) for i in range(100)], cores=2)
    s.run(1)
    assert helpers()
    del s
    gc.collect()
    assert comes(lambda: not helpers())


def test_the_collector_may_take_a_slice_while_a_helper_holds_its_lock() -> None:
    a = integer()

    def collect() -> None:
        s = fo.slice([add(a, i) for i in range(100)], cores=2)
        left = s.map([1, 2, 3])
        next(left)
        cycle: list[Any] = [s, left]
        cycle.append(cycle)
        lock = s._executor[0]._lock
        with lock:  # as one that the collector stops in the middle of its work
            del s, left, cycle
            gc.collect()

    collecting = threading.Thread(target=collect, daemon=True)
    collecting.start()
    collecting.join(2 * PATIENCE_SECONDS)
    assert not collecting.is_alive()
    assert comes(lambda: not helpers())


def freed_while(flow: Any, value: object, way: Way, begun: Path) -> tuple[float, Any]:
    """Free a slice while a run is in progress: how long that run still took, and its error."""
    s = fo.slice(flow, workers=way, cores=2)
    caught: list[BaseException] = []
    ended: list[float] = []

    def call() -> None:
        try:
            s.run(value)
        except BaseException as error:
            caught.append(error)
        ended.append(time.monotonic())

    caller = threading.Thread(target=call)
    caller.start()
    assert comes(begun.exists)
    began = time.monotonic()
    s.free()
    caller.join(2 * PATIENCE_SECONDS)
    assert not caller.is_alive()
    return ended[0] - began, caught[0]


@pytest.mark.parametrize("way", WAYS)
def test_free_stops_a_chain_between_two_tasks(way: Way, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    port = begins(flow_input("seconds", fo.float64), str(begun))
    for _ in range(500):
        port = nap(port)
    took, error = freed_while(port, 0.5, way, begun)
    assert isinstance(error, fo.SliceFreed), error
    assert "freed while this ran" in str(error)
    assert took < 2 * PATIENCE_SECONDS, "all of it would take 250"


@pytest.mark.parametrize("way", WAYS)
def test_free_starts_no_waiting_task(way: Way, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    seconds = begins(flow_input("seconds", fo.float64), str(begun))
    flow = fo.flow_output(*(nap(seconds) for _ in range(500)))
    took, error = freed_while(flow, 1.0, way, begun)
    assert isinstance(error, fo.SliceFreed), error
    assert took < 2 * PATIENCE_SECONDS, "all of it would take 250"


@pytest.mark.parametrize("workers", ["thread", "process"])
def test_free_ends_a_command(workers: Way, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    words = ["sh", "-c", 'touch "$1"; exec sleep "$0"', fo.In("seconds"), str(begun)]
    flow = fo.command(words, inputs={"seconds": fo.float64})
    took, error = freed_while(flow(flow_input("s", fo.float64)), 300.0, workers, begun)
    assert isinstance(error, fo.SliceFreed), error
    assert took < PATIENCE_SECONDS


def test_free_from_inside_a_task_ends_its_own_run() -> None:
    held: list[Any] = []

    @fo.task
    def frees(x: fo.int64) -> fo.int64:
        held[0].free()
        return x

    a = integer()
    held.append(fo.slice(fo.flow_output(add(frees(a), 1), add(frees(a), 2)), cores=2))
    with pytest.raises(fo.SliceFreed):
        held[0].run(1)


PROGRAM = """
    import sys, time, threading
    import flowos as fo

    @fo.task
    def nap(seconds: fo.float64) -> fo.float64:
        if seconds:
            with open("{begun}", "a") as file:
                print(file=file)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)
        return seconds

    @fo.task
    def count(x: fo.float64) -> fo.float64:
        if x:
            print("started a late task", flush=True)
        return x

    seconds = fo.flow_input("seconds", fo.float64)
    {flow}
    s = fo.slice(flow, workers="{way}", cores=2)
    if "{way}" == "process":
        s.run(0.0)
    try:
        s.run({seconds})
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    {after}
    s.free()
    print("end", flush=True)
"""

CHAIN = """
    port = seconds
    for _ in range(3): port = nap(port)
    flow = fo.flow_output(port)
"""
PAIR = "flow = fo.flow_output(nap(seconds), nap(seconds), *(count(nap(seconds)) for _ in range(9)))"
SLEEP = """
sleep = fo.command(
    ["sh", "-c", 'echo >>"$1"; exec sleep "$0"', fo.In("x"), "{begun}"], inputs={"x": float}
)
"""
COMMAND = SLEEP + "flow = fo.flow_output(sleep(seconds))"
COMMANDS = SLEEP + "flow = fo.flow_output(sleep(seconds), sleep(seconds))"


class Interrupted:
    """A Python program in a session of its own that is sent SIGINT as by a terminal's Ctrl-C."""

    def __init__(
        self, tmp_path: Path, flow: str, way: str, at_once: int = 1, after: str = ""
    ) -> None:
        """Its run has begun when so many of its tasks have."""
        self._begun, self._at_once = tmp_path / "begun", at_once
        program = tmp_path / "program.py"
        source = textwrap.dedent(PROGRAM).replace("{flow}", textwrap.dedent(flow).strip())
        source = source.replace("{way}", way).replace("{seconds}", str(SECONDS))
        source = source.replace("{after}", after).replace("{begun}", str(self._begun))
        program.write_text(source)
        self.process = subprocess.Popen(
            [sys.executable, str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        begun = comes(lambda: self._tasks_begun() == self._at_once or self.process.poll())
        if not begun or self.process.poll() is not None:
            self.process.kill()
            raise AssertionError("".join(self.process.communicate()))
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def _tasks_begun(self) -> int:
        return self._begun.stat().st_size if self._begun.exists() else 0

    def interrupt(self) -> float:
        os.killpg(self.process.pid, signal.SIGINT)
        return time.monotonic()

    def end(self, since: float) -> tuple[float, str, str]:
        """Seconds until its end, what it printed, and its errors."""
        out, err = self.process.communicate(timeout=2 * PATIENCE_SECONDS)
        return time.monotonic() - since, out, err

    def left(self) -> list[str]:
        """Command lines of what still runs in its session or below it."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = stat.read_text().rpartition(")")[2].split()
                line = (stat.parent / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            ours = int(words[3]) == self.process.pid or str(SECONDS) in line
            if ours and words[0] != "Z":
                found.append(line)
        return found


@pytest.mark.parametrize(
    ("flow", "way", "at_once"),
    [
        (CHAIN, "thread", 1),
        (CHAIN, "inline", 1),
        (CHAIN, "process", 1),
        (PAIR, "thread", 2),
        (PAIR, "process", 2),
        (COMMAND, "thread", 1),
        (COMMANDS, "thread", 2),
    ],
    ids=["chain", "chain-inline", "chain-process", "pair", "pair-process", "command", "commands"],
)
def test_ctrl_c_ends_the_run_starts_nothing_and_leaves_nothing(
    flow: str, way: str, at_once: int, tmp_path: Path
) -> None:
    with Interrupted(tmp_path, flow, way, at_once) as program:
        seconds, out, err = program.end(program.interrupt())
        assert (out, err) == ("interrupted\nend\n", "")
        assert seconds < PATIENCE_SECONDS
        assert comes(lambda: not program.left()), program.left()


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    patient = f"""
    import pathlib
    import flowos.engine.flow._slice as it
    cancelled, it._GRACE_SECONDS = it._cancelled, 100.0
    it._cancelled = lambda: pathlib.Path("{heard}").touch() or cancelled()
    """
    with Interrupted(tmp_path, textwrap.dedent(patient) + PAIR, "thread", 2) as program:
        program.interrupt()
        assert comes(heard.exists)
        assert program.process.poll() is None, "the first one waits for the task that runs"
        seconds, out, err = program.end(program.interrupt())
    assert (out, err) == ("interrupted\nend\n", "")
    assert seconds < PATIENCE_SECONDS


@pytest.mark.parametrize("way", ["thread", "process"])
def test_a_slice_runs_again_after_a_ctrl_c(way: str, tmp_path: Path) -> None:
    again = "print(s.run(0.0), flush=True)"
    with Interrupted(tmp_path, CHAIN, way, after=again) as program:
        _, out, err = program.end(program.interrupt())
    assert (out, err) == ("interrupted\n[0.0]\nend\n", "")


def test_a_forgotten_slice_does_not_keep_the_program_alive(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import flowos as fo\n"
        "a = fo.flow_input('a', fo.float64)\n"
        "f = fo.task({'task_name': 'f', 'iport_nametypes': fo.float64,"
        " 'oport_nametypes': fo.float64, 'fun': abs})\n"
        "s = fo.slice([f(a) for _ in range(50)], cores=2)\n"
        "print(len(s.run(-1.0)))\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("50\n", "", 0)


@pytest.mark.parametrize("begun", [False, True], ids=["before", "after"])
def test_a_ctrl_c_while_a_helper_starts_is_told_as_one_and_the_slice_runs_again(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        # Helpers start helpers, too: Python raises KeyboardInterrupt in the main thread alone.
        main = threading.current_thread() is threading.main_thread()
        if begun or not main:
            start(thread)
        if main:
            raise KeyboardInterrupt

    a = integer()
    with fo.slice(fo.flow_output(add(a, 1), add(a, 2), add(a, 3)), workers="thread") as held:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupted)
            with pytest.raises(KeyboardInterrupt):
                held.run(1)
        assert held.run(1) == [2, 3, 4]
    assert comes(lambda: not helpers())
