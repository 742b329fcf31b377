"""Nodes that are apart differ in what machines differ in, and are lost as machines are."""

import sys
from pathlib import Path

import pytest

from tests.waiting import comes

from .box import Box
from .test_box import left_of

CONNECTS = "import socket, sys; socket.create_connection((sys.argv[1], 6818), 1).close()"


def on(box: Box, node: str, script: str) -> str:
    """What a shell on a node prints."""
    done = box.run("srun", "--quiet", f"--nodelist={node}", "sh", "-c", script)
    assert done.stderr == "", done.stderr
    return done.stdout.strip()


def answers(box: Box, address: str) -> bool:
    return box.run(sys.executable, "-I", "-S", "-c", CONNECTS, address).returncode == 0


def is_idle(box: Box, node: str) -> bool:
    return comes(lambda: box.ask("sinfo", "-hN", "-n", node, "-o", "%T") == "idle")


def test_they_start_three_times_and_leave_nothing() -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    for _ in range(3):
        with Box(apart=True) as box:
            ran = box.run("srun", "-N2", "hostname")
            assert (sorted(ran.stdout.split()), ran.stderr) == (["n1", "n2"], "")
        assert left_of(box.folder) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_a_folder_of_one_node_is_not_seen_on_another(machines: Box, folder: str) -> None:
    name = f"{folder}/flowos-of-n1"
    assert on(machines, "n1", f"echo here > {name}; cat {name}") == "here"
    assert on(machines, "n2", f"ls {name} 2>/dev/null || echo none") == "none"
    assert not Path(name).exists()
    assert on(machines, "n1", f"rm {name}") == ""


def test_processes_of_one_node_are_no_processes_of_another(machines: Box) -> None:
    spaces = [on(machines, node, "readlink /proc/self/ns/pid") for node in machines.nodes]
    assert len({*spaces, str(Path("/proc/self/ns/pid").readlink())}) == 3


def test_all_see_the_shared_folder_but_neither_pipes_nor_locks_cross_it(machines: Box) -> None:
    shared = machines.shared
    assert on(machines, "n1", f"echo same > {shared}/x; mkfifo {shared}/pipe") == ""
    assert on(machines, "n2", f"cat {shared}/x") == "same"
    assert machines.run("cat", f"{shared}/x").stdout == "same\n"
    holds = f"exec 8<>{shared}/pipe 9>{shared}/lock; flock 9; touch {shared}/held; sleep 1000"
    machines.run("sbatch", "--nodelist=n1", "--output=/dev/null", f"--wrap={holds}")
    awaits = f"while [ ! -e {shared}/held ]; do sleep 0.01; done"
    tries = f"{awaits}; flock -n {shared}/lock echo mine; timeout 1 sh -c 'echo >{shared}/pipe'"
    assert on(machines, "n2", f"{tries}; echo $?").splitlines() == ["mine", "124"]
    assert on(machines, "n1", f"flock -n {shared}/lock echo mine; echo $?") == "1"
    machines.run("scancel", "--user", machines.ask("id", "-u"))
    assert all(is_idle(machines, node) for node in machines.nodes)


def test_a_job_has_no_rights_of_the_box(machines: Box) -> None:
    found = on(machines, "n1", "grep CapAmb /proc/self/status")
    assert int(found.split()[1], 16) == 0


def test_a_node_is_lost_and_comes_back() -> None:
    with Box(apart=True) as box:
        assert answers(box, "10.77.0.2")
        box.act("stop", "n2")
        assert not answers(box, "10.77.0.2")
        assert on(box, "n1", "hostname") == "n1"
        box.act("start", "n2")
        assert is_idle(box, "n2")
        assert on(box, "n2", "hostname") == "n2"


def test_a_link_is_down_and_up_again(machines: Box) -> None:
    machines.act("unplug", "n2")
    assert not answers(machines, "10.77.0.2")
    machines.act("plug", "n2")
    assert answers(machines, "10.77.0.2")
    assert on(machines, "n2", "hostname") == "n2"
