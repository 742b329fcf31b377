"""What `flowos pools` prints of a pool, without asking any."""

from flowos.cli.pools import _lines
from flowos.model import Pool
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
