"""The record of a program that used slices: `flowos ps`, `flowos show PROCESS`."""

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Flowos = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = """
import os, sys, threading, time
import flowos as fo

@fo.task
def add(x: fo.int64, y: fo.int64) -> fo.int64:
    return x + y

x = fo.flow_input("x", fo.int64)
flow = fo.flow_output(add(x, 1))
"""


class Home:
    """A data folder of its own, and programs that keep their records there."""

    def __init__(self, folder: Path, flowos: Flowos) -> None:
        self.data = folder / "data"
        self.flowos = flowos
        self.records = self.data / "flowos/processes"
        self.variables = {**os.environ, "XDG_DATA_HOME": str(self.data)}

    def start(self, program: str) -> "subprocess.Popen[str]":
        words = [sys.executable, "-c", FLOW + textwrap.dedent(program)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self.variables
        )

    def run(self, program: str) -> tuple[str, str]:
        return self.start(program).communicate(timeout=300)

    def ps(self) -> list[Any]:
        done = self.flowos("ps", "--json")
        assert done.stderr == ""
        return list(json.loads(done.stdout))


@pytest.fixture
def home(tmp_path: Path, flowos: Flowos) -> Home:
    return Home(tmp_path, flowos)


def test_a_program_that_ended_is_kept_with_what_it_ran(home: Home) -> None:
    assert home.flowos("ps").stdout == "no program used a slice yet\n"
    said, _ = home.run("""
        with fo.slice(flow) as s:
            for i in range(7):
                s.run(i)
            print(sum(r[0] for r in s.map(range(100))))
        with fo.slice(pool="local") as s:
            s.run(flow, 1)
    """)
    assert said == "5050\n"
    assert len(list(home.records.iterdir())) == 1
    for _ in range(2):  # from its record, which the first takes into the store; from the store
        (process,) = home.ps()
        assert process["state"] == "ended"
        assert process["ended"]
        assert [(u["slices"], u["runs"], u["env"]) for u in process["uses"]] == [(2, 108, "bare")]
        assert list(home.records.iterdir()) == []
    shown = home.flowos("show", process["id"][:-2]).stdout
    assert "108 runs" in shown
    assert f"pid {process['pid']}" in shown
    assert json.loads(home.flowos("show", process["id"], "--json").stdout) == process
    assert process["id"] in home.flowos("ps").stdout


def test_a_program_that_runs_is_shown_and_one_that_was_killed_is_lost(home: Home) -> None:
    program = home.start("""
        s = fo.slice(flow)
        s.run(1)
        print("runs", flush=True)
        sys.stdin.read()
    """)
    assert program.stdout is not None
    assert program.stdout.readline() == "runs\n"
    (process,) = home.ps()
    assert (process["state"], process["pid"]) == ("running", program.pid)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    (process,) = home.ps()
    assert process["state"] == "lost"
    assert list(home.records.iterdir()) == []
    shown = home.flowos("show", process["id"]).stdout
    assert "  killed   runs not known  " in shown
    assert f", killed after {process['ended']}\n" in shown
    assert "cpu time and memory not known" in shown
    assert " s of cpu" not in shown
    assert "1 slice  runs not known  held a time that is not known\n" in shown
    assert "  killed   runs not known  " in home.flowos("ps").stdout


FAILS = """
    @fo.task
    def inverse(x: float) -> float:
        return 1 / x

    def tried(act, *values):
        try:
            act(*values)
        except fo.FlowosError as error:
            print(error)

    with fo.slice(inverse(fo.flow_input("x", float)), {}) as s:
        {}
"""


COUNTED = {
    "tried(s.run, 0.0), s.run(1.0)": (2, 1),
    "tried(s.submit(0.0).result), s.submit(1.0).result()": (2, 1),
    "list(s.map([1.0, 0.0, 2.0, 0.0], on_error='return'))": (4, 2),
    "tried(list, s.map([1.0, 0.0]))": (2, 1),
    "tried(s.run, 'no number'), s.run(1.0)": (1, 0),  # it did not begin
}
"""What is done on a slice; its runs, and how many of them failed."""
IN_CHILDREN = """
    for does in {}:
        if child := os.fork():
            os.waitpid(child, 0)
            print("child", child, flush=True)
            continue
        with fo.slice(inverse(fo.flow_input("x", float)), {}) as s:
            exec(does)
        sys.exit()
"""


@pytest.mark.parametrize("where", ["workers='thread'", "workers='process'", "pool='local'"])
def test_runs_that_failed_are_counted(home: Home, where: str) -> None:
    defined, _, _ = FAILS.partition("    with fo.slice")
    said, _ = home.run(defined + IN_CHILDREN.format([*COUNTED], where))
    found = {process["pid"]: process for process in home.ps()}
    pids = [int(line[6:]) for line in said.splitlines() if line.startswith("child ")]
    assert {*pids} == {*found}
    listed = home.flowos("ps").stdout
    for pid, (does, counts) in zip(pids, COUNTED.items(), strict=True):
        (use,) = found[pid]["uses"]
        assert (use["runs"], use["failed"]) == counts, does
        assert len(use["failures"]) == counts[1], does
        words = f"{counts[0]} run{'s' * (counts[0] > 1)}"
        words += f", {counts[1]} failed" * bool(counts[1])
        head, *shown = home.flowos("show", found[pid]["id"]).stdout.splitlines()
        assert head in listed.splitlines()
        assert f"  ended    {words}  " in head
        assert [line for line in shown if f"  1 slice  {words}  held " in line]
        task = "    failed: task 'inverse' raised ZeroDivisionError: "
        assert [line[: len(task)] for line in shown].count(task) == counts[1]


def test_of_many_runs_that_failed_the_last_are_shown(home: Home) -> None:
    home.run(FAILS.format("cores=1", "for i in range(9): tried(s.run, 0.0)"))
    (process,) = home.ps()
    assert process["uses"][0]["failed"] == 9
    shown = home.flowos("show", process["id"]).stdout
    assert "    of 9 that failed the last 5:\n" in shown
    assert shown.count("    failed: ") == 5


def test_what_is_said_of_a_run_that_failed_is_one_line_of_a_terminal(home: Home) -> None:
    raises = "raise ValueError(chr(10) + '\\x1b[2J' + 'x' * 1000 + chr(10) + 'more')"
    home.run(FAILS.format("cores=1", "tried(s.run, 0.0)").replace("return 1 / x", raises))
    (process,) = home.ps()
    (line,) = home.flowos("show", process["id"]).stdout.splitlines()[4:]
    assert len(line) < 340
    assert "raised ValueError: " in line
    assert "xxx ... xxx" in line
    assert line.endswith("given x = 0.0 (float)")
    assert line.isprintable()


ENDED = """try:
            s.run(0.0)
        except KeyboardInterrupt:
            pass
        s.submit(1.0).cancel()"""


def test_a_run_that_a_person_ended_did_not_fail(home: Home) -> None:
    waits = "import os, signal, time; x or os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
    home.run(FAILS.format("cores=1", ENDED).replace("return 1 / x", waits))
    (process,) = home.ps()
    (use,) = process["uses"]
    assert (use["runs"], use["failed"], use["failures"]) == (2, 0, [])


def test_one_run_is_one_and_a_command_is_whole_where_no_terminal_is(home: Home) -> None:
    home.run("fo.slice(flow).run(1)" + "  # to be seen to its end" * 3)
    (process,) = home.ps()
    command = " ".join(shlex.join(process["argv"]).split())
    listed = home.flowos("ps").stdout
    assert listed.endswith(f"  ended    1 run  {command}\n")
    assert home.flowos("show", process["id"]).stdout.splitlines()[0] == listed.rstrip("\n")
    assert "  1 slice  1 run  held " in home.flowos("show", process["id"]).stdout


def test_what_is_not_kept_of_a_long_command_is_said(home: Home) -> None:
    program = home.data.parent / "program.py"
    program.write_text(f"{FLOW}\nfo.slice(flow).run(1)\n")
    words = [sys.executable, str(program), "x" * 200, "y" * 201, *map(str, range(50))]
    subprocess.run(words, env=home.variables, check=True)
    (process,) = home.ps()
    assert process["argv"][2:5] == ["x" * 200, "y" * 197 + "...", "0"]
    assert process["argv"][-2:] == ["45", "..."]


def test_what_a_command_has_for_a_terminal_does_not_reach_it(home: Home) -> None:
    program = "import flowos as fo\nfo.slice(pool='local').free()  # \x1b[2J"
    subprocess.run((sys.executable, "-c", program), env=home.variables, check=True)
    (process,) = home.ps()
    for words in (("ps",), ("show", process["id"])):
        said = home.flowos(*words).stdout
        assert "\x1b" not in said
        assert "# ?[2J'" in said


@pytest.mark.parametrize("end", ["raise KeyError('x')", "raise KeyboardInterrupt", "sys.exit(3)"])
def test_a_program_that_fails_has_ended_too(home: Home, end: str) -> None:
    home.run(f"fo.slice(flow).run(1)\n{end}")
    (process,) = home.ps()
    assert (process["state"], process["uses"][0]["runs"]) == ("ended", 1)


def test_a_forked_child_has_a_record_of_its_own(home: Home) -> None:
    home.run("""
        fo.slice(flow).run(1)
        if os.fork() == 0:
            fo.slice(flow).run(1)
            sys.exit()
        os.wait()
    """)
    found = home.ps()
    assert [process["state"] for process in found] == ["ended", "ended"]
    assert len({process["pid"] for process in found}) == 2


def test_runs_of_many_threads_are_all_counted(home: Home) -> None:
    home.run("""
        with fo.slice(flow) as s:
            often = lambda: [s.run(1) for _ in range(500)]
            many = [threading.Thread(target=often) for _ in range(8)]
            for each in many: each.start()
            for each in many: each.join()
    """)
    (process,) = home.ps()
    assert process["uses"][0]["runs"] == 4000


@pytest.mark.parametrize("made", ["file", "folder"])
def test_what_cannot_be_written_breaks_no_flow(home: Home, made: str) -> None:
    if made == "file":
        home.data.write_text("")
    else:
        home.records.parent.mkdir(parents=True)
        home.records.write_text("")
    said, complaint = home.run("print(fo.slice(flow).run(1))")
    assert (said, complaint) == ("[2]\n", "")


def test_a_store_that_cannot_be_written_is_named_and_the_records_stay(home: Home) -> None:
    home.run("fo.slice(flow).run(1)")
    (home.data / "flowos/flowos.db").write_text("no database at all")
    done = home.flowos("ps")
    assert "flowos.db: this file is no database" in done.stderr
    assert "1 run " in done.stdout
    assert len(list(home.records.iterdir())) == 1


def test_a_record_that_was_cut_off_is_removed(home: Home) -> None:
    home.records.mkdir(parents=True)
    (home.records / "p-2026-11-20-aaaaaaaa.json").write_text('{"id": "p-')
    assert home.ps() == []
    assert list(home.records.iterdir()) == []


def test_records_that_nobody_asks_for_do_not_pile_up(home: Home) -> None:
    home.records.mkdir(parents=True)
    for number in range(1000):
        (home.records / f"p-{number}.json").write_text("")
    home.run("fo.slice(flow).run(1)")
    assert len(list(home.records.iterdir())) == 901


def test_a_process_that_is_not_kept_is_named(home: Home) -> None:
    done = home.flowos("show", "p-2026", code=2)
    assert done.stderr == "flowos show: no process 'p-2026' is kept: see them with 'flowos ps'\n"
