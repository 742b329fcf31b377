"""Users of a pool: what several jobs of one come to."""

from flowos.model import PoolUser


def test_a_user_holds_what_all_their_jobs_hold() -> None:
    job = PoolUser(name="ada", jobs=1, nodes=2, cores=8, node_seconds=60.0)
    waits = PoolUser(name="ada", waiting=1, gpu_seconds=5.0)
    assert job.plus(waits) == waits.plus(job)
    assert PoolUser(name="ada").plus(job).plus(job).plus(waits) == PoolUser(
        name="ada",
        jobs=2,
        nodes=4,
        cores=16,
        waiting=1,
        node_seconds=120.0,
        core_seconds=None,
        gpu_seconds=5.0,
    )
