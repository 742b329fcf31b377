"""Command tasks: words, files, what is captured, what fails, what is made only once."""

import copy
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from pickle import loads
from typing import Any

import pytest
from cloudpickle import dumps

import flowos as fo
from flowos.engine.flow import _commands
from flowos.model import Exited, Killed, flow_input


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "flowos" / "made"


def given(**types: object) -> list[Any]:
    return [flow_input(name, type_) for name, type_ in types.items()]


def shell(script: str, *words: object, **options: Any) -> fo.Task:
    return fo.command(["/bin/sh", "-c", script, "sh", *words], **options)


def test_values_become_words_and_what_is_printed_an_output() -> None:
    echo = fo.command(
        ["printf", "%s|", fo.In("text"), fo.In("n"), fo.In("x"), ("--n=", fo.In("n")), 7],
        inputs={"text": str, "n": int, "x": float},
    )
    with fo.slice(echo(*given(text=str, n=int, x=float))) as s:
        assert s.run("a b $HOME", -3, 0.5) == ["a b $HOME|-3|0.5|--n=-3|7|"]
        assert s.run("", 10**12, 1e-7) == ["|1000000000000|1e-07|--n=1000000000000|7|"]


def test_constants_become_words_too() -> None:
    echo = fo.command(["echo", fo.In("n")], inputs={"n": int})
    with fo.slice([echo(3), echo(4)]) as s:
        assert s.run() == ["3\n", "4\n"]


def test_files_go_in_and_out_as_paths(tmp_path: Path) -> None:
    upper = fo.command(["cp", fo.In("source"), fo.Out("copy.txt")])
    (tmp_path / "in").write_text("content")
    source = flow_input("source", fo.File)
    with fo.slice(upper(upper(source))) as s:
        (made,) = s.run(tmp_path / "in")
        assert isinstance(made, Path)
        assert made.is_absolute()
        assert (made.name, made.read_text()) == ("copy.txt", "content")
        (again,) = s.run(tmp_path / "in")
        assert again != made
    assert not made.exists()
    assert not again.exists()  # type: ignore[attr-defined]


def test_files_are_kept_in_the_folder_asked_for(tmp_path: Path) -> None:
    touch = fo.command(["touch", fo.Out("made")])
    with fo.slice(touch(), folder=tmp_path / "results") as s:
        (made,) = s.run()
    assert isinstance(made, Path)
    assert made.exists()
    assert made.is_relative_to(tmp_path / "results")


def test_each_command_runs_in_a_fresh_folder_that_goes_when_it_made_no_file() -> None:
    listing = shell("ls; pwd; touch left-over")
    with fo.slice([listing(), listing()]) as s:
        folders = [str(out).strip() for out in s.run()]
        assert len(set(folders)) == 2
        assert not any(Path(folder).exists() for folder in folders)


def test_exit_code_streams_and_outcome_are_captured() -> None:
    talk = shell(
        "printf 'out\\377'; printf err >&2; exit 3",
        stdout=("raw", fo.bytes_),
        stderr="err",
        exit_code="code",
        outcome="outcome",
    )
    with fo.slice(talk()) as s:
        raw, err, code, outcome = s.run()
    assert (raw, err, code) == (b"out\xff", "err", 3)
    assert isinstance(outcome, fo.Outcome)
    assert outcome.end == Exited(3)
    assert outcome.usage.wall_seconds > 0


def test_text_that_is_no_utf_8_is_refused() -> None:
    for options, name, of in (({}, "stdout", "stdout"), ({"stderr": "err"}, "err", "stderr")):
        talk = shell("printf 'ab\\351'; printf 'ab\\351' >&2", **options)
        words = f"output '{name}': byte 3 of what it printed is no UTF-8: take bytes, as with {of}="
        with fo.slice(talk()) as s, pytest.raises(fo.ValueRefused, match=words):
            s.run()


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            shell("echo one >&2; echo two >&2; exit 3"),
            "task 'sh': the command exited with 3; it said",
        ),
        (shell("kill -9 $$"), "task 'sh': the command was killed by signal 9"),
        (shell("kill -9 $$", exit_code="code"), "was killed by signal 9"),
        (shell("kill -9 $$", exit_code="code", outcome="end"), "was killed by signal 9"),
        (fo.command(["/no/such/program"]), "task 'program': the command could not be started: "),
        (shell("sleep 60", limit_seconds=0.2), "the command ran over its time limit (signal 15)"),
        (fo.command(["a\0b"], name="nul"), "task 'nul': "),
    ],
)
def test_a_command_that_fails_is_told_in_one_line(task: fo.Task, words: str) -> None:
    with fo.slice(task()) as s, pytest.raises(fo.TaskFailed, match=r"^[^\n]*$") as caught:
        s.run()
    assert words in str(caught.value)


def test_the_last_words_of_a_failed_command_are_told() -> None:
    talk = shell("for i in 1 2 3 4 5 6 7; do echo $i >&2; done; exit 1")
    words = r"it said: 3 / 4 / 5 / 6 / 7; command: "
    with fo.slice(talk()) as s, pytest.raises(fo.TaskFailed, match=words):
        s.run()


def test_a_failed_command_names_its_words_and_its_inputs() -> None:
    fails = fo.command(
        ["sh", "-c", 'echo no luck >&2; exit "$0"', fo.In("code"), fo.Out("made")],
        inputs={"code": fo.int64, "late": fo.float64},
        name="f",
    )
    flow = fails(flow_input("code", fo.int64), 2.5)
    with fo.slice(flow) as s, pytest.raises(fo.TaskFailed) as caught:
        s.run(3)
    assert str(caught.value) == (
        "task 'f': the command exited with 3; it said: no luck; "
        "command: sh -c 'echo no luck >&2; exit \"$0\"' 3 made; "
        "given code = 3 (int), late = 2.5 (float)"
    )


def test_of_many_inputs_a_failed_command_names_the_first() -> None:
    names = [f"part {number}" for number in range(1, 100)]
    fails = fo.command(["false"], inputs=dict.fromkeys(names, fo.int64), name="f")
    with fo.slice(fails(*range(1, 100))) as s, pytest.raises(fo.TaskFailed) as caught:
        s.run()
    given = str(caught.value).partition("; given ")[2]
    assert given.startswith("part 1 = 1 (int), part 2 = 2 (int), ")
    assert given.endswith(" ...")
    assert len(given) == 304


def test_a_captured_output_above_64_mebibytes_comes_whole() -> None:
    size = 70 << 20
    script = f"echo first; head -c {size} /dev/zero; echo last"
    kind: Any = fo.bytes_
    prints = fo.command(["sh", "-c", script], stdout=("printed", kind))
    with fo.slice(prints()) as s:
        (printed,) = s.run()
    assert isinstance(printed, bytes)
    assert len(printed) == size + 11
    assert printed.strip(b"\0") == b"first\n" + bytes(size) + b"last\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr", "outcome"])
def test_more_captured_output_than_can_be_kept_ends_the_command(
    stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_commands, "MAX_CAPTURED_BYTES", 100_000)
    where = ">&2" if stream == "stderr" else ""
    captures: dict[str, Any] = {stream: "out"}
    endless = fo.command(["sh", "-c", f"exec yes {where}"], name="f", **captures)
    told = "stdout" if stream == "outcome" else stream
    with fo.slice(endless()) as s, pytest.raises(fo.TaskFailed) as caught:
        s.run()
    assert f"task 'f': the command printed more than 100000 bytes to {told}" in str(caught.value)
    assert "have it write a file" in str(caught.value)


def test_an_outcome_is_given_whatever_the_end() -> None:
    task = shell("sleep 60", outcome="outcome", limit_seconds=0.2)
    with fo.slice(task()) as s:
        (outcome,) = s.run()
    assert isinstance(outcome, fo.Outcome)
    assert outcome.end == Killed(15, "limit")


def test_a_file_that_the_command_did_not_write_is_missed_by_name() -> None:
    task = fo.command(["true", fo.Out("answer")])
    with (
        fo.slice(task()) as s,
        pytest.raises(fo.ValueRefused, match="task 'true', output 'answer': the command wrote no"),
    ):
        s.run()


def test_an_input_file_that_is_missing_is_refused_before_anything_runs(tmp_path: Path) -> None:
    task = fo.command(["cat", fo.In("file")])
    words = "run: input 'file': expected a file, nothing is at /"
    with (
        fo.slice(task(flow_input("file", fo.File))) as s,
        pytest.raises(fo.ValueRefused, match=words),
    ):
        s.run(tmp_path / "none")


def test_a_file_written_into_the_flow_has_to_be_there_for_the_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flow = fo.flow_output(fo.command(["cat", fo.In("file")])("here"))
    with pytest.raises(fo.ValueRefused, match="task 'cat', input 'file': expected a file, nothing"):
        fo.slice(flow)
    Path("here").write_text("text")
    with fo.slice(flow) as s:
        monkeypatch.chdir("/")
        assert s.run() == ["text"]


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda f: loads(dumps(f))])
def test_a_copied_flow_checks_its_files_as_the_original_does(
    made: Callable[[Any], Any], tmp_path: Path
) -> None:
    @fo.task
    def same(path: fo.File) -> fo.File:
        return path

    there = tmp_path / "there"
    there.touch()
    with fo.slice(made(fo.flow_output(same(flow_input("path", fo.File))))) as s:
        with pytest.raises(fo.ValueRefused, match="input 'path': expected a file, nothing is at"):
            s.run(str(tmp_path / "missing"))
        assert s.run(str(there)) == [there]
    with pytest.raises(fo.ValueRefused, match="input 'path': expected a file, nothing is at"):
        fo.slice(made(fo.flow_output(same(str(tmp_path / "missing")))))


def test_variables_are_set_beside_ours_or_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "1")
    both = fo.command(["/usr/bin/env"], variables={"MINE": "2"})
    alone = fo.command(["/usr/bin/env"], variables={"MINE": "2"}, inherit=False)
    with fo.slice([both(), alone()]) as s:
        first, second = (str(out).splitlines() for out in s.run())
    assert {"OURS=1", "MINE=2"} <= set(first)
    assert "MINE=2" in second
    assert "OURS=1" not in second


def test_commands_and_python_tasks_mix_in_worker_processes() -> None:
    @fo.task
    def double(text: str) -> str:
        return text.strip() * 2

    echo = fo.command(["echo", fo.In("x")], inputs={"x": str})
    with fo.slice(double(echo(double(flow_input("x", str)))), workers="process") as s:
        assert s.run("ab") == ["abababab"]


def counted(tmp_path: Path, key: str) -> fo.Task:
    """Writes its file after a while, and a line for each time that it is run."""
    script = f'echo run >> "{tmp_path}/runs"; sleep 0.2; echo made > "$1"'
    return shell(script, fo.Out("made"), once=key)


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


def test_what_is_made_once_is_taken_from_the_cache(tmp_path: Path, cache: Path) -> None:
    task = counted(tmp_path, "key-1")
    for _ in range(2):
        with fo.slice(task()) as s:
            assert s.run() == [cache / "key-1" / "made"]
            assert s.run() == [cache / "key-1" / "made"]
    assert runs(tmp_path) == 1
    assert [p.name for p in cache.iterdir()] == ["key-1"]
    with fo.slice(counted(tmp_path, "key-2")()) as s:
        s.run()
    assert runs(tmp_path) == 2


def test_a_key_that_is_no_file_name_is_told_apart_from_others(tmp_path: Path, cache: Path) -> None:
    for key in ("a/b", "a_b", "../a b", "ä" * 300):
        with fo.slice(counted(tmp_path, key)()) as s:
            s.run()
    assert runs(tmp_path) == 4
    assert len(list(cache.iterdir())) == 4


def test_two_makers_at_once_do_no_harm(tmp_path: Path, cache: Path) -> None:
    task = counted(tmp_path, "key")
    made: list[list[object]] = []

    def make() -> None:
        with fo.slice(task()) as s:
            made.append(s.run())

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == [[cache / "key" / "made"]] * 4
    assert (cache / "key" / "made").read_text() == "made\n"
    assert [p.name for p in cache.iterdir()] == ["key"]


def test_what_failed_is_not_kept_in_the_cache(cache: Path) -> None:
    task = shell('echo part > "$1"; exit 1', fo.Out("made"), once="key")
    with fo.slice(task()) as s:
        for _ in range(2):
            with pytest.raises(fo.TaskFailed):
                s.run()
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_made_fails_the_task_and_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no")
    task = shell('echo made > "$1"', fo.Out("made"), once="key")
    told = pytest.raises(fo.TaskFailed, match=r"/proc/no/flowos/made .* in XDG_CACHE_HOME")
    with fo.slice(task()) as s, told:
        s.run()


def test_a_failing_command_ends_the_other_commands_of_its_run() -> None:
    seconds = f"300.{os.getpid()}"  # as no other process of this machine
    sleep = fo.command(["sleep", seconds])
    fail = shell("sleep 0.3; exit 1")
    with fo.slice([sleep(), fail()], cores=2) as s:
        began = time.monotonic()
        with pytest.raises(fo.TaskFailed, match="exited with 1"):
            s.run()
        while any(seconds in words for words in command_lines()):
            assert time.monotonic() - began < 60
            time.sleep(0.02)


def command_lines() -> Iterator[str]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_text()
        except OSError:
            continue


@pytest.mark.parametrize(
    ("mpi", "mpirun"), [("openmpi", "mpirun.openmpi"), ("mpich", "mpirun.mpich")]
)
def test_a_gang_is_started_as_ranks(mpi: str, mpirun: str) -> None:
    path = shutil.which(mpirun)
    if path is None or len(os.sched_getaffinity(0)) < 2:
        pytest.skip(f"{mpirun} or a second core is not here")
    script = "echo $OMPI_COMM_WORLD_RANK$PMI_RANK"
    ranks = fo.gang(shell(script, needs=fo.Needs(ranks=2)), mpi=mpi, mpirun=path)
    with fo.slice(ranks()) as s:
        (printed,) = s.run()
    assert sorted(str(printed).split()) == ["0", "1"]
