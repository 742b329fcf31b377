"""What Slurm's partitions and nodes do not have, in one line before a job waits."""

import math
from dataclasses import replace

import pytest

from flowos.drivers.allocators.slurm import SlurmPartition, partition_of, refusal, too_few
from flowos.model import Ask, NodeInfo, Pool

POOL = Pool(name="c", kind="slurm", nodes=4)
ANY = SlurmPartition(
    name="", nodes=1, max_nodes=math.inf, max_seconds=math.inf, is_up=True, is_default=False
)
MAIN = replace(ANY, name="main", nodes=3, max_seconds=3600.0, is_default=True)
LONG = replace(ANY, name="long", nodes=8, max_nodes=2, accounts=("physics", "bio"), qos=("high",))
CLUSTER = (MAIN, LONG, replace(ANY, name="off", is_up=False))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"partition": "mian"}, "no partition 'mian'; did you mean 'main'?"),
        ({"partition": "gpu"}, "no partition 'gpu'; there are main, long, off"),
        ({"partition": "off"}, "partition 'off' is not up"),
        (
            {"partition": "long", "account": "art"},
            "partition 'long' is not for account 'art'; it is for physics, bio",
        ),
        (
            {"partition": "long", "account": "bio", "qos": "hihg"},
            "partition 'long' is not for qos 'hihg'; did you mean 'high'?",
        ),
    ],
)
def test_a_partition_that_cannot_be_used(given: dict[str, str], complaint: str) -> None:
    pool = Pool(name="c", kind="slurm", **given)  # type: ignore[arg-type]
    assert complaint in str(partition_of(pool, CLUSTER))


def test_a_pool_without_a_partition_has_the_clusters_default_one() -> None:
    assert partition_of(POOL, CLUSTER) == CLUSTER[0]
    assert partition_of(POOL, CLUSTER[1:]) == (
        "the cluster has no default partition; name one of long, off"
    )
    for account in ("", "bio"):
        long = Pool(name="c", kind="slurm", partition="long", account=account)
        assert partition_of(long, CLUSTER) == CLUSTER[1]


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (Ask(nodes=3, seconds=3600.0), ""),
        (Ask(nodes=4), "4 nodes asked for, partition 'main' gives 3"),
        (Ask(seconds=3601.0), "3601 s asked for, partition 'main' gives 3600 s at most"),
    ],
)
def test_what_slurm_would_let_wait_for_ever_is_refused(ask: Ask, complaint: str) -> None:
    assert refusal(POOL, ask, CLUSTER[0]) == complaint


def test_nodes_held_for_as_long_as_the_pool_allows_are_refused_alike() -> None:
    day = replace(POOL, max_seconds=86400.0)
    says = "86400 s asked for, partition 'main' gives 3600 s at most"
    assert refusal(day, Ask(), CLUSTER[0]) == says
    assert refusal(day, Ask(seconds=60.0), CLUSTER[0]) == ""


def test_a_partition_gives_no_more_nodes_than_a_job_may_have() -> None:
    assert refusal(POOL, Ask(nodes=2), CLUSTER[1]) == ""
    assert refusal(POOL, Ask(nodes=3), CLUSTER[1]) == "3 nodes asked for, partition 'long' gives 2"


def test_nodes_have_to_have_what_is_asked_of_each_and_what_the_pool_says() -> None:
    nodes = (("n1", 0), ("g1", 2))
    plain, gpu = (NodeInfo(name=n, cores=4, gpus=g, devices=(("gpu", g),)) for n, g in nodes)
    assert too_few(POOL, Ask(nodes=2), (plain, gpu)) == ""
    assert too_few(POOL, Ask(gpus=2), (plain, gpu)) == ""
    assert too_few(POOL, Ask(nodes=2, gpus=1), (plain, gpu)) == (
        "2 nodes asked for, 1 of 2 have what each has to have: 1 GPU asked for, n1 has 0"
    )
    assert too_few(POOL, Ask(devices={"nic": 1}), (plain, gpu)) == (
        "no node has a device 'nic'; they have none"
    )
    pool = Pool(name="c", kind="slurm", gres="gpu:a100:3", cores=4)
    assert too_few(pool, Ask(gpus=1), (gpu,)).endswith("3 GPUs asked for, g1 has 2")
    assert too_few(pool, Ask(cores=5), (gpu,)).endswith("5 cores asked for, g1 has 4")
    assert too_few(POOL, Ask(), ()) == "1 node asked for, 0 of 0 have what each has to have"
