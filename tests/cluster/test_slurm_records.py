"""Records of slices of a real Slurm, and what another terminal does to them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from flowos.operations.slices import slices
from tests.waiting import comes, ended

from .box import Box
from .in_process import flowos
from .test_allocation import ours_of

HELD_JOBS = ("squeue", "--noheader", "--states=PD,CF,R,S")
"""Without those that are completing."""
HOLDS = """
import sys
import flowos as fo

@fo.task
def add(x: fo.int64) -> fo.int64:
    return x + 1

flow = fo.flow_output(add(fo.flow_input("x", fo.int64)))
try:
    with fo.slice(flow, pool="c", nodes=2) as s:
        print("holds", s.run(1), flush=True)
        sys.stdin.read()
        s.run(1)
except fo.FlowosError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(autouse=True)
def cluster(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is left of a test is nothing."""
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    lines = ("[pools.c]", 'kind = "slurm"', "nodes = 2", f'shared = "{box.shared}"')
    Path("flowos.toml").write_text("\n".join((*lines, "[pools.c.price]", "per_node_hour = 36")))
    yield
    assert comes(lambda: box.ask("squeue", "--noheader") == "")


@pytest.fixture
def programs() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    ended(started)


@pytest.fixture
def start(programs: list["subprocess.Popen[str]"]) -> Callable[[], "subprocess.Popen[str]"]:
    def start() -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        words = (sys.executable, "-c", HOLDS)
        programs.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True))
        return programs[-1]

    return start


Start = Callable[[], "subprocess.Popen[str]"]


def said(*words: str) -> str:
    done = flowos("slice", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def newest() -> dict[str, Any]:
    found: dict[str, Any] = next(iter(json.loads(said("ls", "--json"))), {})
    return found


def holds(program: "subprocess.Popen[str]") -> dict[str, Any]:
    assert program.stdout
    assert program.stdout.readline() == "holds [2]\n"
    found = newest()
    assert found["state"] == "held"
    return found


def test_a_slice_is_recorded_with_its_job_and_what_its_nodes_cost(start: Start, box: Box) -> None:
    program = start()
    found = holds(program)
    cores = len(os.sched_getaffinity(0))  # what steps may use
    job, name = box.ask("squeue", "--noheader", "--format=%A %j").split()
    assert (found["jobs"], name) == ([job], f"flowos-{found['id']}")
    assert [(node["name"], node["cores"]) for node in found["nodes"]] == [
        ("n1", cores),
        ("n2", cores),
    ]
    program.communicate("\n")
    found = newest()
    assert found["state"] == "freed"
    assert found["cost"] == pytest.approx(found["node_seconds"] / 100)
    assert 0.01 < found["cpu_seconds"] < 1000  # of a worker on one of them
    assert 1e6 < found["max_rss_bytes"] < 1e9
    shown = said("show", found["id"])
    assert f"its tasks used {found['cpu_seconds']:g} s of cpu" in shown
    assert "  sacct: Slurm accounting storage is disabled\n" in shown
    assert "EUR\n" in shown


def test_a_slice_is_freed_from_another_terminal(start: Start, box: Box) -> None:
    program = start()
    found = holds(program)
    assert said("free", found["id"]).startswith(f"freed {found['id']} of p-")
    assert box.ask(*HELD_JOBS) == ""
    out, _ = program.communicate("\n")
    assert out == (
        f"SliceFreed slice {found['id']} was freed by 'flowos slice free', in another terminal\n"
    )
    assert newest()["state"] == "freed"


def test_a_slice_that_waits_says_why_and_is_freed_from_another_terminal(
    start: Start, box: Box
) -> None:
    holds(start())
    waits = start()
    assert comes(lambda: slices().found[0].waits(time.time()))
    found = newest()
    assert (found["state"], found["events"][0]["reason"]) == ("waiting", "Resources")
    why = flowos("why", found["id"]).stdout
    job = box.ask("squeue", "--noheader", "--states=PD", "--format=%A")
    assert f"job {job} waits: Resources: nodes that it asks for are in use" in why
    assert "expected start: " in why
    assert "may start sooner: a time limit: without one it asks for the 3600 s" in why
    assert said("free", found["id"]).startswith("freed")
    out, _ = waits.communicate()
    assert out == (
        f"SliceFreed slice {found['id']} was freed by 'flowos slice free', in another terminal\n"
    )
    ((name, state),) = [line.split() for line in box.ask("squeue", "-ho", "%j %T").splitlines()]
    assert (name == f"flowos-{found['id']}", state) == (False, "RUNNING")


def test_a_program_that_is_killed_loses_its_slice(start: Start, box: Box) -> None:
    program = start()
    found = holds(program)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    assert comes(lambda: slices().found[0].state == "lost")
    found = newest()
    assert found["events"][-1]["reason"] == "its program was killed"
    assert found["node_seconds"] > 0
    assert box.ask(*HELD_JOBS) == ""
    said_of_it = said("free", found["id"])
    assert "is over already: lost (its program was killed)" in said_of_it


def send_to_ours(box: Box, number: signal.Signals) -> None:
    for pid in ours_of(box):
        with suppress(ProcessLookupError):  # one that had as good as ended
            os.kill(pid, number)


def test_nodes_that_a_killed_program_left_are_freed_by_the_next_one_that_waits(
    start: Start, box: Box
) -> None:
    """As by scancel --signal=KILL after its session was killed: Slurm holds them for no process."""
    program = start()
    (job,) = holds(program)["jobs"]
    send_to_ours(box, signal.SIGSTOP)  # or srun's other process would end the job
    send_to_ours(box, signal.SIGKILL)
    box.run("scancel", "--signal=KILL", job)  # before the keepers end it, in most runs
    program.communicate()
    assert comes(lambda: not box.ask("squeue", "--noheader", "--steps"))
    next_one = start()
    holds(next_one)
    next_one.communicate("\n")


def test_a_job_that_is_cancelled_loses_its_slice(start: Start, box: Box) -> None:
    program = start()
    found = holds(program)
    box.run("scancel", *found["jobs"])
    assert comes(lambda: slices().found[0].state == "lost")
    assert newest()["ended"] is not None
    out, _ = program.communicate("\n")
    assert out.startswith("SliceFreed the slice has ended: ")
