"""Processes of R that end, and are ended."""

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
from tests.integration.engines.test_r import VECTOR, X, body, failure, opened
from tests.waiting import comes

ENDS = """
if (x[1] == 1) quit(status = 3)
if (x[1] == 2) tools::pskill(Sys.getpid(), 9)
x
"""


def test_an_end_of_r_fails_its_task_and_the_next_has_another() -> None:
    said = "task 'f' raised BodyError: R ended: it"
    with opened(body(ENDS)) as held:
        for first, how in ((1.0, "exited with code 3"), (2.0, "was killed by signal 9 (SIGKILL)")):
            with pytest.raises(fo.TaskFailed) as caught:
                held.run(np.array([first]))
            assert f"{said} {how}" in str(caught.value)
            assert held.run(X)[0].tolist() == X.tolist()


def test_a_killed_process_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    text = f"writeLines(tempdir(), '{tmp_path}/folder'); tools::pskill(Sys.getpid(), 9)"
    assert "killed by signal 9" in failure(body(text), X)
    folder = Path((tmp_path / "folder").read_text().strip())
    assert folder.name.startswith("Rtmp")
    assert not folder.exists()


def test_one_that_ended_while_it_was_idle_is_replaced() -> None:
    pid = body("Sys.getpid()", VECTOR, fo.int64)
    with opened(pid) as held:
        first = held.run(X)[0]
        assert held.run(X)[0] == first
        os.kill(first, signal.SIGKILL)
        assert comes(lambda: not Path(f"/proc/{first}").exists())
        assert held.run(X)[0] != first


def loops(folder: Path) -> Any:
    """Without an end; it writes the number of its process."""
    text = f"writeLines(as.character(Sys.getpid()), '{folder}/pid'); repeat {{}}"
    return body(text, limit_seconds=None)


def pid_in(folder: Path) -> int:
    file = folder / "pid"
    assert comes(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def gone(pid: int) -> bool:
    return comes(lambda: not Path(f"/proc/{pid}").exists())


def test_what_has_no_end_is_ended_by_its_limit(tmp_path: Path) -> None:
    text = f"writeLines(as.character(Sys.getpid()), '{tmp_path}/pid'); repeat {{}}"
    said = failure(body(text, limit_seconds=1.5), X, workers="process")
    assert said.startswith("task 'f' ran over its limit of 1.5 s")
    if (tmp_path / "pid").exists():  # a busy machine may not have come so far
        assert gone(pid_in(tmp_path))


def test_ctrl_c_ends_the_call_and_its_process(tmp_path: Path) -> None:
    def interrupt() -> None:
        pid_in(tmp_path)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with opened(loops(tmp_path)) as held, pytest.raises(KeyboardInterrupt):
        held.run(X)
    thread.join()
    assert gone(pid_in(tmp_path))


PROGRAM = """
import sys
import numpy as np
from pathlib import Path
from tests.integration.engines.test_r import X, opened
from tests.integration.engines.test_r_ends import loops
with opened(loops(Path(sys.argv[1])), workers="process") as held:
    held.run(X)
"""


def test_no_process_outlives_a_killed_program(tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)])
    pid = pid_in(tmp_path)
    program.kill()
    program.wait()
    assert gone(pid)


def test_a_slice_that_is_freed_ends_r_in_the_middle(tmp_path: Path) -> None:
    code = """
import sys
import flowos as fo
from pathlib import Path
from tests.integration.engines.test_r import X, opened
from tests.integration.engines.test_r_ends import gone, loops, pid_in
held = opened(loops(Path(sys.argv[1])), workers="thread")
held.submit(X)
pid = pid_in(Path(sys.argv[1]))
held.free()
assert not Path(f"/proc/{pid}").exists()
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=300)
