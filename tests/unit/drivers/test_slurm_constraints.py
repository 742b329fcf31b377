"""What a constraint or the types of generic resources ask for that no node has, in one line."""

import pytest

from flowos.drivers.allocators.slurm_constraints import (
    available_words,
    gres_words,
    names_type,
    read_available,
    read_types,
    refusal_of_constraint,
    refusal_of_gres,
    refusal_of_types,
)
from flowos.model import Ask, NodeInfo, Pool

KNOWN = read_available("n1|icelake,nvme\nn2|broadwell,nvme\nn3|rare\nn4|(null)\nhello\n")
HAVE = "; its nodes have broadwell, icelake, nvme"
NEITHER = "no node of partition 'two' meets it"


def refused(constraint: str, nodes: int = 1, of: tuple[str, ...] = ("n1", "n2")) -> str:
    """As Slurm 22.05 refuses these, or takes them."""
    pool = Pool(name="c", kind="slurm", constraint=constraint)
    complaint = refusal_of_constraint(pool, Ask(nodes=nodes), "two", of, KNOWN)
    return complaint.removeprefix(f"constraint={constraint!r}: ")


@pytest.mark.parametrize(
    ("constraint", "nodes"),
    [
        ("", 2),
        ("nvme", 2),
        ("icelake&nvme", 1),
        ("icelake,nvme", 1),
        ("icelake|rare", 1),
        ("icelake|broadwell", 2),
        ("[icelake|broadwell]", 1),
        ("[rare|icelake]", 1),
        ("(icelake|broadwell)&nvme", 2),
        ("icelake&nvme|rare", 1),
        ("nvme&", 2),
        ("nvme*2", 2),
        ("(icelake)*1", 2),
        ("[icelake*1&broadwell*1]", 2),
    ],
)
def test_what_slurm_takes_is_not_refused(constraint: str, nodes: int) -> None:
    assert refused(constraint, nodes) == ""


@pytest.mark.parametrize(
    ("constraint", "complaint"),
    [
        ("icelak", f"no node of partition 'two' has it{HAVE}; did you mean 'icelake'?"),
        ("sky", f"no node of partition 'two' has it{HAVE}"),
        ("rare", f"no node of partition 'two' has it{HAVE}"),
        ("icelake|nvm", f"no node of partition 'two' has 'nvm'{HAVE}; did you mean 'nvme'?"),
        ("[icelake|no]*2", f"no node of partition 'two' has 'no'{HAVE}"),
        ("icelake&broadwell", f"{NEITHER}{HAVE}"),
        ("(icelake|nvme)&rare", f"{NEITHER}{HAVE}"),
        ("[icelake", "its brackets do not match"),
        ("icelake)&(nvme|rare)", "its brackets do not match"),
        ("rare*1&nvme*1", f"no nodes of partition 'two' meet it{HAVE}"),
    ],
)
def test_what_no_node_has_is_said_with_what_there_is_and_the_nearest(
    constraint: str, complaint: str
) -> None:
    assert refused(constraint) == complaint


def test_fewer_nodes_than_asked_for_are_counted() -> None:
    few = "2 nodes asked for, 1 of 2 of partition 'two' meets it"
    assert refused("icelake", 2) == few + HAVE
    assert refused("[icelake&nvme]", 2) == few + HAVE
    assert refused("nvme", 3) == (f"3 nodes asked for, 2 of 2 of partition 'two' meet it{HAVE}")


def test_nodes_without_features_and_those_that_sinfo_does_not_name() -> None:
    assert refused("nvme", of=("n4", "n9")) == (
        "no node of partition 'two' has it; its nodes have no features"
    )


def test_a_generic_resource_that_no_node_has_is_said_with_the_nearest() -> None:
    devices = (("gpu", 2), ("nic", 1))
    nodes = (NodeInfo(name="n1", cores=4, devices=devices), NodeInfo(name="n2", cores=4))

    def said(gres: str, of: tuple[NodeInfo, ...] = nodes) -> str:
        return refusal_of_gres(Pool(name="c", kind="slurm", gres=gres), "main", of)

    assert said("") == said("gpu:a100:9,nic:1") == said("gpu", nodes[1:]) == ""
    no = "gres='gpx:1': no node of partition 'main' has 'gpx'"
    assert said("gpx:1") == f"{no}; its nodes have gpu, nic; did you mean 'gpu'?"
    assert said("gpx:1", nodes[1:]) == f"{no}; its nodes have none"


def typed(
    gres: str, nodes: int = 1, said: str = "n1|gpu:a100:4(S:0-1),nic:1\nn2|gpu:a100\n"
) -> str:
    pool = Pool(name="c", kind="slurm", gres=gres)
    return refusal_of_types(pool, Ask(nodes=nodes), "main", read_types(said))


def test_types_that_no_node_has_are_said_with_the_nearest() -> None:
    assert read_types("n[1-2]|gpu:a100:4(S:0-1),nic:1,gpu:a100:2\n\nx\n") == {
        "n1": {"gpu:a100": 6},
        "n2": {"gpu:a100": 6},
    }
    assert typed("gpu:a100:4,nic:1") == typed("gpu:a100", 2) == typed("gpu:2") == ""
    no = "no node of partition 'main' has"
    assert typed("gpu:a10:1") == (
        f"gres='gpu:a10:1': {no} 'gpu:a10'; its nodes have gpu:a100; did you mean 'gpu:a100'?"
    )
    assert typed("fpga:x", said="n1|(null)") == (
        f"gres='fpga:x': {no} 'fpga:x'; its nodes have no types"
    )
    assert typed("gpu:a100:2", 2) == (
        "gres='gpu:a100:2': 2 nodes asked for, 1 of 2 of partition 'main' has 2 gpu:a100; its "
        "nodes have gpu:a100"
    )
    assert " 0 of 2 of partition 'main' have 5 gpu:a100" in typed("gpu:a100:5")


def test_what_is_not_consumed_is_there() -> None:
    said = "n1|gpu:a100:2(S:0),bandwidth:lustre:no_consume:4G(S:0),memory:no_consume:32G"
    assert typed("bandwidth:lustre:4", said=said) == typed("bandwidth:lustre", said=said) == ""
    assert typed("fpga:x", said=said).endswith("; its nodes have bandwidth:lustre, gpu:a100")


def test_slurm_is_asked_about_types_only_where_the_pool_names_one() -> None:
    for gres, names in (("", False), ("gpu:2,nic", False), ("gpu:a100:2,nic", True)):
        assert names_type(Pool(name="c", kind="slurm", gres=gres)) == names
    assert gres_words("p")[-2:] == ("--partition=p", "--format=%N|%G")
    assert "--partition" not in " ".join(gres_words(""))
    assert available_words()[:2] == ("sinfo", "--all")
