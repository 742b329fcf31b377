"""The Slurm that tests are given is there at once, is theirs alone, and leaves nothing."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import comes

from .box import Box, BoxError


def processes_of(folder: Path) -> set[int]:
    """Those to which this Slurm's configuration is the one that counts, and zombies are none."""
    return {pid for pid in pids() if str(folder).encode() in read_of(pid, "environ")}


def pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def read_of(pid: int, name: str) -> bytes:
    """Of a process that may end meanwhile."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def left_of(folder: Path) -> list[str]:
    """What is still there, after having waited for it to go."""
    comes(lambda: not processes_of(folder) and not folder.exists())
    return [*map(str, processes_of(folder)), *([str(folder)] * folder.exists())]


def ports_of(box: Box) -> list[int]:
    conf = (box.folder / "slurm.conf").read_text()
    return [int(word.partition("=")[2]) for word in conf.split() if "Port=" in word]


def test_it_starts_ten_times_runs_steps_on_all_nodes_and_leaves_nothing() -> None:
    for _ in range(10):
        with Box() as box:
            assert len(processes_of(box.folder)) >= 4, "munged, slurmctld, two slurmd"
            ran = box.run("srun", "-N2", "printenv", "SLURMD_NODENAME")
            assert (sorted(ran.stdout.split()), ran.stderr) == (["n1", "n2"], "")
            ports = ports_of(box)
            assert len(ports) == 3
        assert left_of(box.folder) == []
        for port in ports:
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind(("127.0.0.1", port))
                free.listen()


def test_what_a_job_started_ends_with_it() -> None:
    with Box() as box:
        box.run("srun", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & true")
        box.run("sbatch", "--output=/dev/null", "--wrap=sleep 1000")
        await_state(box, "RUNNING")
        assert b"sleep" in b"".join(read_of(pid, "cmdline") for pid in processes_of(box.folder))
    assert left_of(box.folder) == []


def await_state(box: Box, state: str) -> None:
    assert comes(lambda: box.ask("squeue", "--noheader", "--format=%T") == state)


def test_it_ends_with_a_test_that_fails() -> None:
    box = Box()
    with pytest.raises(ZeroDivisionError), box:
        _ = 1 / 0
    assert left_of(box.folder) == []


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_tests_that_are_killed(signum: signal.Signals) -> None:
    words = (sys.executable, "-m", "tests.cluster.box")
    pipe, here = subprocess.PIPE, Path(__file__).parents[2]
    with subprocess.Popen(
        words, cwd=here, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as tests:
        assert tests.stdout
        folder = Path(tests.stdout.readline().strip().partition("=")[2]).parent
        assert folder.name.startswith("flowos-slurm-")
        tests.send_signal(signum)
        tests.communicate()
    assert left_of(folder) == []


def test_two_know_nothing_of_each_other(box: Box) -> None:
    with Box(nodes=1) as other:
        assert other.ask("sinfo", "-hN", "-o", "%N") == "n1"
        assert box.ask("sinfo", "-hN", "-o", "%N").split() == ["n1", "n2"]
        assert not {*ports_of(box)} & {*ports_of(other)}


def test_one_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWOS_BOX_SECONDS", "0.5")
    box = Box(conf="NoSuchKey=1\n")
    with pytest.raises(BoxError, match="slurmctld does not answer"), box:
        pass
    assert left_of(box.folder) == []
