"""Which machines nodes are, by what Slurm shows of them."""

from pathlib import Path

from flowos.drivers.allocators.slurm_deployed import read_deployed
from flowos.drivers.allocators.slurm_nodes import read_addresses
from flowos.model import DeployedNode, Deployment

REPORTED = Path(__file__).parents[2] / "golden/slurm/reported/nodes_of_a_cloud.txt"
NODES = """\
NodeName=c1 Arch=x86_64 NodeAddr=10.0.0.1 BootTime=2026-11-23T16:00:01 InstanceId=i-0abc
NodeName=c2 NodeAddr=10.0.0.2 BootTime=None InstanceId=(null)
a line of another kind
NodeName=n3 BootTime=2026-11-23T15:00:00
"""


def test_instance_boot_and_switch_of_nodes_are_read_where_slurm_knows_them() -> None:
    assert read_deployed(NODES, {"c1": "s1", "c2": "s1"}) == (
        DeployedNode(name="c1", instance="i-0abc", booted="2026-11-23T16:00:01", switch="s1"),
        DeployedNode(name="c2", switch="s1"),
        DeployedNode(name="n3", booted="2026-11-23T15:00:00"),
    )
    assert read_deployed("", {}) == ()


def test_nodes_of_a_cloud_are_read_as_others_have_shown_them() -> None:
    text = REPORTED.read_text()
    up, off = read_deployed(text, {})
    assert up == DeployedNode(
        name="queue-dy-large-2", instance="i-0eb8d995282000011", booted="2025-02-10T21:22:00"
    )
    assert off == DeployedNode(name="az4-z1d-0")
    assert read_addresses(text)["az4-z1d-0"] == ("10.0.99.184", 6818)


def test_a_node_says_which_machine_it_is() -> None:
    first, second, third = read_deployed(NODES, {"c1": "s1", "c2": "s1"})
    assert str(first) == "c1 (i-0abc, switch s1)"
    assert str(second) == "c2 (switch s1)"
    assert str(third) == "n3 (booted 2026-11-23T15:00:00)"
    deployment = Deployment(of="d", number=1, pool="p", nodes=(DeployedNode(name="x"),))
    assert [str(node) for node in deployment.nodes] == ["x"]
