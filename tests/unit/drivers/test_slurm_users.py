"""Users of a partition, as Slurm 22.05 listed them: one job runs, one waits, one is over."""

from pathlib import Path

from flowos.drivers.allocators.slurm_users import (
    read_used,
    read_users,
    used_words,
    users_words,
    with_used,
)
from flowos.model import PoolUser

GOLDEN = Path(__file__).parents[2] / "golden/slurm/22.05"


def used(name: str, nodes: float, cores: float, gpus: float = 0.0) -> PoolUser:
    return PoolUser(name=name, node_seconds=nodes, core_seconds=cores, gpu_seconds=gpus)


def test_jobs_of_all_users_are_asked_for() -> None:
    assert " ".join(users_words("main")) == (
        "squeue --noheader --partition=main --format=%u|%T|%D|%C"
    )
    assert " ".join(used_words("main")) == (
        "sacct --noheader --parsable2 --allusers --allocations --truncate --endtime=now "
        "--partition=main --starttime=now-7days --format=User,ElapsedRaw,AllocTRES"
    )


def test_users_hold_what_runs_and_wait_for_the_rest() -> None:
    assert read_users((GOLDEN / "squeue_users.txt").read_text()) == (
        PoolUser(name="root", jobs=1, nodes=2, cores=8, waiting=1),
    )
    text = "Welcome!\nada|RUNNING|1|4\nbob|COMPLETED|2|8\nada|COMPLETING|2|2\neve|RUNNING|?|?\n"
    assert read_users(text) == (
        PoolUser(name="ada", jobs=2, nodes=3, cores=6),
        PoolUser(name="bob"),
        PoolUser(name="eve", jobs=1),
    )


def test_what_users_used_is_added_up() -> None:
    (found,) = read_used((GOLDEN / "sacct_users.txt").read_text())
    assert (found.name, found.jobs, found.gpu_seconds) == ("root", 0, 0.0)
    assert (found.node_seconds, found.core_seconds) == (15.0, 48.0)
    text = (
        "ada|10|cpu=4,gres/gpu=2,gres/gpu:a100=2,node=1\n"
        "ada|10|cpu=4,gres/gpu:a100=1,gres/gpu:h100=2,node=1\n"
        "bob|?|cpu=1,node=1\n"
        "bob|9|\n"
        "|7|cpu=1,node=1\n"
    )
    assert read_used(text) == (used("ada", 20, 80, 50), used("bob", 0, 0))


def test_users_come_by_what_they_used() -> None:
    now = (PoolUser(name="ada", waiting=1), PoolUser(name="bob", jobs=1, nodes=1, cores=2))
    found = with_used(now, (used("zoe", 0.5, 1), used("carl", 5, 5), used("bob", 9, 9)))
    assert [user.name for user in found] == ["bob", "carl", "zoe", "ada"]
    assert (found[0].nodes, found[0].node_seconds) == (1, 9.0)
    assert found[3] == PoolUser(
        name="ada", waiting=1, node_seconds=0.0, core_seconds=0.0, gpu_seconds=0.0
    )
