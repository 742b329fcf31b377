"""What `flowos pools` prints of a pool, and `flowos cloud sizes` of a size, without asking any."""

from flowos.cli.cloud import _size_line
from flowos.cli.pools import _lines
from flowos.model import Pool, PoolUser, Promise, VmSize
from flowos.operations.pools import PoolState


def line(pool: Pool) -> str:
    (first,) = _lines(PoolState(pool=pool))
    return first


def test_what_a_pool_of_slurm_has_is_shown_in_the_order_of_its_settings() -> None:
    pool = Pool(
        name="gpu",
        kind="slurm",
        nodes=4,
        cores=16,
        partition="a100",
        account="physics",
        qos="high",
        constraint="nvme",
        gres="gpu:2",
        shared="/home/me",
        scratch="/local",
    )
    assert line(pool) == (
        "gpu  slurm  4 nodes  16 cores each  partition a100  account physics  qos high"
        "  constraint nvme  gres gpu:2  shared /home/me  scratch /local"
    )


def test_queue_and_parallel_environment_of_a_pool_of_grid_engine_are_shown() -> None:
    pool = Pool(name="grid", kind="sge", nodes=2, queue="all.q", pe="whole", scratch="/local")
    assert line(pool) == "grid  sge  2 nodes  queue all.q  pe whole  scratch /local"


def test_a_pool_of_no_cluster_has_none_of_it() -> None:
    assert line(Pool(name="local")) == "local  local  1 node"


def test_what_is_one_is_in_the_singular() -> None:
    found = PoolState(
        pool=Pool(name="p", kind="slurm", nodes=1),
        size=VmSize(name="own", vcpus=1, gpus=1),
        users=(PoolUser(name="eve", jobs=1, nodes=1, cores=1, waiting=1),),
    )
    _, size, user = _lines(found)
    assert size == "  size own  1 vCPU  1 GPU"
    assert user.startswith("  user eve  holds 1 node, 1 core  1 waiting job")
    assert "jobs" not in user


def test_memory_is_shown_in_the_unit_in_which_it_is_read_best() -> None:
    found = PoolState(
        pool=Pool(name="p", kind="slurm", nodes=1),
        size=VmSize(name="own", memory_bytes=3 << 39),
        promises=(("n1", (Promise(what="bytes of memory", promised=3 << 39, seen=3 << 28),)),),
    )
    _, size, promise = _lines(found)
    assert size == "  size own  1.5 TiB"
    assert promise == "  n1: memory: 1.5 TiB promised, 768 MiB seen"


def test_a_size_of_the_catalogue_has_its_memory_unrounded_and_nothing_where_it_is_not_known() -> (
    None
):
    small = VmSize(name="t", cloud="ec2", vcpus=1, memory_bytes=3840 << 20)
    assert _size_line(small).split() == ["ec2", "t", "1", "vCPU", "3.75", "GiB"]
    assert _size_line(VmSize(name="t", cloud="ec2")) == "ec2   t"
