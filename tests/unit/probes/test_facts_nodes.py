"""Memory nodes and sockets, from constructed files of the kernel."""

import pytest

from flowos.model import NumaNode
from flowos.probes._facts_nodes import nodes_of
from flowos.probes._facts_topology import cpus_of
from flowos.probes._facts_tree import Tree

NODE = "/sys/devices/system/node/node"
PHI = "cpu family\t: 6\nmodel\t\t: 87"
GIB = 1 << 30


def tree(nodes: dict[int, str], **more: str) -> Tree:
    """Nodes with these CPUs and 1 GiB each; `more`: paths below the nodes, `__` for a slash."""
    files = {f"{NODE}{n}/cpulist": cpus for n, cpus in nodes.items()}
    files |= {f"{NODE}{n}/meminfo": f"Node {n} MemTotal: {1 << 20} kB" for n in nodes}
    return Tree(files | {NODE + path.replace("__", "/"): text for path, text in more.items()})


def test_without_nodes_there_is_one_with_all() -> None:
    assert nodes_of(Tree({}), (0, 1), GIB) == (NumaNode(number=0, cpus=(0, 1), memory_bytes=GIB),)


def test_the_only_node_that_is_online_has_what_it_lists_and_no_more() -> None:
    (node,) = nodes_of(tree({1: "2-3"}), (0, 1, 2, 3), 2 * GIB)
    assert node == NumaNode(number=1, cpus=(2, 3), memory_bytes=GIB)


def test_the_only_node_of_all_cpus_has_memory_that_was_added_later_too() -> None:
    (node,) = nodes_of(tree({0: "0-1"}), (0, 1), 2 * GIB)
    assert node.memory_bytes == 2 * GIB


def test_cpus_that_are_offline_belong_to_no_node() -> None:
    assert [n.cpus for n in nodes_of(tree({0: "0-1", 1: "2-3"}), (0, 3), 0)] == [(0,), (3,)]


def test_memory_without_cpus_is_near_the_cpus_that_firmware_names() -> None:
    near = {"4__access0__initiators__node0__cpulist": "0", "4__distance": "10 99 11"}
    nodes = nodes_of(tree({0: "0", 1: "1", 4: ""}, **near), (0, 1), 0)
    assert nodes[2].cpus == (0,)
    near["4__access1__initiators__node1__cpulist"] = "1"
    assert nodes_of(tree({0: "0", 1: "1", 4: ""}, **near), (0, 1), 0)[2].cpus == (1,)


@pytest.mark.parametrize(
    ("distances", "cpus"),
    [("31 21 10", (1,)), ("21 31 10", (0,)), ("21 21 10", ()), ("", ()), ("x 21 10", ())],
)
def test_else_it_is_near_those_at_the_least_distance(distances: str, cpus: tuple[int, ...]) -> None:
    found = nodes_of(tree({0: "0", 1: "1", 2: ""}, **{"2__distance": distances}), (0, 1), 0)
    assert found[2].cpus == cpus


def test_memory_beside_the_only_node_with_cpus_is_near_them() -> None:
    found = nodes_of(tree({0: "0-1", 1: ""}, **{"1__distance": "31 10"}), (0, 1), 0)
    assert found[1].cpus == (0, 1)


@pytest.mark.parametrize(("rate", "kind"), [(199, ""), (200, "HBM")])
def test_memory_of_twice_the_bandwidth_is_hbm(rate: int, kind: str) -> None:
    rates = {
        "0__access1__initiators__read_bandwidth": "100",
        "1__access0__initiators__read_bandwidth": str(rate),
    }
    found = nodes_of(tree({0: "0", 1: ""}, **rates), (0,), 0)
    assert [node.kind for node in found] == ["", kind]


def test_memory_of_unknown_bandwidth_makes_no_other_fast_and_of_unknown_size_has_none() -> None:
    files = {f"{NODE}{n}/cpulist": str(n) for n in (0, 1)}
    files |= {f"{NODE}0/access0/initiators/read_bandwidth": "100"}
    found = nodes_of(Tree(files), (0, 1), GIB)
    assert [(node.kind, node.memory_bytes) for node in found] == [("", 0), ("", 0)]


@pytest.mark.parametrize(
    ("cpuinfo", "kind"), [(PHI, "HBM"), (PHI.replace("87", "133"), "HBM"), (PHI + "9", "")]
)
def test_nodes_without_cpus_of_a_xeon_phi_are_hbm(cpuinfo: str, kind: str) -> None:
    files = {**tree({0: "0", 1: ""}).files, "/proc/cpuinfo": cpuinfo}
    assert [node.kind for node in nodes_of(Tree(files), (0,), 0)] == ["", kind]


def test_memory_of_gpus_and_persistent_memory_are_told_apart() -> None:
    files = dict(tree({0: "0", 1: "", 252: ""}, **{"252__distance": "31 31 10"}).files)
    files["/proc/driver/nvidia/gpus/0004:04:00.0/numa_status"] = "Node:      252\nStatus: online"
    files["/proc/driver/nvidia/gpus/0004:05:00.0/numa_status"] = "Status: offline"
    files["/sys/devices/LNXSYSTM:00/x/ndbus0/region0/dax0.0/target_node"] = "1"
    found = nodes_of(Tree(files), (0,), 0)
    assert [(node.number, node.kind) for node in found] == [(0, ""), (1, "NVM"), (252, "GPU")]
    assert found[2].cpus == ()


def test_sockets_without_a_number_are_told_apart_by_who_shares_them() -> None:
    at = "/sys/devices/system/cpu/cpu"
    files = {f"{at}{n}/topology/physical_package_id": "-1" for n in range(4)}
    assert {cpu.socket for cpu in cpus_of(Tree(files), (0, 1, 2, 3))} == {0}
    shared = ("0-1", "0-1", "2-3", "2-3")
    files |= {f"{at}{n}/topology/core_siblings_list": s for n, s in enumerate(shared)}
    assert [cpu.socket for cpu in cpus_of(Tree(files), (0, 1, 2, 3))] == [0, 0, 1, 1]
    assert [cpu.socket for cpu in cpus_of(Tree(files), (1, 2, 3))] == [0, 1, 1]
