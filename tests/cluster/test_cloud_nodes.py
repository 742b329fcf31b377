"""Nodes that a real Slurm powers up and down by `flowos cloud`, and what goes wrong with them."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS, comes

from .box import Box
from .cloud_nodes import (
    NO_MORE,
    NODES,
    admin_comment,
    blocked_signals,
    down,
    flowos,
    log,
    machines,
    out,
    reason,
    states,
    waiting,
)
from .test_box import left_of

POOL = """\
[pools.cloud]
kind = "slurm"
partition = "cloud"
nodes = 2
shared = "{shared}"
"""
EC2 = """\
[cloud.ec2]
region = "us-east-1"
image = "ami-03cf127a"
size = "t3.micro"
endpoint = "{url}"
credentials = "{folder}/account"
user_data = "{folder}/boot"
log = "{folder}/cloud.log"
"""


def test_a_job_powers_nodes_up_and_those_that_are_idle_are_ended(cloud: Box) -> None:
    ran = cloud.run("srun", "--partition=cloud", "-N2", "printenv", "SLURMD_NODENAME")
    assert (sorted(ran.stdout.split()), ran.stderr) == (["c1", "c2"], "")
    assert machines(cloud) == ["c1", "c2"]
    (blocked,) = {blocked_signals(cloud, node) for node in NODES}
    assert not blocked & 1 << signal.SIGTERM - 1
    assert comes(lambda: down(cloud) == {*NODES})
    assert comes(lambda: machines(cloud) == [])
    assert sorted(log(cloud)) == [("create", "c1"), ("create", "c2"), ("end", "c1"), ("end", "c2")]


def test_a_quota_is_said_where_users_look_and_the_node_comes_back(cloud: Box) -> None:
    cloud.set_cloud("retry_seconds = 20", f'answers = ["create: {NO_MORE}"]')
    ran = cloud.run("srun", "--partition=cloud", "--job-name=many", "--nodelist=c1", "true")
    assert ran.returncode != 0
    assert "Node failure on c1" in ran.stderr
    assert "drain" in states(cloud)["c1"][0]
    assert reason(cloud).startswith(f"FlowOS: box: quota: {NO_MORE}; again at 20")
    assert admin_comment(cloud, "many") == f"FlowOS: node c1: box: quota: {NO_MORE}"
    cloud.set_cloud()
    assert comes(lambda: "c1" in down(cloud))
    assert cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true").returncode == 0
    assert log(cloud)[:3] == [("refuse", "c1"), ("back", "c1"), ("create", "c1")]


def test_a_node_that_a_person_gave_back_is_left_alone(cloud: Box) -> None:
    cloud.set_cloud("retry_seconds = 3600", f'answers = ["create: {NO_MORE}"]')
    cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true")
    assert out(cloud, "c1")
    assert len(waiting(cloud)) == 1
    cloud.run("scontrol", "update", "NodeName=c1", "State=POWER_DOWN_FORCE")
    assert comes(lambda: "c1" in down(cloud))
    assert comes(lambda: not waiting(cloud))
    assert ("back", "c1") not in log(cloud)


def test_a_cloud_that_hangs_is_given_up_and_slurm_does_not_wait(cloud: Box) -> None:
    cloud.set_cloud("retry_seconds = 2", "answer_seconds = 1.5", 'answers = ["create: hang"]')
    with subprocess.Popen(
        (*cloud.enter, "srun", "--quiet", "--partition=cloud", "--nodelist=c1", "true"),
        env={**os.environ, **cloud.variables},
        stderr=subprocess.PIPE,
        text=True,
    ) as waits:
        assert comes(lambda: "powering_up" in states(cloud)["c1"][0])
        assert cloud.run("srun", "--partition=main", "true").returncode == 0
        waits.communicate()
    assert "box: no answer within" in (cloud.folder / "cloud.log").read_text()
    cloud.set_cloud()
    assert comes(lambda: "c1" in down(cloud))


def test_a_mistake_in_the_settings_is_said_in_slurm(cloud: Box) -> None:
    cloud.set_cloud('drivr = "ec2"')
    cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true")
    assert comes(lambda: "cloud.box.drivr: no such key; did you mean 'driver'?" in reason(cloud))
    done = flowos(cloud, "resume", "c1", "--dry-run")
    assert "cloud.box.drivr: no such key" in done.stdout


def test_a_reason_stays_when_slurm_gives_up_too() -> None:
    with Box(nodes=1, apart=True, cloud=1, resume_seconds=15) as box:
        box.set_cloud("retry_seconds = 3600", f'answers = ["create: {NO_MORE}"]')
        box.run("srun", "--partition=cloud", "true")
        assert comes(lambda: states(box)["c1"][0].startswith("down") and NO_MORE in reason(box))
        box.set_cloud()
        box.run("scontrol", "update", "NodeName=c1", "State=POWER_DOWN_FORCE")
        assert comes(lambda: down(box) == {"c1"})
        assert box.run("srun", "--partition=cloud", "true").returncode == 0


def test_a_machine_that_could_not_be_ended_gets_no_second(cloud: Box) -> None:
    cloud.set_cloud("retry_seconds = 2", 'answers = ["end: UnauthorizedOperation: no"]')
    cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true")
    assert comes(lambda: ("keep", "c1") in log(cloud))
    assert comes(lambda: "c1" in down(cloud))
    (before,) = (cloud.folder / "cloud").glob("*-c1-*.json")
    assert cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true").returncode != 0
    assert f"machine {before.stem} of before runs on: credentials: Unauthorized" in reason(cloud)
    assert machines(cloud) == ["c1"]
    cloud.set_cloud()
    assert comes(lambda: "c1" in down(cloud))
    assert cloud.run("srun", "--partition=cloud", "--nodelist=c1", "true").returncode == 0
    assert machines(cloud) == ["c1"]
    (after,) = (cloud.folder / "cloud").glob("*-c1-*.json")
    assert after != before


def test_a_machine_that_comes_after_its_node_was_powered_down_is_ended(cloud: Box) -> None:
    cloud.set_cloud('answers = ["create: wait 3"]', boot="exec sleep 1000\n")
    job = cloud.ask("sbatch", "--parsable", "--partition=cloud", "--output=/dev/null", "--wrap=:")
    assert comes(lambda: "powering_up" in states(cloud)["c1"][0])
    cloud.run("scancel", job)
    cloud.run("scontrol", "update", "NodeName=c1", "State=POWER_DOWN_FORCE")
    assert comes(lambda: ("create", "c1") in log(cloud))
    assert comes(lambda: ("end", "c1") in log(cloud)[log(cloud).index(("create", "c1")) :])
    assert machines(cloud) == []


MEETS = """
import os, sys
import flowos as fo
from tests.cluster.tasks import meets
os.environ["FLOWOS_CONFIG"], folder = sys.argv[1:]
flow = fo.flow_output(meets(fo.flow_input("x", fo.int64), fo.flow_input("folder", fo.str_)))
try:
    with fo.slice(flow, pool="cloud", nodes=2, workers="process") as s:
        print(*(found for (found,) in s.map([(1, folder), (2, folder)])), sep="\\n")
except fo.SliceRefused as error:
    print(error)
"""


def test_a_slice_powers_its_nodes_up_and_a_quota_is_its_refusal(cloud: Box) -> None:
    (cloud.folder / "content/meets").mkdir()  # the shared folder
    settings = cloud.folder / "pools.toml"
    settings.write_text(POOL.format(shared=cloud.shared))
    path = f"PYTHONPATH={Path(__file__).parents[2]}"
    words = ("env", path, sys.executable, "-c", MEETS, str(settings), str(cloud.shared / "meets"))
    ran = cloud.run(*words)
    assert ran.stderr == ""
    items, nodes = zip(*(line.split(" on ") for line in ran.stdout.splitlines()), strict=True)
    assert (items, sorted(nodes)) == (("1", "2"), ["c1", "c2"])
    assert comes(lambda: down(cloud) == {*NODES})
    cloud.set_cloud("retry_seconds = 2", f'answers = ["create: {NO_MORE}"]')
    refused = cloud.run(*words).stdout
    assert re.match(f"pool cloud: node c[12]: box: quota: {NO_MORE}", refused), refused
    cloud.set_cloud()


@pytest.fixture
def ec2() -> Iterator[str]:
    """URL of moto's EC2."""
    server = Path(__file__).parents[1] / "contract/clouds/ec2_server.py"
    pipe = subprocess.PIPE
    with subprocess.Popen((sys.executable, server), stdin=pipe, stdout=pipe, text=True) as there:
        assert there.stdout
        yield there.stdout.readline().strip()
        there.communicate()


def test_machines_of_ec2_are_made_and_ended_as_slurm_wants(ec2: str) -> None:
    with Box(nodes=1, cloud=1, resume_seconds=600) as box:  # as none of them ever starts a slurmd
        account = box.folder / "account"
        account.touch(0o600)
        account.write_text('key = "k"\nsecret = "s"\n')
        (box.folder / "flowos.toml").write_text(EC2.format(folder=box.folder, url=ec2))
        box.run("sbatch", "--partition=cloud", "--output=/dev/null", "--wrap=:")
        said = box.folder / "cloud.log"
        assert comes(lambda: said.exists() and log(box) == [("create", "c1")], 4 * PATIENCE_SECONDS)
        vm = json.loads(said.read_text())["vm"]
        assert vm.startswith("i-")
        assert comes(lambda: "NodeAddr=10." in box.ask("scontrol", "show", "node", "c1"))
        left = flowos(box, "resume", "c1", "--dry-run").stdout.splitlines()
        assert left == [
            f"would: c1: machine {vm} ended: left from before",
            "would: c1: machine t3.micro us-east-1 made",
        ]
        box.run("scontrol", "update", "NodeName=c1", "State=POWER_DOWN_FORCE")
        assert comes(lambda: log(box) == [("create", "c1"), ("end", "c1")])
        assert flowos(box, "reconcile", "--min-age=0").stdout == ""


def test_nodes_that_are_apart_come_and_go_as_machines_do() -> None:
    with Box(apart=True, cloud=2) as box:
        ran = box.run("srun", "--partition=cloud", "-N2", "sh", "-c", "hostname; ip -o -4 addr")
        assert ran.stderr == ""
        assert {"c1", "c2"} <= set(ran.stdout.split())
        assert {"10.77.0.3/24", "10.77.0.4/24"} <= set(ran.stdout.split())
        words = ("--partition=cloud", "-N2", "--output=/dev/null", "--wrap=sleep 1000")
        job = box.ask("sbatch", "--parsable", *words)
        assert comes(lambda: states(box)["c1"][0] == "mixed+cloud"), states(box)
        box.run("scancel", job)
        assert comes(lambda: down(box) == {"c1", "c2"})
        assert comes(lambda: machines(box) == [])
        assert box.run("srun", "--partition=cloud", "-N2", "true").returncode == 0
    assert left_of(box.folder) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("resume", "c["), "flowos cloud: Slurm names nodes 'c[': brackets or commas"),
        (("suspend", "n1", "--wait"), "flowos.toml has n1"),
        (("reconcile", "--min-age=x"), "--min-age: x: expected seconds, from 0 to below 1e9"),
    ],
)
def test_what_cannot_be_is_one_line(cloud: Box, words: tuple[str, ...], complaint: str) -> None:
    done = flowos(cloud, *words)
    assert done.returncode in (1, 2)
    assert complaint in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
