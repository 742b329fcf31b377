"""`flowos why`, of programs that run in another terminal."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[[str], "subprocess.Popen[str]"]
FLOW = """
import os, sys, time
from pathlib import Path
import flowos as fo

@fo.task
def slow(x: fo.int64) -> fo.int64:
    while not Path("go").exists():
        time.sleep(0.01)
    return x

@fo.task
def after(x: fo.int64) -> fo.int64:
    return x

flow = fo.flow_output(after(slow(fo.flow_input("x", fo.int64))))
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Begins programs with a data folder of their own; they end with the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "flowos.toml").write_text('[pools.slow]\nkind = "fake"\n')
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    monkeypatch.chdir(tmp_path)
    programs: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        words = [sys.executable, "-c", FLOW + textwrap.dedent(program)]
        started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        programs.append(started)
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        return started

    yield start
    for program in programs:
        if program.poll() is None:
            program.kill()
            program.communicate()


def tasks(flowos: Flowos, name: str) -> list[tuple[str, str, str, int]]:
    (answer,) = json.loads(flowos("why", name, "--json").stdout)
    return [(t["task"], t["state"], t["why"], t["number"]) for t in answer["tasks"]]


def comes(found: Callable[[], Any], what: Any) -> None:
    until = time.monotonic() + 30
    while (now := found()) != what:
        assert time.monotonic() < until, now
        time.sleep(0.02)


def test_tasks_that_wait_say_for_what(start: Start, flowos: Flowos) -> None:
    cores = len(os.sched_getaffinity(0))
    program = start(f"""
        s = fo.slice(flow, fuse="none")
        runs = [s.submit(i) for i in range({cores + 2})]
        print("ready", flush=True)
        print(sum(run.result()[0] for run in runs))
    """)
    held = f"slow (x{cores})" if cores > 1 else "slow"
    short = f"for 1 cores, 0 of {cores} are free; tasks that run: {held}"
    comes(lambda: tasks(flowos, "slow"), [("slow", "runs", "", cores), ("slow", "waits", short, 2)])
    waits = [("after", "waits", "for the result of slow", cores + 2)]
    assert tasks(flowos, "after") == waits
    (process,) = json.loads(flowos("ps", "--json").stdout)
    said = flowos("why", process["id"]).stdout
    assert f"{cores + 2} x after (flow on " in said
    missing = flowos("why", "slwo", code=1).stderr
    assert missing == (
        "flowos why: no slice, program or task 'slwo' runs or waits; did you mean 'slow'?\n"
    )
    Path("go").touch()
    assert program.communicate()[0] == f"{sum(range(cores + 2))}\n"
    assert "tasks: none" in flowos("why", "slow", code=1).stderr
    over = flowos("why", process["id"]).stdout
    assert "it is over, or answers nothing" in over


def test_a_task_that_needs_more_than_is_free_says_which_tasks_have_it(
    start: Start, flowos: Flowos
) -> None:
    start("""
        wide = fo.slice(flow, fuse="none")
        wide.submit(1)
        node = wide._crew[0]._node
        need = fo.Needs(memory_bytes=node.whole.memory_bytes // 2 + 1)

        @fo.task(needs=need)
        def big(x: fo.int64) -> fo.int64:
            while not Path("go").exists():
                time.sleep(0.01)
            return x

        s = fo.slice(fo.flow_output(big(fo.flow_input("x", fo.int64))))
        runs = [s.submit(1), s.submit(2)]
        print("ready", flush=True)
        runs[0].result()
    """)
    comes(lambda: [(t[0], t[1]) for t in tasks(flowos, "big")], [("big", "runs"), ("big", "waits")])
    (_, (_, _, why, _)) = tasks(flowos, "big")
    assert "bytes of memory" in why or "cores" in why
    assert "big" in why.partition("tasks that run: ")[2]


def test_slices_say_why_they_wait_or_that_they_do_not(start: Start, flowos: Flowos) -> None:
    start("""
        import threading
        first = fo.slice(flow, pool="slow")
        kept = []
        hold = lambda: kept.append(fo.slice(flow, pool="slow"))
        other = threading.Thread(target=hold, daemon=True)
        other.start()
        print("ready", flush=True)
        time.sleep(1000)
    """)

    def found() -> dict[str, str]:
        return {s["state"]: s["id"] for s in json.loads(flowos("slice", "ls", "--json").stdout)}

    comes(lambda: sorted(found()), ["held", "waiting"])
    assert "it does not wait: p-" in flowos("why", found()["held"]).stdout
    waits = flowos("why", found()["waiting"]).stdout
    assert "its pool slow said: 0 of 1 nodes are free" in waits
    flowos("slice", "free", found()["held"])
    comes(lambda: sorted(found()), ["freed", "held"])
    assert "it is over: freed, by 'flowos slice free'" in flowos("why", found()["freed"]).stdout
