"""Keepers' lines, addresses, and what matters of a cluster's configuration."""

import pytest

from flowos.drivers.allocators.slurm_nodes import (
    KeptNode,
    SlurmConfig,
    addresses_words,
    config_words,
    read_addresses,
    read_config,
    read_keeper,
    read_lost,
)


def test_a_keepers_line_is_read_and_one_that_is_cut_off_is_not() -> None:
    words = "17 n1 10.0.0.1 0-2,8 1000 0 2 the proof"
    job, node = read_keeper(words.split()) or ("", None)
    assert job == "17"
    assert node == KeptNode(
        name="n1",
        our_address="10.0.0.1",
        cpus=(0, 1, 2, 8),
        memory_bytes=1000 << 10,
        gpus=2,
        proof="the proof",
    )
    granted = read_keeper(["17", "n1", "10.0.0.1", "3", "4096", "2", "0"])
    assert granted
    assert (granted[1].memory_bytes, granted[1].cpus, granted[1].proof) == (2 << 20, (3,), "")
    more = read_keeper(["17", "n1", "10.0.0.1", "3", "4096", "9", "0"])
    assert more
    assert more[1].memory_bytes == 4 << 20
    assert read_keeper(["17", "n1", "10.0.0.1", "3", "4096", "0"]) is None


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
