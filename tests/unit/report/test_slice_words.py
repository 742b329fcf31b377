"""What was asked of a pool, and what it accounted for, in words."""

import pytest

from flowos.model import Ask, PoolKind, SliceAccounts, SliceRecord
from flowos.report import accounted_words, asked_words, job_words


def test_all_that_was_asked_for_is_said() -> None:
    assert asked_words(Ask()) == "1 node"
    ask = Ask(
        nodes=4,
        cores=8,
        gpus=2,
        memory_bytes=1000,
        devices=(("fpga", 1),),
        topology="pack",
        kernel="B",
        seconds=7200.0,
        lease_seconds=60.0,
    )
    assert asked_words(ask) == (
        "4 nodes, 8 cores each, 2 GPUs each, 1000 bytes each, 1 fpga each, pack, kernel B, "
        "7200 s, a lease of 60 s"
    )
    assert asked_words(Ask(cores=1, gpus=1)) == "1 node, 1 core each, 1 GPU each"
    assert asked_words(Ask(seconds=7200.0), lambda s: f"{s / 3600:g} h") == "1 node, 2 h"


@pytest.mark.parametrize(
    ("kind", "jobs", "words"),
    [
        ("slurm", ("4",), "Slurm job 4"),
        ("slurm", ("4", "17"), "Slurm jobs 4, 17"),
        ("sge", ("4",), "Grid Engine job 4"),
    ],
)
def test_jobs_are_those_of_a_resource_manager(
    kind: PoolKind, jobs: tuple[str, ...], words: str
) -> None:
    record = SliceRecord(
        id="gpu-1", pool="gpu", kind=kind, process="p-1", asked=0.0, ask=Ask(), jobs=jobs
    )
    assert job_words(record) == words


def test_only_what_was_accounted_is_said() -> None:
    assert accounted_words(SliceAccounts()) == "accounted by Slurm: nothing that it measures"
    known = SliceAccounts(cpu_seconds=1.5, max_rss_bytes=2_000_000, joules=3.0)
    assert accounted_words(known) == "accounted by Slurm: 1.5 s of cpu, 2 MB at most, 3 J"
    given = SliceAccounts(cpu_seconds=1.5, tres=(("cpu", 48.0), ("node", 12.0)))
    assert accounted_words(given) == (
        "accounted by Slurm: 1.5 s of cpu, TRES-seconds cpu=48 node=12"
    )
