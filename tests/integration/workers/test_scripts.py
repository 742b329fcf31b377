"""Whole scripts with worker processes: Ctrl-C, the end of the driver, memory."""

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from .shared import descendants, gone

Script: TypeAlias = "subprocess.Popen[bytes]"
Start = Callable[[str], Script]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Script]]:
    """Starts a script; whatever the test did, nothing of it is left to the next one."""
    scripts = []

    def started(text: str) -> Script:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        pipe = subprocess.PIPE
        scripts.append(
            subprocess.Popen(
                [sys.executable, path],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                start_new_session=True,
            )
        )
        return scripts[-1]

    yield started
    for script in scripts:
        with script:
            script.kill()


def read_line(script: Script) -> str:
    """Unbuffered: a buffer would swallow the line after it, which no select sees."""
    assert script.stdout is not None
    assert select.select([script.stdout], [], [], 60)[0]
    return script.stdout.readline().decode().strip()


def interrupted(script: Script) -> str:
    """Ctrl-C to the whole foreground group; nothing of it is left. What it complained."""
    pids = descendants(script.pid)
    assert pids
    os.killpg(script.pid, signal.SIGINT)
    _, errors = script.communicate(timeout=200)
    assert gone(pids)
    return errors.decode()


def test_output_comes_while_the_task_runs(start: Start) -> None:
    script = start("""
        import flowos as fo, time
        @fo.task
        def f(x: fo.any_) -> fo.any_:
            print("soon")
            time.sleep(300)
        with fo.slice(fo.flow_output(f(fo.flow_input("x", fo.any_))), workers="process") as s:
            s.run(1)
    """)
    assert read_line(script) == "soon"
    interrupted(script)


SLEEPS = """
    import flowos as fo, os, subprocess, time
    @fo.task
    def f(x: fo.any_) -> fo.any_:
        subprocess.Popen(["sleep", "300"])
        print(os.getpid(), flush=True)
        time.sleep(300)
    x = fo.flow_input("x", fo.any_)
    with fo.slice(fo.flow_output(f(x), f(x)), workers="process", cores=2) as s:
        s.run(1)
"""


def test_ctrl_c_ends_the_run_and_leaves_no_process(start: Start) -> None:
    script = start(SLEEPS)
    read_line(script)
    read_line(script)
    assert interrupted(script).rstrip().endswith("KeyboardInterrupt")
    assert script.returncode != 0


def test_workers_go_when_their_driver_is_killed(start: Start) -> None:
    script = start(SLEEPS)
    read_line(script)
    pids = descendants(script.pid)
    assert len(pids) >= 2
    script.kill()
    script.communicate(timeout=200)
    assert gone(pids)


def test_driver_and_two_workers_need_at_most_60_mb(start: Start) -> None:
    script = start("""
        import os
        import flowos as fo
        @fo.task
        def add(a: fo.int64, b: fo.int64) -> fo.int64: return a + b
        a, b = fo.flow_input("a", fo.int64), fo.flow_input("b", fo.int64)
        with fo.slice(fo.flow_output(add(a, b), add(b, a)), workers="process", cores=2) as s:
            s.run(1, 2)
            print(os.getpid(), flush=True)
            input()
    """)
    read_line(script)
    kilobytes = sum(
        int(line.split()[1])
        for pid in (script.pid, *descendants(script.pid))
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        if line.startswith("Pss:")
    )
    script.communicate(b"\n", timeout=200)
    assert script.returncode == 0
    assert kilobytes * 1024 <= 60e6
