"""Keepers' lines, addresses, and what matters of a cluster's configuration."""

from dataclasses import replace

import pytest

from flowos.drivers._allocators import KeptNode
from flowos.drivers.allocators.slurm_nodes import (
    SlurmConfig,
    addresses_words,
    config_words,
    granted,
    has_devices,
    job_nodes_words,
    limited,
    read_addresses,
    read_config,
    read_end,
    read_job_devices,
    read_job_memory,
    read_keeper,
    read_lost,
    read_topology,
    refusal_of_topology,
    topology_words,
)
from flowos.model import Ask, NodeInfo


def test_a_keepers_line_is_read_and_one_that_is_cut_off_is_not() -> None:
    words = "17.0 n1 10.0.0.1 0-2,8 0 4000 2:0,GPU-1f top.leaf.n1 the proof"
    step, node = read_keeper(words.split()) or ("", None)
    assert step == "17.0"
    assert node == KeptNode(
        name="n1",
        our_address="10.0.0.1",
        cpus=(0, 1, 2, 8),
        memory_bytes=4000 << 10,
        gpus=("0", "GPU-1f"),
        proof="the proof",
        switch="leaf",
    )
    part = read_keeper(["17.0", "n1", "10.0.0.1", "3-6", "2", "4096", "2:7", "-"])
    assert part
    assert (part[1].memory_bytes, part[1].cpus, part[1].proof) == (4 << 20, (3, 4), "")
    assert part[1].gpus == ("0", "1")
    more = read_keeper(["17.0", "n1", "10.0.0.1", "3", "0", "4096", "0", "n1"])
    assert more
    assert (more[1].switch, part[1].switch) == ("", "")
    assert read_keeper(["17.0", "n1", "10.0.0.1", "3", "0", "4096", "-"]) is None
    odd = read_keeper(["17.0", "n1", "10.0.0.1", "3,4", "?", "?", "?", "-"])
    assert odd
    assert odd[1] == KeptNode(
        name="n1", our_address="10.0.0.1", cpus=(3, 4), memory_bytes=0, gpus=()
    )


def test_of_a_node_that_is_partly_ours_the_part_is_told_with_its_devices() -> None:
    words = "17.0 n1 10.0.0.1 3-6 2 2048 1:3 -"
    step, node = read_keeper(words.split()) or ("", None)
    assert step
    assert node
    whole = NodeInfo(name="n1", cores=4, gpus=4, devices=(("gpu", 4), ("fpga", 1)))
    part = NodeInfo(name="n1", cores=2, gpus=1, memory_bytes=2 << 20)
    assert granted(node, None) == replace(part, devices=(("gpu", 1),))
    assert granted(node, whole) == replace(part, devices=(("gpu", 1), ("fpga", 1)))


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("srun: error: Node failure on n1", ("n1",)),
        ("srun: error: Node failure on n[1-2].", ("n1", "n2")),
        ("srun: error: n1: task 0: Killed", ()),
    ],
)
def test_nodes_that_failed_are_read(line: str, nodes: tuple[str, ...]) -> None:
    assert read_lost(line) == nodes


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("TaskPlugin              = task/cgroup,task/affinity", SlurmConfig()),
        ("TaskPlugin = task/none\nSlurmctldPort = 6817", SlurmConfig(binds=False)),
        ("GresTypes               = (null)", SlurmConfig(devices=False)),
        ("GresTypes = gpu", SlurmConfig(devices=False)),
        ("GresTypes = gpu,fpga", SlurmConfig()),
        ("SelectTypeParameters    = CR_CORE", SlurmConfig(memory=False)),
        ("SelectTypeParameters    = CR_CORE_MEMORY", SlurmConfig()),
        ("SLURM_VERSION           = 19.05.5", SlurmConfig(overlaps=False)),
        ("SLURM_VERSION           = 20.02.7", SlurmConfig(overlaps=False)),
        ("SLURM_VERSION           = 20.11.4", SlurmConfig()),
        ("SLURM_VERSION           = 22.05.8-rc1", SlurmConfig()),
        ("Configuration data as of 2026", SlurmConfig()),
    ],
)
def test_what_matters_of_the_configuration_is_read(text: str, config: SlurmConfig) -> None:
    assert config_words()[0] == "scontrol"
    assert read_config(text) == config


def test_where_slurmds_listen_is_read() -> None:
    assert addresses_words(("n1", "n2"))[-1] == "n1,n2"
    text = "NodeName=n1 Arch=x86_64 NodeAddr=10.77.0.1 Port=7000\nNodeName=n2 Port=0\nOther=1\n"
    assert read_addresses(text) == {"n1": ("10.77.0.1", 7000), "n2": ("n2", 6818)}


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("*** STEP 4.0 ON n1 CANCELLED AT 2026-11-23T13:34:02 ***", "its job was cancelled"),
        (
            "*** STEP 4.0 ON n1 CANCELLED AT 2026-11-23T13:34:02 DUE TO TIME LIMIT ***",
            "its job was cancelled due to time limit",
        ),
        (
            "*** JOB 4 ON n1 CANCELLED AT 2019-11-23T13:34:02 DUE TO NODE FAILURE, SEE SLURMCTLD",
            "its job was cancelled due to node failure",
        ),
        ("*** STEP 1.2 ON n1 FAILED (non-zero exit code or other failure mode) ***", ""),
        ("srun: error: n1: task 0: Terminated", ""),
        (
            "Unable to allocate resources: Job/step already completing or completed",
            "its job was cancelled while it waited",
        ),
        (
            "srun: error: Task launch for StepId=17.0 failed on node n1: Communication connection "
            "failure\nsrun: error: Application launch failed: Communication connection failure\n"
            "srun: Job step aborted\nsrun: error: n2: task 1: Killed\n",
            "nothing can be started on node n1: Communication connection failure",
        ),
    ],
)
def test_why_slurm_ended_a_step_is_read(line: str, end: str) -> None:
    text = f"srun: Job step aborted\nslurmstepd-n1: error: {line}\nsrun: error: n2: Terminated"
    assert read_end(text) == end


def test_nodes_with_devices_besides_gpus_are_seen() -> None:
    assert has_devices("NodeName=n1 Gres=(null) X=1\nNodeName=n2 Gres=gpu:2,fpga:1")
    assert not has_devices("NodeName=n1 Gres=gpu:a100:2(S:0-1) X=1\nNodeName=n2")


def test_which_devices_a_job_has_of_each_node() -> None:
    assert " ".join(job_nodes_words("17")) == "scontrol show job --details --oneliner 17"
    said = (
        "JobId=17 JOB_GRES=fpga:7,gpu:2 Nodes=n[1-2] CPU_IDs=0-3 Mem=0 GRES=fpga(CNT:2) "
        "Nodes=n3 CPU_IDs=0-3 Mem=1 GRES=gpu:a100:2(IDX:0-1),fpga:u280:2(IDX:0,3),fpga:u50:1(CNT:1)"
        " Nodes=n4 CPU_IDs=0-3 Mem=1 GRES= MinCPUsNode=1"
        " Nodes=n5 CPU_IDs=0 Mem=1 GRES_IDX=nic(IDX:2),odd(IDX:N/A),no MinCPUsNode=1"
    )
    assert read_job_devices(said) == {
        "n1": (("fpga", (0, 1)),),
        "n2": (("fpga", (0, 1)),),
        "n3": (("fpga", (0, 3, 2)),),
        "n5": (("nic", (2,)), ("odd", ())),
    }
    assert read_job_devices("slurm_load_jobs error: Invalid job id specified") == {}


def test_how_much_memory_a_job_has_of_each_node() -> None:
    said = (
        "JobId=17 TRES=cpu=9,mem=1800M,node=3 Nodes=n[1-2] CPU_IDs=0-3 Mem=600 GRES= "
        "Nodes=n3 CPU_IDs=0 Mem=0 GRES= MinMemoryNode=600M"
    )
    assert read_job_memory(said) == {"n1": 600 << 20, "n2": 600 << 20}
    _, node = read_keeper(["17.0", "n1", "10.0.0.1", "3-6", "2", "2048", "1:3", "-"]) or ("", None)
    assert node
    sizes = [limited(node, given).memory_bytes for given in (0, 1 << 20, 4 << 20)]
    assert sizes == [2 << 20, 1 << 20, 2 << 20]
    unknown = replace(node, memory_bytes=0)
    assert [limited(unknown, given).memory_bytes for given in (0, 9)] == [0, 9]


TREE = """\
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n3
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=s[1-2]
"""


def test_the_switch_of_each_node_is_the_one_next_to_it() -> None:
    assert " ".join(topology_words()) == "scontrol show topology"
    assert read_topology(TREE) == {"n1": "s1", "n2": "s1", "n3": "s2"}
    assert read_topology("scontrol: topology/none\nLevel=0 Nodes=n1\nSwitchName=s9 Level=0\n") == {}


def test_more_nodes_than_any_switch_has_are_refused() -> None:
    tree, names = read_topology(TREE), ["n1", "n2", "n3", "n4"]
    one = Ask(nodes=3, topology="switch")
    assert refusal_of_topology(Ask(nodes=2, topology="switch"), names, tree) == ""
    assert refusal_of_topology(Ask(nodes=3, topology="pack"), names, tree) == ""
    assert refusal_of_topology(one, names, tree) == (
        "topology='switch': 3 nodes asked for, the largest, s1, has 2"
    )
    assert refusal_of_topology(one, ["n4"], tree).endswith("the largest, none, has 0")
    assert refusal_of_topology(one, names, {}) == (
        "topology='switch': the cluster does not say which switches it has; use 'pack'"
    )
