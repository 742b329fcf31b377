"""The Grid Engine that tests are given is there at once, is theirs alone, and leaves nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from . import grid as module
from .box import BoxError
from .grid import Grid
from .test_box import left_of, processes_of

ON_ALL = ("qrsh", "-noshell", "-now", "no", "-pe", "nodes", "8", "sh", "-c", "cat $PE_HOSTFILE")


def test_it_starts_three_times_runs_jobs_on_all_nodes_and_leaves_nothing() -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    for _ in range(3):
        with Grid() as grid:
            assert len(processes_of(grid.folder)) >= 3, "sge_qmaster, two sge_execd"
            ran = grid.run(*ON_ALL)
            nodes = sorted(line.split()[0] for line in ran.stdout.splitlines())
            assert (nodes, ran.stderr) == (["n1", "n2"], "")
        assert left_of(grid.folder) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_a_job_submitted_waits_for_its_end_and_has_its_exit_code(grid: Grid) -> None:
    done = grid.run("qsub", "-sync", "y", "-b", "y", "-o", "/dev/null", "-e", "/dev/null", "false")
    assert done.returncode == 1
    assert "exited with exit code 1." in done.stderr


def test_its_commands_are_to_be_had_from_out_here(grid: Grid) -> None:
    found = subprocess.run(
        (*ON_ALL[:-1], "hostname; exit 3"),
        env={**os.environ, **grid.outside},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (found.stdout.strip() in grid.nodes, found.returncode) == (True, 3)


def test_it_ends_with_a_test_that_fails() -> None:
    grid = Grid()
    with pytest.raises(ZeroDivisionError), grid:
        _ = 1 / 0
    assert left_of(grid.folder) == []


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_tests_that_are_killed(signum: signal.Signals) -> None:
    words = (sys.executable, "-m", "tests.cluster.grid")
    pipe, at = subprocess.PIPE, Path(__file__).parents[2]
    with subprocess.Popen(words, cwd=at, stdin=pipe, stdout=pipe, text=True) as tests:
        assert tests.stdout
        folder = Path(tests.stdout.readline().strip().partition("=")[2]).parent
        assert folder.name.startswith("flowos-sge-")
        tests.send_signal(signum)
        tests.communicate()
    assert left_of(folder) == []


def test_a_node_is_lost_and_comes_back() -> None:
    with Grid() as grid:
        grid.act("stop", "n2")
        assert grid.ask(*ON_ALL[:4], "-q", "main.q@n1", "hostname") == "n1"
        grid.act("start", "n2")
        assert grid.run(*ON_ALL).stdout.count("main.q@") == 2


def test_one_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOOTSTRAP", module.BOOTSTRAP.replace("libspoolc", "nothing"))
    monkeypatch.setenv("FLOWOS_BOX_SECONDS", "0.5")
    grid = Grid()
    with pytest.raises(BoxError, match="sge_qmaster does not answer"), grid:
        pass
    assert left_of(grid.folder) == []
