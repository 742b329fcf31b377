"""The log of a slice: a line for each task that ran, and its timeline."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import flowos as fo
from tests.integration.conftest import called_here

FLOWOS = str(Path(sys.executable).with_name("flowos"))
Way = Literal["thread", "process", "inline"]
VECTOR = fo.array(fo.float64, (None,))


@fo.task
def make(count: fo.int64) -> VECTOR:  # type: ignore[valid-type]
    return np.zeros(count)


@fo.task
def total(values: VECTOR) -> fo.float64:  # type: ignore[valid-type]
    if len(values) == 3:
        raise ValueError("not three\nof them")
    return float(values.sum())  # type: ignore[attr-defined]


def entries(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def flow() -> fo.Flow:
    return fo.flow_output(total(make(fo.flow_input("n", fo.int64))))


def show(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return called_here(["show", *map(str, words)], Path.cwd(), dict(os.environ))


@pytest.mark.parametrize("way", ["thread", "process", "inline"])
def test_each_task_has_a_line_with_its_time_and_bytes(tmp_path: Path, way: Way) -> None:
    log, began = tmp_path / "log", time.time()
    with fo.slice(flow(), workers=way, log=log) as s:
        assert s.run(100) == [0.0]
        assert list(s.map([1, 2])) == [[0.0], [0.0]]
        assert s.notes == ()
    found = entries(log)
    assert sorted(each["task"] for each in found) == ["make"] * 3 + ["total"] * 3
    first, then = found[:2]
    assert (first["bytes_in"], then["bytes_out"]) == (0, 0)
    assert first["bytes_out"] >= 800  # and what packs it, where only workers read it
    assert then["bytes_in"] == first["bytes_out"]
    for each in found:
        assert began <= each["start"] <= each["end"] <= time.time()
        assert each["worker"].rpartition(":")[0] == os.uname().nodename
    assert first["end"] <= then["start"] + 1e-3


def test_a_map_of_one_task_is_logged_item_by_item(tmp_path: Path) -> None:
    with fo.slice(make(fo.flow_input("n", fo.int64)), log=tmp_path / "log") as s:
        assert len(list(s.map(range(50)))) == 50
    assert sorted(each["bytes_out"] for each in entries(tmp_path / "log")) == [
        8 * count for count in range(50)
    ]


def test_a_failed_task_says_why_in_one_line(tmp_path: Path) -> None:
    with (
        fo.slice(flow(), log=tmp_path / "log") as s,
        pytest.raises(fo.TaskFailed, match="not three"),
    ):
        s.run(3)
    last = entries(tmp_path / "log")[-1]
    assert (last["task"], "bytes_out" in last) == ("total", False)
    assert last["error"].startswith("task 'total' raised ValueError: not three")


@pytest.mark.parametrize("way", ["thread", "process", "inline"])
def test_what_was_found_in_a_journal_did_not_run(tmp_path: Path, way: Way) -> None:
    for _ in range(2):
        kept: Any = {"log": tmp_path / "log", "journal": tmp_path / "journal"}
        with fo.slice(flow(), workers=way, **kept) as s:
            s.run(5)
    found = entries(tmp_path / "log")
    assert [(e["task"], e.get("cached")) for e in found] == [
        ("make", None),
        ("total", None),
        ("make", True),
        ("total", True),
    ]
    assert all(e["start"] == e["end"] for e in found[2:])
    assert [e["bytes_out"] for e in found[2:]][1] == 0
    assert found[2]["bytes_out"] >= 40


def test_found_items_of_a_map_are_logged_too(tmp_path: Path) -> None:
    make_n = make(fo.flow_input("n", fo.int64))
    for count in (3, 6):
        with fo.slice(make_n, log=tmp_path / "log", journal=tmp_path / "journal") as s:
            assert len(list(s.map(range(count)))) == count
    assert sum(e.get("cached", False) for e in entries(tmp_path / "log")) == 3
    assert len(entries(tmp_path / "log")) == 9


@pytest.mark.parametrize("way", ["thread", "process"])
def test_attempts_are_counted_in_runs_and_in_a_map(tmp_path: Path, way: Way) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    @fo.task(retries=2)
    def twice(n: fo.int64) -> fo.int64:
        mark = marks / str(n)
        if not mark.exists():
            mark.touch()
            raise ValueError("not at first")
        return n

    n = fo.flow_input("n", fo.int64)
    with fo.slice(twice(n), log=tmp_path / "one", workers=way) as s:
        assert list(s.map(range(5))) == [[i] for i in range(5)]
    assert sorted(e.get("attempt", 1) for e in entries(tmp_path / "one")) == [1] * 5 + [2] * 5
    with fo.slice(total(make(twice(n))), log=tmp_path / "two", workers=way) as s:
        s.run(7)
    assert [(e["task"], e.get("attempt", 1)) for e in entries(tmp_path / "two")] == [
        ("twice", 1),
        ("twice", 2),
        ("make", 1),
        ("total", 1),
    ]


def test_commands_and_their_files_are_logged(tmp_path: Path) -> None:
    sort = fo.command(["sort", "-o", fo.Out("sorted"), fo.In("text")])
    (tmp_path / "text").write_text("b\na\n")
    with fo.slice(sort(fo.flow_input("text", fo.File)), log=tmp_path / "log") as s:
        s.run(tmp_path / "text")
    (only,) = entries(tmp_path / "log")
    assert (only["task"], only["bytes_in"], only["bytes_out"]) == ("sort", 4, 4)


def test_a_log_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fo.SliceRefused, match="it cannot be opened: No such file or directory"):
        fo.slice(flow(), log=tmp_path / "no/log")


@pytest.mark.parametrize("option", ["log", "journal", "folder"])
@pytest.mark.parametrize("path", ["", 3, "a\0"])
def test_what_names_no_file_or_folder_is_refused(option: str, path: Any) -> None:
    with pytest.raises(fo.SliceRefused, match=f"slice: {option}: expected a path, given "):
        fo.slice(flow(), **{option: path})


def test_a_log_on_a_full_disk_ends_early_and_the_run_goes_on(tmp_path: Path) -> None:
    program = f"""
import resource, signal, sys
import flowos as fo
@fo.task
def add(x: fo.int64) -> fo.int64:
    return x + 1
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
with fo.slice(add(fo.flow_input("x", fo.int64)), log={str(tmp_path / "log")!r}) as s:
    print(len(list(s.map(range(9)))), *s.notes)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"9 log {tmp_path}/log: it ends early: File too large\n"


ADDS = """
import flowos as fo
@fo.task
def add(x: fo.int64) -> fo.int64:
    return x + 1
flow = fo.flow_output(add(add(fo.flow_input("x", fo.int64))))
"""


def ran(*words: str) -> "subprocess.CompletedProcess[str]":
    return called_here(["run", *words], Path.cwd(), dict(os.environ))


def test_a_run_of_a_flow_file_is_logged_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adds.py").write_text(ADDS)
    for words in (("--log", "log", "adds.py", "x=1"), ("adds.py", "x=1", "--log", "log")):
        done = ran(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "add = 3\n", "")
    assert sorted(each["task"] for each in entries(Path("log"))) == ["add"] * 2 + ["add#2"] * 2
    assert ran("adds.py", "x=1", "--log", "other", "--dry-run").returncode == 0
    assert not Path("other").exists()
    shown = show("log", "--html", "page.html", "--trace", "trace.json")
    assert (shown.returncode, shown.stderr) == (0, "written: trace.json\nwritten: page.html\n")
    assert "add#2" in shown.stdout
    assert "add#2" in Path("page.html").read_text()
    assert len(json.loads(Path("trace.json").read_text())["traceEvents"]) >= 4


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        ("", "expected a file"),
        ("folder", "it is a folder: name a file"),
        ("no/log", "there is no folder no"),
        ("closed/log", "no file can be made in closed"),
        ("kept", "it may not be written"),
        ("x" * 300, "File name too long"),
        (f"{'x' * 300}/log", "File name too long"),
        ("adds.py", "it is there, and no log of tasks: name another file"),
    ],
)
def test_a_log_that_cannot_be_written_is_said_before_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adds.py").write_text("raise SystemExit('it began')")
    Path("folder").mkdir()
    Path("closed").mkdir(mode=0o500)
    Path("kept").touch(0o400)
    if os.geteuid() == 0 and log in ("closed/log", "kept"):
        pytest.skip("root may write anywhere")
    done = ran("adds.py", "--log", log)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"flowos run: --log {log}: {complaint}\n"
    assert Path("adds.py").read_text() == "raise SystemExit('it began')"


def test_show_adds_up_by_task_and_writes_a_timeline(tmp_path: Path) -> None:
    log, trace = tmp_path / "tasks.log", tmp_path / "trace.json"
    with fo.slice(flow(), log=log, cores=1) as s:
        for count in (1000, 2000):
            s.run(count)
        with pytest.raises(fo.TaskFailed):
            s.run(3)
    with log.open("a") as file:
        file.write('{"task": "cut o')  # as a killed program may leave it
    page = tmp_path / "page.html"
    done = show(log, "--trace", trace, "--html", page)
    assert (done.returncode, done.stderr) == (0, f"written: {trace}\nwritten: {page}\n")
    assert "6 tasks on 1 worker of 1 node" in page.read_text()
    assert "the slice still writes, or was killed" in page.read_text()
    by_task = {
        line.split()[-3 if "failed" in line else -1]: line for line in done.stdout.splitlines()
    }
    assert by_task["make"].split()[:2] == ["3", "runs"]
    assert "0.024 MB out" in by_task["make"]
    assert by_task["total"].endswith("total  1 failed")
    found = json.loads(show(log, "--json").stdout)
    assert [each["task"] for each in found] == ["make", "total"] * 3
    events = json.loads(trace.read_text())["traceEvents"]
    ran = [each for each in events if each["ph"] == "X"]
    names = {(each["name"], each["args"]["name"]) for each in events if each["ph"] == "M"}
    node = os.uname().nodename
    assert names == {("process_name", node), ("thread_name", f"{node}:0")}
    assert [each["name"] for each in ran] == ["make", "total"] * 3
    assert ran[0]["ts"] == 0
    assert all(each["dur"] > 0 and {"pid", "tid"} <= each.keys() for each in ran)
    assert ran[0]["args"] == {"bytes_out": 8000}
    assert "not three" in ran[-1]["args"]["error"]


def test_damaged_lines_are_left_out_and_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with fo.slice(flow(), log=log, cores=1) as s:
        s.run(5)
        with log.open("a") as file:
            file.write('{"task": "cut o')  # as a full disk leaves it
        s.run(5)
    done = show(log, "--html", tmp_path / "page")
    assert done.returncode == 0
    assert f"1 damaged line is left out; {log}:3 is no line of a slice's log: " in done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert "1 line of the log could not be read" in (tmp_path / "page").read_text()
    quiet = show(log, "-q").stderr
    assert quiet.startswith("flowos show: 1 damaged line is left out; ")
    assert quiet.count("\n") == 1


def test_a_log_of_a_later_version_is_said_to_be_one(tmp_path: Path) -> None:
    line = '{"task": "a", "worker": "n:0", "start": 1, "end": 2, "bytes_in": 0, "joules": 3}'
    (tmp_path / "log").write_text(f"{line}\n")
    done = show(tmp_path / "log")
    assert done.returncode == 2
    assert "has no field 'joules'; a later FlowOS may have written it" in done.stderr


def test_a_last_line_without_an_end_counts_if_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(GOOD)
    assert [each["task"] for each in json.loads(show(tmp_path / "log", "--json").stdout)] == ["a"]
    (tmp_path / "log").write_text(GOOD[:-5])
    assert show(tmp_path / "log").stdout == f"no task is in {tmp_path}/log\n"
    (tmp_path / "log").write_text("a picture")
    done = show(tmp_path / "log")
    assert (done.returncode, "log:1 is no line of a slice's log" in done.stderr) == (2, True)


GOOD = '{"task": "a", "worker": "n:0", "start": 1, "end": 2, "bytes_in": 0}'


@pytest.mark.parametrize(
    "bad",
    [
        '{"task": 1}',
        GOOD.replace('"end": 2', '"end": 1e999'),
        GOOD.replace('"end": 2', '"end": 0.5'),
        GOOD.replace('"end": 2', '"end": NaN'),
        GOOD.replace('"bytes_in": 0', '"bytes_in": -1'),
        GOOD.replace('"bytes_in": 0', '"bytes_in": 1e3'),
        GOOD.replace('"a"', "null"),
        "[" * 100_000,
        "\0" * 50,
        "null",
        "3" * 5000,
    ],
)
def test_what_is_no_log_is_refused_with_its_line(tmp_path: Path, bad: str) -> None:
    (tmp_path / "log").write_text(f"{bad}\n")
    for more in ([], ["--html", tmp_path / "page"], ["--json"]):
        done = show(tmp_path / "log", *more)
        assert done.returncode == 2
        assert done.stderr.startswith(f"flowos show: {tmp_path}/log:1 is no line of a slice's log")
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "page").exists()


def test_a_large_file_that_is_no_log_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.truncate(1 << 40)  # a hole
    done = show(tmp_path / "log")
    assert (done.returncode, "log:1 is no line" in done.stderr) == (2, True)


@pytest.mark.parametrize("option", ["--trace", "--html"])
def test_what_is_written_is_written_whole_or_said(tmp_path: Path, option: str) -> None:
    done = show("last", option, tmp_path / "out")
    assert done.returncode == 2
    assert f"{option} takes the log of a slice" in done.stderr
    log = tmp_path / "log"
    log.write_text(f"{GOOD}\n")
    (tmp_path / "link").symlink_to(log)
    for own in (log, tmp_path / "link"):
        done = show(log, option, own)
        assert (done.returncode, f"{own} is the log itself" in done.stderr) == (2, True)
        assert log.read_text() == f"{GOOD}\n"
    for nowhere in ("/proc/no/out", "/dev/full", str(tmp_path)):
        done = show(log, option, nowhere)
        assert done.returncode == 2
        assert f"{nowhere} cannot be written: " in done.stderr
        assert len(done.stderr.splitlines()) == 1
    done = show(log, "--html", tmp_path / "out", "--trace", tmp_path / "out")
    assert (done.returncode, "name the same file" in done.stderr) == (2, True)
    line = [str(FLOWOS), "show", str(log), option, "/dev/stdout"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert (done.returncode, len(done.stdout) > 100) == (0, True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "log"]
