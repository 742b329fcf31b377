"""What tasks in worker processes print, and what they find around them."""
# ruff: noqa: T201

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import flowos as fo

from .shared import one


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
