"""Why a job waits: as Slurm 22.05 said it of three jobs, on 3 nodes of which 2 were in use."""

import math
from datetime import datetime
from pathlib import Path

import pytest

from flowos.drivers.allocators.slurm_why import (
    ExpectedStart,
    IdleNodes,
    idle_words,
    in_words,
    read_idle,
    read_starts,
    sooner,
    starts_words,
)
from flowos.model import Ask

GOLDEN = Path(__file__).parents[2] / "golden/slurm/22.05"
HOUR = 3600.0


def nodes(partition: str, count: int, seconds: float = math.inf) -> IdleNodes:
    return IdleNodes(partition=partition, nodes=count, max_seconds=seconds)


def test_waiting_jobs_are_asked_for_by_name() -> None:
    assert " ".join(starts_words("flowos-b")) == (
        "squeue --noheader --start --name=flowos-b --format=%A|%T|%P|%S|%r"
    )
    assert " ".join(idle_words()) == "sinfo --noheader --format=%R|%a|%D|%l|%t"


def test_a_start_is_expected_or_not_known() -> None:
    first, _, never = read_starts((GOLDEN / "squeue_start.txt").read_text())
    assert first == ExpectedStart(
        job="2", partition="main", at=datetime(2026, 11, 23, 13, 41, 14), reason="Resources"
    )
    assert (never.at, never.reason) == (None, "PartitionDown")
    assert read_starts("Welcome!\n") == ()


def test_idle_nodes_are_counted_by_partition_where_it_is_up() -> None:
    found = read_idle((GOLDEN / "sinfo_idle.txt").read_text())
    assert found == (nodes("main", 1, HOUR), nodes("other", 1))
    text = "Welcome!\nmain|up|2|x|idle~\nmain|up|3|x|alloc\nmain|up|1|x|idle\nmain|up|?|x|idle\n"
    assert read_idle(text) == (nodes("main", 3),)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "Resources: nodes that it asks for are in use"),
        ("QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit: its quality of service gives one"),
        ("ReqNodeNotAvail, UnavailableNodes:n1", "ReqNodeNotAvail, UnavailableNodes:n1: a node"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_a_reason_is_said_in_words_where_it_is_known(reason: str, words: str) -> None:
    assert in_words(reason).startswith(words)


def test_what_may_start_sooner_is_fewer_nodes_another_partition_or_less_time() -> None:
    idle = (nodes("main", 1, HOUR), nodes("big", 3), nodes("short", 3, 60.0), nodes("full", 1))
    fewer, *others, limit = sooner(Ask(nodes=3), "main", idle)
    assert fewer == "fewer nodes: 1 node is idle in partition main, and it asks for 3"
    assert others == [
        "partition big: 3 of its nodes are idle",
        "partition short: 3 of its nodes are idle",
    ]
    assert limit.startswith("a time limit: without one it asks for the 3600 s of the partition")
    assert sooner(Ask(nodes=3, seconds=61.0), "main", idle)[1:] == (others[0],)
    assert sooner(Ask(nodes=3, seconds=60.0), "main", idle)[1:] == tuple(others)


def test_nothing_is_said_to_start_sooner_that_would_not() -> None:
    assert sooner(Ask(nodes=1), "main", (nodes("main", 1), nodes("other", 0))) == ()
    assert sooner(Ask(nodes=2), "main", (nodes("main", 0),)) == ()
    assert sooner(Ask(nodes=2), "gone", ()) == ()
    assert "2 nodes are idle" in sooner(Ask(nodes=3), "main", (nodes("main", 2),))[0]
