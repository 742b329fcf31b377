"""Processes of languages that end, and are ended."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from tests.integration.engines.languages import (
    BODIES,
    VECTOR,
    X,
    failure,
    in_r,
    needs_julia,
    opened,
)
from tests.waiting import comes

of_each = pytest.mark.parametrize("language", ["r", pytest.param("julia", marks=needs_julia)])
ENDS = {
    "r": """
if (x[1] == 1) quit(status = 3)
if (x[1] == 2) tools::pskill(Sys.getpid(), 9)
x
""",
    "julia": """
x[1] == 1 && exit(3)
x[1] == 2 && ccall(:kill, Cint, (Cint, Cint), getpid(), 9)
x
""",
}
NAMES = {"r": "R", "julia": "Julia"}
PID = {"r": "Sys.getpid()", "julia": "getpid()"}
LOOPS = {
    "r": "writeLines(as.character(Sys.getpid()), '{}/pid'); repeat {{}}",
    "julia": 'write("{}/pid", "$(getpid())\\n")\nwhile true end',
}


@of_each
def test_an_end_fails_its_task_and_the_next_has_another(language: str) -> None:
    said = f"task 'f' raised BodyError: {NAMES[language]} ended: it"
    with opened(BODIES[language](ENDS[language])) as held:
        for first, how in ((1.0, "exited with code 3"), (2.0, "was killed by signal 9 (SIGKILL)")):
            with pytest.raises(fo.TaskFailed) as caught:
                held.run(np.array([first]))
            assert f"{said} {how}" in str(caught.value)
            assert held.run(X)[0].tolist() == X.tolist()


def test_a_killed_process_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    text = f"writeLines(tempdir(), '{tmp_path}/folder'); tools::pskill(Sys.getpid(), 9)"
    assert "killed by signal 9" in failure(in_r(text), X)
    folder = Path((tmp_path / "folder").read_text().strip())
    assert folder.name.startswith("Rtmp")
    assert not folder.exists()


def test_what_r_prints_of_a_signal_is_about_the_persons_code(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert "signal 11 (SIGSEGV)" in failure(in_r("tools::pskill(Sys.getpid(), 11)"), X)
    said = capfd.readouterr().err
    assert "tools::pskill(Sys.getpid(), 11)" in said
    assert len(said) < 2000
    assert "readBin" not in said


@of_each
def test_one_that_ended_while_it_was_idle_is_replaced(language: str) -> None:
    pid = BODIES[language](PID[language], VECTOR, fo.int64)
    with opened(pid) as held:
        first = held.run(X)[0]
        assert held.run(X)[0] == first
        os.kill(first, signal.SIGKILL)
        assert comes(lambda: not Path(f"/proc/{first}").exists())
        assert held.run(X)[0] != first


def loops(language: str, folder: Path, limit_seconds: float | None = None) -> Any:
    """Without an end; it writes the number of its process."""
    return BODIES[language](LOOPS[language].format(folder), limit_seconds=limit_seconds)


def pid_in(folder: Path) -> int:
    file = folder / "pid"
    assert comes(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def gone(pid: int) -> bool:
    return comes(lambda: not Path(f"/proc/{pid}").exists())


@of_each
def test_what_has_no_end_is_ended_by_its_limit(language: str, tmp_path: Path) -> None:
    said = failure(loops(language, tmp_path, 1.5), X, workers="process")
    assert said.startswith("task 'f' ran over its limit of 1.5 s")
    if (tmp_path / "pid").exists():  # a busy machine may not have come so far
        assert gone(pid_in(tmp_path))


@of_each
def test_ctrl_c_ends_the_call_and_its_process(language: str, tmp_path: Path) -> None:
    def interrupt() -> None:
        pid_in(tmp_path)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with opened(loops(language, tmp_path)) as held, pytest.raises(KeyboardInterrupt):
        held.run(X)
    thread.join()
    assert gone(pid_in(tmp_path))


PROGRAM = """
import sys
from pathlib import Path
from tests.integration.engines.languages import X, opened
from tests.integration.engines.test_language_ends import loops
with opened(loops(sys.argv[1], Path(sys.argv[2])), workers="process") as held:
    held.run(X)
"""


@of_each
def test_no_process_outlives_a_killed_program(language: str, tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, language, str(tmp_path)])
    pid = pid_in(tmp_path)
    program.kill()
    program.wait()
    assert gone(pid)


@of_each
def test_a_slice_that_is_freed_ends_it_in_the_middle(language: str, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from tests.integration.engines.languages import X, opened
from tests.integration.engines.test_language_ends import loops, pid_in
held = opened(loops(sys.argv[1], Path(sys.argv[2])), workers="thread")
held.submit(X)
pid = pid_in(Path(sys.argv[2]))
held.free()
assert not Path(f"/proc/{pid}").exists()
"""
    words = [sys.executable, "-c", code, language, str(tmp_path)]
    subprocess.run(words, check=True, timeout=300)
