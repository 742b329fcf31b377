"""A journal: a program that was killed goes on; what changed runs again, and nothing else does."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import flowos as fo
from tests.integration.flow.kept_tasks import identity, logged

SWEEP = Path(__file__).parents[3] / "examples/sweep.py"
Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "process", "inline")
VECTOR = fo.array(fo.float64, (None,))


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@fo.task
def total(values: VECTOR, more: fo.int64) -> fo.float64:  # type: ignore[valid-type]
    return float(values.sum()) + more  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def quick_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, whose points take a fifth of their time: what is tested is what is kept."""
    program = SWEEP.read_text()
    assert "steps = 0.5, 0.0, 20_000" in program
    file = tmp_path_factory.mktemp("program") / SWEEP.name
    file.write_text(program.replace("20_000", "4_000"))
    return file


def sweep(program: Path, folder: Path) -> "subprocess.Popen[str]":
    words = [sys.executable, str(program), str(folder)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def killed_at_137(program: Path, folder: Path) -> Path:
    """Where it was; on a busy machine, one may come to its end before it is killed."""
    for number in range(10):
        (at := folder / str(number)).mkdir()
        killed = sweep(program, at)
        computed = at / "computed.txt"
        while len(lines(computed)) < 137:
            assert killed.poll() is None
            time.sleep(0.01)
        killed.kill()
        killed.communicate(timeout=300)
        if killed.returncode == -signal.SIGKILL and len(lines(computed)) < 500:
            return at
    pytest.fail("it was never caught half-way")


def test_a_sweep_that_is_killed_at_137_goes_on_at_138(tmp_path: Path, quick_sweep: Path) -> None:
    at = killed_at_137(quick_sweep, tmp_path)
    computed = at / "computed.txt"
    before = len(lines(computed))

    printed, errors = (again := sweep(quick_sweep, at)).communicate(timeout=300)
    assert (again.returncode, errors) == (0, "")
    hits = int(printed.split()[0])
    assert f"{hits} results were taken from journal {at}/journal" in printed
    in_flight = len(os.sched_getaffinity(0))
    assert before - in_flight <= hits <= before
    assert len(lines(computed)) == before + 500 - hits
    assert len(set(lines(computed))) == 500

    last, errors = sweep(quick_sweep, at).communicate(timeout=300)
    assert last.startswith(f"500 results were taken from journal {at}/journal\n")
    assert last.splitlines()[-1] == printed.splitlines()[-1]
    assert len(lines(computed)) == before + 500 - hits


@pytest.mark.parametrize("way", WAYS)
def test_results_are_found_again_by_every_kind_of_worker(tmp_path: Path, way: Way) -> None:
    x, log = fo.flow_input("x", fo.int64), tmp_path / "log"
    made = total(np.arange(3.0), logged(logged(x, str(log)), str(log)))
    for turn in (1, 2):
        with fo.slice(made, workers=way, journal=tmp_path / "journal") as s:
            assert s.run(1) == [103.0]
            assert list(s.map(range(1, 5))) == [[103.0], [203.0], [303.0], [403.0]]
        assert len(lines(log)) == 8
        hits = {1: 3, 2: 15}[turn]
        assert s.notes == (f"{hits} results were taken from journal {tmp_path}/journal",)
    with fo.slice(logged(x, str(log)), workers=way, journal=tmp_path / "journal") as s:
        assert list(s.map([9, 4, 8, 1, 7])) == [[90], [40], [80], [10], [70]]
    assert sorted(lines(log)[8:]) == ["7", "8", "9"]


def test_without_a_journal_nothing_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with fo.slice(logged(fo.flow_input("x", fo.int64), str(log))) as s:
        assert (s.run(1), s.run(1), s.notes) == ([10], [10], ())
    assert len(lines(log)) == 2


def test_an_error_is_not_kept_and_what_came_before_it_is(tmp_path: Path) -> None:
    log, fail = tmp_path / "log", tmp_path / "fail"

    @fo.task
    def picky(x: fo.int64) -> fo.int64:
        with log.open("a") as file:
            file.write(f"{x}\n")
        if x == 2 and fail.exists():
            raise ValueError("not this one")
        return x

    fail.touch()
    x = fo.flow_input("x", fo.int64)
    with (
        fo.slice(picky(x), journal=tmp_path / "journal", cores=1) as s,
        pytest.raises(fo.TaskFailed, match=r"item 2: .*not this one"),
    ):
        list(s.map(range(4), ahead=0))
    fail.unlink()
    with fo.slice(picky(x), journal=tmp_path / "journal", cores=1) as s:
        assert list(s.map(range(4), ahead=0)) == [[0], [1], [2], [3]]
    assert lines(log) == ["0", "1", "2", "2", "3"]


def test_a_task_of_other_code_is_named_in_the_notes(tmp_path: Path) -> None:
    for number in (1, 2):
        with fo.slice(
            _plus(number)(fo.flow_input("x", fo.int64)), journal=tmp_path / "journal"
        ) as s:
            assert list(s.map(range(3))) == [[number], [1 + number], [2 + number]]
            notes = s.notes
    assert notes == (
        "task 'plus' runs again: number (now 2, before 1) changed; 3 results of before are in "
        f"journal {tmp_path}/journal",
    )


def _plus(number: int) -> fo.Task:
    @fo.task
    def plus(x: fo.int64) -> fo.int64:
        return x + number

    return plus


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    """Runs a program with a task and its helper; what it printed, and the lines of the log."""

    def run(task: str = "x + helper()", helper: str = "1", value: str = "1") -> str:
        (tmp_path / "own_helper.py").write_text(f"def helper():\n    return {helper}\n")
        (tmp_path / "program.py").write_text(
            textwrap.dedent(f"""
                import flowos as fo
                from own_helper import helper

                @fo.task
                def compute(x: fo.int64) -> fo.int64:
                    print("computed", end=" ")
                    return {task}

                with fo.slice(compute(fo.flow_input("x", fo.int64)), journal="journal") as s:
                    print(*s.run({value}), *("again" for note in s.notes if "runs again" in note))
            """)
        )
        words = [sys.executable, "-B", "program.py"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    return run


def test_what_changed_runs_again_in_the_next_program(program: Callable[..., str]) -> None:
    assert program() == "computed 2"
    assert program() == "2"
    assert program(task="x - helper()") == "computed 0 again"
    assert program(helper="2") == "computed 3 again"
    assert program(value="5") == "computed 6"
    assert program() == "2"


def test_a_command_that_was_killed_is_not_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    killed = fo.command(["/bin/sh", "-c", f"echo ran >> {log}; kill -9 $$"], outcome="how")
    for _ in range(2):
        with fo.slice(killed(), journal=tmp_path / "journal") as s:
            s.run()
    assert lines(log) == ["ran", "ran"]


def test_what_has_no_digest_is_refused_when_the_slice_is_made(tmp_path: Path) -> None:
    lock = threading.Lock()

    @fo.task
    def locked(x: fo.int64) -> fo.int64:
        with lock:
            return x

    with pytest.raises(fo.SliceRefused) as error:
        fo.slice(locked(1), journal=tmp_path / "journal")
    assert str(error.value) == (
        "slice: results of task 'locked' cannot be kept: it reads 'lock', and a lock has no stable "
        "digest (cannot pickle '_thread.lock' object); make it an input, or leave it out with "
        "cache='v1', a text to be changed by hand, or the task with cache=False"
    )


def test_a_value_without_a_digest_is_refused_by_name(tmp_path: Path) -> None:
    with fo.slice(identity(fo.flow_input("x", fo.any_)), journal=tmp_path / "journal") as s:
        with pytest.raises(fo.ValueRefused) as error:
            s.run(threading.Lock())
        assert str(error.value) == (
            "task 'identity', input 'x': a lock has no stable digest (cannot pickle '_thread.lock' "
            "object); without one its results cannot be kept: cache=False leaves the task out"
        )
        assert s.run([1]) == [[1]]


@pytest.mark.parametrize("way", WAYS)
def test_the_item_of_a_map_that_is_refused_is_named(tmp_path: Path, way: Way) -> None:
    items: list[object] = [*range(300), threading.Lock(), 301]
    flow = fo.flow_output(identity(fo.flow_input("x", fo.any_)))
    with fo.slice(flow, workers=way, journal=tmp_path / "journal") as s:
        results = s.map(items)
        assert [next(results) for _ in range(300)] == [[i] for i in range(300)]
        with pytest.raises(fo.ValueRefused, match="item 300: task 'identity', input 'x': a lock"):
            next(results)


def test_a_result_that_cannot_be_pickled_is_refused(tmp_path: Path) -> None:
    @fo.task
    def opens(x: fo.int64) -> fo.any_:  # noqa: ARG001
        return (each for each in "ab")

    with (
        fo.slice(opens(1), journal=tmp_path / "journal") as s,
        pytest.raises(fo.ValueRefused, match="task 'opens': its result cannot be kept, as it can"),
    ):
        s.run()


def test_a_damaged_tail_is_named_in_the_notes_and_costs_one_result(tmp_path: Path) -> None:
    log, at = tmp_path / "log", tmp_path / "journal"
    flow = fo.flow_output(logged(fo.flow_input("x", fo.int64), str(log)))
    with fo.slice(flow, journal=at) as s:
        list(s.map(range(5), ahead=0))
    os.truncate(at / "journal", (at / "journal").stat().st_size - 3)
    with fo.slice(flow, journal=at) as s:
        assert len(list(s.map(range(5), ahead=0))) == 5
        cut, hits = s.notes
    assert cut.startswith(f"journal {at}: ")
    assert cut.endswith("damaged bytes at its end were cut off; the rest is used")
    assert hits == f"4 results were taken from journal {at}"
    assert len(lines(log)) == 6


def test_nodes_of_a_pool_share_a_journal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    flow = fo.flow_output(logged(fo.flow_input("x", fo.int64), str(log)))
    for _ in range(2):
        with fo.slice(flow, pool="local", journal=tmp_path / "journal") as s:
            assert list(s.map(range(3))) == [[0], [10], [20]]
    assert s.notes == (f"3 results were taken from journal {tmp_path}/journal",)
    assert len(lines(log)) == 3


def test_what_several_nodes_took_from_a_journal_is_one_note_with_the_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flowos.toml").write_text('[pools.two]\nkind = "fake"\nnodes = 2\n')
    log = tmp_path / "log"
    flow = fo.flow_output(logged(fo.flow_input("x", fo.int64), str(log)))
    with fo.slice(flow, journal=tmp_path / "journal") as s:
        list(s.map(range(200)))
    with fo.slice(flow, pool="two", nodes=2, journal=tmp_path / "journal") as two:
        list(two.map(range(200)))
        assert two.notes == (f"200 results were taken from journal {tmp_path}/journal",)
    assert two.notes == (f"200 results were taken from journal {tmp_path}/journal",)
    assert len(lines(log)) == 200


def test_ps_counts_the_results_that_were_kept(tmp_path: Path) -> None:
    variables: dict[str, Any] = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    program = """
import flowos as fo
@fo.task
def double(x: fo.int64) -> fo.int64:
    return 2 * x
with fo.slice(double(fo.flow_input("x", fo.int64)), journal="journal") as s:
    print(list(s.map(range(7))))
"""
    for _ in range(2):
        words = [sys.executable, "-c", program]
        subprocess.run(words, env=variables, cwd=tmp_path, check=True, timeout=300)
    flowos = [str(Path(sys.executable).with_name("flowos"))]

    def said(*words: str) -> str:
        return subprocess.run(
            [*flowos, *words], env=variables, capture_output=True, text=True, timeout=60
        ).stdout

    shown = [said("show", line.split()[0]) for line in said("ps").splitlines()]
    assert sorted("  7 results kept from before\n" in each for each in shown) == [False, True]


def script(at: Path, says: str) -> Path:
    at.write_text(f"#!/bin/sh\necho {says}\n")
    at.chmod(0o755)
    return at


def said_by(command: Any, journal: Path, before: Callable[[], object] = int) -> str:
    """before: is called once the slice is open."""
    with fo.slice(command(), journal=journal) as s:
        before()
        return str(s.run()[0]).strip()


def test_a_program_is_looked_for_in_the_path_of_its_command(tmp_path: Path) -> None:
    journal, path = tmp_path / "journal", {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for inherit in (True, False):
        tool = fo.command(["tool"], stdout="said", variables=path, inherit=inherit)
        for says in ("one", "two", "one"):
            script(tmp_path / "tool", says)
            assert said_by(tool, journal) == says


def test_a_program_that_changes_while_a_slice_is_open_is_kept_for_that_slice(
    tmp_path: Path,
) -> None:
    tool, journal = tmp_path / "tool", tmp_path / "journal"
    command = fo.command([script(tool, "one")], stdout="said")
    assert said_by(command, journal, lambda: script(tool, "two")) == "two"
    script(tool, "one")
    assert said_by(command, journal) == "one"
    assert said_by(command, journal, lambda: script(tool, "three")) == "three"
    assert said_by(command, journal) == "three"
