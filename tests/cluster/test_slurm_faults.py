"""What fails of a job while a flow runs in it: one clear line, and no held node.

All but the last one share a cluster, which each leaves as it was.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from .box import Box
from .test_box import processes_of, read_of
from .test_faults import ALL, Driver, awaited, is_free

URGENT = """\
PartitionName=urgent Nodes=n1,n2 PriorityTier=10 State=UP
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
"""


@pytest.fixture(scope="module", autouse=True)
def limited(namespaces: None) -> Iterator[Driver]:  # noqa: ARG001
    """Its job is over its time limit, which Slurm looks at twice a minute: others run meanwhile."""
    with Box(apart=True) as box:
        driver = Driver(box, "yes", 6)
        job = driver.line("held").split()[1]
        driver.workers()
        box.run("scontrol", "update", f"JobId={job}", "EndTime=now+1")
        yield driver
        driver.process.kill()
        driver.process.wait()


@pytest.fixture(scope="module")
def box(namespaces: None) -> Iterator[Box]:  # noqa: ARG001
    with Box(apart=True, conf=URGENT) as box:
        yield box


@pytest.fixture
def driver(box: Box) -> Iterator[Driver]:
    (box.folder / "content/go").unlink(missing_ok=True)
    driver = Driver(box, "yes", 6)
    try:
        driver.workers()
        yield driver
    finally:
        with suppress(ValueError):  # it has ended
            os.kill(driver.pid(), signal.SIGKILL)
        driver.process.kill()
        driver.process.wait()
    states = ("sinfo", "--noheader", "--Node", "--partition=main", "--format=%T")
    awaited(lambda: box.ask("squeue", "--noheader") == "", "its job is held")
    awaited(lambda: box.ask(*states).split() == ["idle", "idle"], "its nodes are held")
    awaited(lambda: not killed(box, "", 0), "a step runs on")


def killed(box: Box, start: str, signum: int = signal.SIGKILL, node: str = "") -> int:
    """How many processes of steps begin so, or sruns, or daemons of steps; they get the signal."""
    found = 0
    for pid in processes_of(box.folder):
        words = read_of(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")
        is_step = words.startswith(("srun ", "slurmstepd")) or "flowos-keeper" in words
        if is_step and words.startswith(start) and node.encode() in read_of(pid, "environ"):
            with suppress(ProcessLookupError):  # what another one leaves is ended with it
                os.kill(pid, signum)
                found += 1
    return found


def preempt(box: Box) -> int:
    return 1 - box.run("srun", "--partition=urgent", "--nodes=1", "true").returncode


def unplug(seconds: float) -> Callable[[Box], int]:
    def for_a_while(box: Box) -> int:
        box.act("unplug", "n1")
        time.sleep(seconds)  # that is the fault
        box.act("plug", "n1")
        return 1

    return for_a_while


def of_stepd(step: str) -> Callable[[Box], int]:
    def kill(box: Box) -> int:
        return killed(box, f"slurmstepd: [{step}]", node="/n1/slurm.conf")

    return kill


FAULTS: dict[str, tuple[Callable[[Box], int], str, str]] = {
    "a keeper is killed": (
        lambda box: killed(box, "/usr/bin/bash", node="SLURMD_NODENAME=n1"),
        "results",
        ALL,
    ),
    "a link is down for a moment": (unplug(0), "results", ALL),
    "a link is down for 5 s": (unplug(5), "results", ALL),
    "srun is killed": (
        lambda box: killed(box, "srun --no-kill"),
        "failed",
        r"^failed SliceFreed item \d: the slice has ended: its srun was killed",
    ),
    "Slurm needs the nodes": (preempt, "event ended", "its job was cancelled due to preemption"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_happens_to_a_job_is_one_line_and_no_node_stays_held(
    driver: Driver, fault: str
) -> None:
    happens, line, says = FAULTS[fault]
    assert happens(driver.box)
    if says == ALL:
        driver.let_go()
    assert re.search(says, driver.line(line))
    driver.line("freed")


def test_a_job_whose_daemon_on_a_node_is_killed_ends(driver: Driver) -> None:
    job = driver.box.ask("squeue", "--noheader", "--format=%A")
    assert of_stepd(f"{job}.0")(driver.box)
    failed = driver.line("failed")  # Slurm takes KillWait to end the job
    assert re.search(r"the slice has ended|on node n\d is gone: it was killed by signal 15", failed)
    driver.line("freed")


def test_a_step_whose_daemon_is_killed_is_told_with_its_node(driver: Driver) -> None:
    job = driver.box.ask("squeue", "--noheader", "--format=%A")
    lost = {*driver.workers_on("n1")}
    assert of_stepd(f"{job}.1")(driver.box) + of_stepd(f"{job}.2")(driver.box) == 1
    awaited(lambda: not lost & {*driver.workers_on("n1")}, "its worker runs on")
    driver.let_go()  # an error comes in the place of its item
    assert "its worker process on node n1 is gone" in driver.line("failed WorkerLost")
    driver.line("freed")


def test_a_second_program_waits_until_the_first_one_has_freed_the_nodes(driver: Driver) -> None:
    second = Driver(driver.box, "yes", 2)
    assert second.line("event waiting").split()[2:] in (["Resources"], ["Priority"])
    driver.let_go()
    assert driver.line("results") == ALL
    assert second.line("results") == "results 0 1"
    second.line("freed")
    assert second.process.wait() == 0


def test_a_job_over_its_time_limit_is_said_to_be(limited: Driver) -> None:
    assert "its job was cancelled due to time limit" in limited.line("event ended")
    limited.line("freed")
    awaited(lambda: is_free(limited.box), "its job is held")
