"""`flowos cloud reconcile` on a real Slurm: what went wrong before is mended, and nothing else."""

import json
import os
import signal

from tests.waiting import comes

from .box import Box
from .cloud_nodes import (
    NO_MORE,
    box_pid,
    down,
    flowos,
    log,
    machines,
    reason,
    states,
    waiting,
)


def test_a_resume_that_never_comes_is_mended_by_reconcile() -> None:
    with Box(nodes=1, apart=True, cloud=1, resume_seconds=3) as box:
        (box.folder / "resume").write_text("#!/bin/sh\nexit 1\n")
        box.run("srun", "--partition=cloud", "true")
        assert comes(lambda: reason(box) == "ResumeTimeout reached")
        assert flowos(box, "reconcile").stdout == ""
        assert reason(box) == "ResumeTimeout reached"
        box.set_cloud("retry_seconds = 0.1")
        would = "would: c1: given back"
        assert comes(lambda: flowos(box, "reconcile", "--dry-run").stdout.startswith(would))
        assert flowos(box, "reconcile").stdout == "c1: given back to Slurm: ResumeTimeout reached\n"
        box.set_cloud()
        assert comes(lambda: down(box) == {"c1"})


def test_reconcile_ends_what_no_node_owns_and_only_when_it_is_old_enough(cloud: Box) -> None:
    cloud.set_cloud('answers = ["end: UnauthorizedOperation: no"]')
    cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true")
    assert comes(lambda: ("keep", "c1") in log(cloud))
    works = ("sbatch", "--parsable", "--partition=cloud", "--nodelist=c2", "--output=/dev/null")
    job = cloud.ask(*works, "--wrap=sleep 1000")
    assert comes(lambda: machines(cloud) == ["c1", "c2"])
    assert flowos(cloud, "reconcile").stdout == ""
    tried = flowos(cloud, "reconcile", "--min-age=0", "--dry-run").stdout
    assert tried.startswith("would: c1: machine box-c1-")
    cloud.set_cloud()
    assert flowos(cloud, "reconcile", "c2", "--min-age=0").stdout == ""
    assert machines(cloud) == ["c1", "c2"]
    done = flowos(cloud, "reconcile", "--min-age=0", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    plain = json.loads(done.stdout)
    assert (plain["what"], plain["node"]) == ("end", "c1")
    assert plain["why"] == "its node is powered down"
    assert machines(cloud) == ["c2"]
    cloud.run("scancel", job)


def test_a_machine_of_a_node_that_no_table_has_any_more_is_an_orphan(cloud: Box) -> None:
    cloud.set_cloud('answers = ["end: UnauthorizedOperation: no"]')
    cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true")
    assert comes(lambda: ("keep", "c1") in log(cloud))
    cloud.set_cloud(nodes="c2")  # in one write: Slurm may suspend c1 again at any time
    assert comes(lambda: "c1" in down(cloud))
    assert "c1" in machines(cloud)
    assert "c1: machine box-c1-" in flowos(cloud, "reconcile", "--min-age=0").stdout
    assert "c1" not in machines(cloud)
    cloud.set_cloud(nodes="c9")
    settings = cloud.folder / "flowos.toml"
    done = flowos(cloud, "resume", "c2", "--dry-run")
    assert done.stdout == f"would: c2: no machine: no [cloud.NAME] of {settings} has c2\n"


def test_what_a_killed_process_waited_for_is_done_by_reconcile(cloud: Box) -> None:
    cloud.set_cloud("retry_seconds = 20", f'answers = ["create: {NO_MORE}"]')
    cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true")
    (process,) = waiting(cloud)
    os.kill(int(process.name), signal.SIGKILL)
    assert comes(lambda: flowos(cloud, "reconcile").stdout.startswith("c1: given back to Slurm: "))
    assert comes(lambda: "c1" in down(cloud))


def test_a_node_whose_machine_is_gone_is_given_back_and_its_job_runs_anew(cloud: Box) -> None:
    works = ("sbatch", "--parsable", "--partition=cloud", "--nodelist=c2", "--output=/dev/null")
    job = cloud.ask(*works, "--wrap=sleep 1000")
    assert comes(lambda: states(cloud)["c2"][0] in ("mixed+cloud", "allocated+cloud"))
    (record,) = (cloud.folder / "cloud").glob("*-c2-*.json")
    os.killpg(box_pid(cloud, json.loads(record.read_text())["pid"]), signal.SIGKILL)
    assert flowos(cloud, "reconcile", "c1").stdout == ""
    assert comes(lambda: flowos(cloud, "reconcile").stdout.endswith("its machine is gone\n"))
    assert comes(lambda: "c2" in down(cloud))
    assert "JobState=PENDING" in (shown := cloud.ask("scontrol", "show", "job", job))
    assert "Restarts=1" in shown
    cloud.run("scancel", job)
