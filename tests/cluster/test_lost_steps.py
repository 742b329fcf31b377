"""What is lost on a node of Slurm is named with the step that it was."""

import os
import re
import signal

import pytest

from .test_box import read_of
from .test_faults import Driver, driver  # noqa: F401
from .test_lost_nodes import SLURM, running, slurm


def step_of(pid: int) -> str:
    """As Slurm has set it for the process."""
    said = dict(
        word.split("=", 1) for word in read_of(pid, "environ").decode().split("\0") if "=" in word
    )
    return f"{said['SLURM_JOB_ID']}.{said['SLURM_STEP_ID']}"


@pytest.mark.parametrize("driver", [("no", 6)], indirect=True)
def test_a_worker_that_is_killed_is_named_with_its_step(driver: Driver) -> None:  # noqa: F811
    pid = driver.workers()["n1"]
    step = step_of(pid)
    os.kill(pid, signal.SIGKILL)
    driver.let_go()
    said = driver.line("failed WorkerLost")
    assert "its worker process on node n1 is gone: it was killed by signal 9" in said
    assert said.endswith(f"; step {step}")


@pytest.mark.parametrize("driver", [("no", 6)], indirect=True)
def test_a_node_that_is_lost_is_named_with_the_step_there(driver: Driver) -> None:  # noqa: F811
    driver.workers()
    steps = {step_of(pid) for pid in driver.workers_on("n1")}
    driver.box.act("stop", "n1")
    driver.line("event lost")
    driver.let_go()
    said = driver.line("failed WorkerLost")
    assert "node n1 is lost" in said
    named = re.search(r"; steps? (.*)$", said)
    assert named
    assert set(named[1].split(", ")) <= steps


def test_a_command_whose_node_is_lost_is_named_with_its_step() -> None:
    with running(slurm(), SLURM, "run", "once") as program:
        (lost,) = program.began(1)
        steps = {step_of(pid) for pid in program.runs_on(lost)}
        assert len(steps) == 1
        program.box.act("stop", lost)
        *_, failed, _ = program.end()
        assert f"node {lost} is lost" in failed
        assert failed.endswith(f"; step {steps.pop()}")
