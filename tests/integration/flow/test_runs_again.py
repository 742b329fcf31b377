"""Tasks whose results are kept and which run again: a slice says for which reason."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.engine.results._key_parts import keep_parts

SWEEP = """
import sys
from pathlib import Path

import flowos as fo

WEIGHT = {weight}


def scaled(n):
    return WEIGHT * n


@fo.task{options}
def simulate(n: int) -> int:
    return scaled(n){more}


@fo.task
def written(n: int) -> fo.File:
    path = Path(f"{{n}}.npy").absolute()
    path.write_text(str(n))
    return path


n = fo.flow_input("n", int)
flow = fo.flow_output(simulate(n), written(n))

if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    with fo.slice(flow, journal="kept", cores=1) as s:
        before = s.notes
        for _ in s.map(range(first, last), ahead=0):
            pass
        print(*before, "--", *(note for note in s.notes if note not in before), sep="\\n")
"""
Sweep = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    """Runs the program; its notes at the start, and those that came to them."""

    def run(
        first: int = 0, last: int = 5, *, weight: int = 2, more: str = "", options: str = ""
    ) -> tuple[list[str], list[str]]:
        program = SWEEP.format(weight=weight, more=more, options=options)
        (tmp_path / "sweep.py").write_text(program)
        words = [sys.executable, "-B", "sweep.py", str(first), str(last)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
        before, _, after = done.stdout.partition("--\n")
        return before.split("\n")[:-1], after.replace(f"{tmp_path}/", "").split("\n")[:-1]

    return run


def notes(*given: str) -> tuple[list[str], list[str]]:
    return [], list(given)


def taken(count: int) -> str:
    results = "1 result was" if count == 1 else f"{count} results were"
    return f"{results} taken from journal kept"


def test_nothing_is_said_where_nothing_runs_again(sweep: Sweep) -> None:
    assert sweep() == notes()
    assert sweep() == notes(taken(10))
    assert sweep(0, 8) == notes(taken(10))  # it goes on


def test_what_changed_of_the_code_is_said_at_the_start(sweep: Sweep, tmp_path: Path) -> None:
    end = f"changed; 5 results of before are in journal {tmp_path}/kept"
    sweep()
    assert sweep(weight=3) == (
        [f"task 'simulate' runs again: WEIGHT in scaled (now 3, before 2) {end}"],
        [taken(5)],
    )
    end = end.replace("5 results", "10 results")
    assert sweep(more=" + 1")[0] == [f"task 'simulate' runs again: its code {end}"]
    end = end.replace("10 results", "15 results")
    assert sweep(options="(cache='v2')")[0] == [f"task 'simulate' runs again: its version {end}"]


def test_a_file_that_is_gone_or_another_is_named(sweep: Sweep, tmp_path: Path) -> None:
    sweep()
    (tmp_path / "3.npy").unlink()
    (tmp_path / "1.npy").unlink()
    (tmp_path / "2.npy").write_text("other")
    assert sweep() == notes(
        "2 calls of task 'written' ran again: its file is gone (1.npy)",
        "1 call of task 'written' ran again: its file has another content (2.npy)",
        taken(7),
    )
    assert sweep() == notes(taken(10))


def test_inputs_that_no_result_has_are_said_where_no_result_was_found(sweep: Sweep) -> None:
    sweep()
    assert sweep(5, 8) == notes(
        "3 calls of task 'simulate' ran: journal kept has no result of these inputs",
        "3 calls of task 'written' ran: journal kept has no result of these inputs",
    )


@fo.task
def large(n: fo.int64) -> fo.bytes_:
    return bytes(100_000) + b"%d" % n


def test_a_large_value_that_is_damaged_is_named(tmp_path: Path) -> None:
    flow, at = fo.flow_output(large(fo.flow_input("n", fo.int64))), tmp_path / "kept"
    said: tuple[str, ...] = ()
    for _ in range(2):
        with fo.slice(flow, journal=at, cores=1) as s:
            s.run(3)
            said = s.notes
        (value,) = (at / "values").iterdir()
        value.write_bytes(b"other")
    assert said == (
        f"1 call of task 'large' ran again: its value in journal {at} is gone or damaged",
    )


def test_a_file_of_a_command_that_is_gone_from_the_journal_is_named(tmp_path: Path) -> None:
    flow, at = fo.flow_output(fo.command(["cp", "/dev/null", fo.Out("made")])()), tmp_path / "kept"
    said: tuple[str, ...] = ()
    for _ in range(2):
        with fo.slice(flow, journal=at, cores=1) as s:
            s.run()
            said = s.notes
        for value in (at / "values").iterdir():
            value.unlink()
    assert said == (
        f"1 call of task 'cp' ran again: a file of it in journal {at} is gone or damaged (made)",
    )


def test_tasks_that_run_again_for_one_reason_are_one_line(tmp_path: Path) -> None:
    def flow(number: int, count: int) -> fo.Flow:
        @fo.task
        def plus(x: fo.int64) -> fo.int64:
            return x + number

        port = fo.flow_input("x", fo.int64)
        for _ in range(count):
            port = plus(port)
        return fo.flow_output(port)

    at = tmp_path / "kept"
    said: tuple[str, ...] = ()
    for number in (1, 2):
        with fo.slice(flow(number, 6), journal=at, cores=1) as s:
            s.run(1)
            said = s.notes
    assert said == (
        "tasks 'plus', 'plus#2', 'plus#3' and 3 more run again: number (now 2, before 1) changed; "
        f"6 results of before are in journal {at}",
    )
    assert len(list((at / "tasks").iterdir())) == 2  # one for a code, not for a call
    with fo.slice(flow(2, 8), journal=at, cores=1) as s:  # more calls of the same code
        assert s.notes == ()


def test_a_code_counts_by_whatever_name_its_task_has_in_the_flow(tmp_path: Path) -> None:
    def scaled(factor: int) -> fo.Task:
        @fo.task
        def times(x: fo.int64) -> fo.int64:
            return x * factor

        return times

    x = fo.flow_input("x", fo.int64)
    for factors in ((2, 3), (3, 2)):
        flow = fo.flow_output(*(scaled(factor)(x) for factor in factors))
        with fo.slice(flow, journal=tmp_path / "kept", cores=1) as s:
            s.run(1)
            assert not [note for note in s.notes if "again" in note]


def test_threads_that_find_files_gone_lose_no_count(tmp_path: Path) -> None:
    @fo.task
    def written(n: fo.int64) -> fo.File:
        path = tmp_path / f"{n}.txt"
        path.write_text("")
        return path

    flow = fo.flow_output(written(fo.flow_input("n", fo.int64)))
    said: tuple[str, ...] = ()
    for _ in range(2):
        with fo.slice(flow, workers="thread", journal=tmp_path / "kept") as s:
            list(s.map(range(200)))
            said = s.notes
        for path in tmp_path.glob("*.txt"):
            path.unlink()
    assert len(said) == 1
    assert said[0].startswith("200 calls of task 'written' ran again: its file is gone (")


def test_flowos_run_says_it_before_the_run_and_only_once(sweep: Sweep, tmp_path: Path) -> None:
    sweep(0, 1)
    text = (tmp_path / "sweep.py").read_text().replace("WEIGHT = 2", "WEIGHT = 3")
    text = text.replace("return scaled(n)", "print('it runs', file=sys.stderr); return scaled(n)")
    (tmp_path / "sweep.py").write_text(text)
    words = [sys.executable, "-m", "flowos", "run", "sweep.py", "--journal", "kept", "n=0"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0
    at = f"journal {tmp_path}/kept"
    assert done.stderr.splitlines() == [
        "flowos run: task 'simulate' runs again: its code and WEIGHT in scaled (now 3, before 2) "
        f"changed; 1 result of before is in {at}",
        "it runs",
        f"flowos run: 1 result was taken from {at}",
    ]


def test_parts_that_were_lost_leave_the_general_words(sweep: Sweep, tmp_path: Path) -> None:
    sweep()
    for file in (tmp_path / "kept/tasks").iterdir():
        keep_parts(tmp_path / "kept", bytes.fromhex(file.name), {})
    assert sweep(weight=3)[0] == [
        "task 'simulate' runs again: its code, what that names, Python or the image changed; 5 "
        f"results of before are in journal {tmp_path}/kept"
    ]


def test_parts_that_were_damaged_are_written_anew(sweep: Sweep, tmp_path: Path) -> None:
    sweep()
    files = sorted((tmp_path / "kept/tasks").iterdir())
    whole = [file.read_bytes() for file in files]
    for content in (b"", whole[0][:40]):
        for file in files:
            file.write_bytes(content)
        assert sweep() == notes(taken(10))
        assert [file.read_bytes() for file in files] == whole


def test_a_journal_whose_parts_an_older_flowos_kept_opens(sweep: Sweep, tmp_path: Path) -> None:
    sweep()
    (tmp_path / "kept/tasks/README").touch()
    for file in (tmp_path / "kept/tasks").iterdir():
        file.write_text('{"format": 1, "parts": {"code": ["0123456789abcdef", ""]}}')
    (general,), _ = sweep(weight=3)
    assert "its code, what that names, Python or the image changed" in general
    assert "WEIGHT in scaled (now 4, before 3) changed" in sweep(weight=4)[0][0]
    shutil.rmtree(tmp_path / "kept/tasks")
    assert sweep() == notes(taken(10))


def test_the_newest_of_the_values_before_is_named(sweep: Sweep) -> None:
    for weight in (1, 2, 3):
        sweep(0, 1, weight=weight)
    assert "WEIGHT in scaled (now 4, before 3) changed" in sweep(0, 1, weight=4)[0][0]


def notes_of_both(tmp_path: Path, *flows: fo.Flow) -> tuple[str, ...]:
    """What the last of these says, whose results are in one journal."""
    said: tuple[str, ...] = ()
    for flow in flows:
        with fo.slice(flow, workers="thread", journal=tmp_path / "kept") as s:
            s.run(1)
            said = s.notes
    return said


def test_an_output_of_another_type_is_not_said_to_be_one_that_is_used(tmp_path: Path) -> None:
    def plus(x: int) -> Any:
        return x + 1.0

    def flow(type_: type) -> fo.Flow:
        plus.__annotations__["return"] = type_
        task: fo.Task = fo.task(plus)
        return fo.flow_output(task(fo.flow_input("x", int)))

    (said,) = notes_of_both(tmp_path, flow(object), flow(float))
    assert said.startswith("task 'plus' runs again: its outputs changed;")


def test_an_output_that_is_used_now_is_said(tmp_path: Path) -> None:
    @fo.task
    def two(x: int) -> tuple[int, int]:
        return x, x

    a, b = two(fo.flow_input("x", int))
    (said,) = notes_of_both(tmp_path, fo.flow_output(a), fo.flow_output(a, b))
    assert said.startswith("task 'two' runs again: which of its outputs are used changed;")


class GivesItselfOnce:
    """Has a digest for as long as its code is not asked for part by part."""

    asked = 0

    def __reduce__(self) -> tuple[object, ...]:
        type(self).asked += 1
        if self.asked > 1:
            raise OSError("not again")
        return GivesItselfOnce, ()

    def __call__(self, x: int) -> int:
        return x


def test_a_slice_opens_where_the_parts_of_a_code_cannot_be_told(tmp_path: Path) -> None:
    fun: Any = GivesItselfOnce()
    fun.__name__ = "once"
    task: Any = fo.task(fun)
    flow = fo.flow_output(task(fo.flow_input("x", int)))
    assert notes_of_both(tmp_path, flow) == ()
    assert not (tmp_path / "kept/tasks").exists()
