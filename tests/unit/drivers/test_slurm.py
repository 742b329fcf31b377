"""Slurm's command lines, and its answers as 19.05 to 26.05 gave them.

The files of tests/golden/slurm were printed by those versions, on three nodes with one of them
drained.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowos.drivers._allocators import Complaint, Job
from flowos.drivers.allocators.slurm import (
    SlurmPartition,
    by_hand_words,
    cancel_words,
    hold_words,
    is_up,
    jobs_words,
    keep_words,
    munge_words,
    nodes_words,
    partitions_words,
    phase_of,
    ping_words,
    read_complaint,
    read_jobs,
    read_munge,
    read_nodes,
    read_partitions,
    read_waiting,
    trial_words,
)
from flowos.drivers.launchers.srun import read_types
from flowos.model import Ask, NodeInfo, Pool

GOLDEN = Path(__file__).parents[2] / "golden/slurm"
VERSIONS = ("19.05", "20.11", "22.05", "24.11", "26.05")
POOL = Pool(name="c", kind="slurm", nodes=4)


def printed(version: str, name: str) -> str:
    return (GOLDEN / version / f"{name}.txt").read_text()


# ---- command lines ----


def test_nodes_are_held_by_a_keeper_on_each_that_reads_our_input() -> None:
    assert " ".join(hold_words(POOL, Ask(nodes=2), "flowos-1", ("/x/keeper", "a b"))) == (
        "srun --no-kill --job-name=flowos-1 --nodes=2 --ntasks-per-node=1 --exclusive --mpi=none "
        "--input=all --kill-on-bad-exit=0 /x/keeper a b"
    )


def test_a_program_is_started_by_hand_on_one_node_of_the_pool() -> None:
    pool = Pool(name="c", kind="slurm", partition="main", account="physics")
    assert " ".join(by_hand_words(pool, ("flowos", "doctor"))) == (
        "srun --nodes=1 --ntasks=1 --exclusive --partition=main --account=physics flowos doctor"
    )
    assert " ".join(trial_words(pool)) == (
        "srun --test-only --nodes=1 --ntasks=1 --exclusive --partition=main --account=physics true"
    )


def test_all_that_a_pool_and_a_request_say_is_asked_of_slurm() -> None:
    pool = Pool(
        name="c",
        kind="slurm",
        nodes=4,
        cores=8,
        max_seconds=7200,
        partition="main",
        account="physics",
        qos="high",
        constraint="icelake&nvme",
        gres="fpga:1",
    )
    ask = Ask(gpus=2, memory_bytes=(1 << 30) + 1, devices=(("nic", 1),), topology="switch")
    assert hold_words(pool, ask, "n", ())[9:] == (
        "--partition=main",
        "--account=physics",
        "--qos=high",
        "--constraint=icelake&nvme",
        "--gres=fpga:1,gpu:2,nic:1",
        "--mincpus=8",
        "--mem=1025M",
        "--time=0-02:00:00",
        "--switches=1",
    )
    packed = Ask(topology="pack")
    assert hold_words(POOL, packed, "n", ())[-1] == "--contiguous"
    assert hold_words(POOL, packed, "n", (), has_tree=True) == hold_words(POOL, Ask(), "n", ())
    more = replace(pool, gres="gpu:a100:2,fpga:1,nic")
    assert hold_words(more, Ask(gpus=1, devices={"fpga": 2}), "n", ())[13] == (
        "--gres=gpu:a100:2,nic,fpga:2"
    )
    shorter = Ask(cores=3, seconds=61.0, topology="spread")
    assert hold_words(pool, shorter, "n", ())[-4:] == (
        *("--gres=fpga:1", "--mincpus=3", "--time=0-00:02:00", "--spread-job"),
    )


def test_gpus_are_of_the_pools_type_and_memory_is_all_where_nodes_have_enough() -> None:
    for gres, words in (
        ("gpu:a100:1", "gpu:a100:3"),
        ("gpu:a100", "gpu:a100:3"),
        ("gpu:a100:1,gpu:h100:1", "gpu:3"),
        ("gpu:1", "gpu:3"),
        ("gpu", "gpu:3"),
    ):
        typed = hold_words(replace(POOL, gres=gres), Ask(gpus=3), "n", ())
        assert typed[9:] == (f"--gres={words}",)
    whole = hold_words(POOL, Ask(memory_bytes=1), "n", (), have_memory=True)
    assert whole[9:] == ("--mem=0",)
    assert hold_words(POOL, Ask(gpus=1, memory_bytes=1), "n", ())[9:] == (
        "--gres=gpu:1",
        "--mem=1M",
    )


def test_a_controller_is_up_if_one_of_several_is() -> None:
    assert " ".join(ping_words()) == "scontrol ping"
    assert is_up("Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP")
    assert not is_up("Slurmctld(primary) at UPPER is DOWN")


def test_nodes_are_given_back() -> None:
    assert " ".join(keep_words("17", ("a", "b"))) == "scontrol update JobId=17 NodeList=a,b"
    assert cancel_words("17") == ("scancel", "17")


def test_what_is_asked_is_asked_in_columns() -> None:
    assert " ".join(jobs_words(job="17")) == (
        "squeue --noheader --states=all --jobs=17 --format=%A|%T|%N|%L|%M|%r"
    )
    assert jobs_words(name="flowos-1")[3] == "--name=flowos-1"
    assert " ".join(nodes_words()) == " ".join(nodes_words("x")).replace(" --partition=x", "")
    assert " ".join(nodes_words("main")) == (
        "sinfo --noheader --Node --partition=main --format=%N|%T|%c|%m|%G|%E"
    )
    assert " ".join(partitions_words()) == "scontrol show partition --oneliner"


# ---- answers ----


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_read_with_their_nodes_and_times(version: str) -> None:
    failed, done, runs, waits, never = read_jobs(printed(version, "squeue"))
    assert [job.phase for job in (failed, done, runs, waits, never)] == [
        *("over", "over", "running", "waiting", "waiting"),
    ]
    assert (runs.id, runs.nodes, runs.reason) == ("3", ("rack1-n01", "rack1-n02"), "")
    assert runs.left_seconds is not None
    assert runs.used_seconds is not None
    assert runs.left_seconds + runs.used_seconds == 3600
    assert waits == Job(
        id="4",
        phase="waiting",
        state="PENDING",
        left_seconds=3600.0,
        used_seconds=0.0,
        reason="Resources",
    )
    assert never.reason.startswith("ReqNodeNotAvail, ")


def test_a_state_that_is_not_known_is_kept_and_other_lines_are_passed_over() -> None:
    text = "Welcome to the cluster!\n7|HIBERNATING|n1|INVALID|NOT_SET|a | b\n"
    assert read_jobs(text) == (
        Job(id="7", state="HIBERNATING", phase="unknown", nodes=("n1",), reason="a | b"),
    )
    assert read_jobs(text)[0].phase == "unknown"


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("CONFIGURING", "waiting"),
        ("SUSPENDED", "running"),
        ("COMPLETING", "ending"),
        ("CANCELLED by 1000", "over"),
        ("CANCELLED+", "over"),
        ("NODE_FAIL", "over"),
        ("", "unknown"),
        ("running", "unknown"),
    ],
)
def test_the_phase_of_a_state(state: str, phase: str) -> None:
    assert phase_of(state) == phase


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_are_read_with_what_they_have_and_why_they_are_not_to_be_had(version: str) -> None:
    drained, *others = read_nodes(printed(version, "sinfo"))
    assert drained == NodeInfo(
        name="login.n-9",
        cores=4,
        memory_bytes=4000 << 20,
        devices=(("fpga", 1),),
        state="drained: fan | broken, since 3 o'clock",
    )
    assert [node.name for node in others] == ["rack1-n01", "rack1-n02"]
    assert all(node.state.startswith("mixed") for node in others)


def test_gpus_are_counted_and_what_cannot_be_read_is_none() -> None:
    (node,) = read_nodes("gpu01|idle~|64+|?|gpu:a100:4(S:0-1),gpu:h100:2|\n")
    assert node == NodeInfo(name="gpu01", cores=64, gpus=6, devices=(("gpu", 6),), state="idle~")
    assert read_nodes("(null)|idle|1|1|(null)|none")[0].name == ""
    assert read_nodes("n[1-2]|idle|?|1|(null)|none") == (
        NodeInfo(name="n1", cores=0, memory_bytes=1 << 20, state="idle"),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_read_with_their_limits(version: str) -> None:
    assert read_partitions(printed(version, "partitions")) == (
        partition("main", nodes=3, max_seconds=3600.0, is_default=True),
        partition("long", max_nodes=1, max_seconds=172800.0, accounts=("physics",)),
        partition("off", is_up=False),
    )


ANY = SlurmPartition(
    name="", nodes=1, max_nodes=math.inf, max_seconds=math.inf, is_up=True, is_default=False
)


def partition(name: str, **stated: Any) -> SlurmPartition:
    return replace(ANY, name=name, **stated)


def test_what_a_partition_does_not_say_is_not_limited() -> None:
    assert read_partitions("\nPartitionName=x Odd\n") == (partition("x", nodes=0),)


def test_the_kinds_of_mpi_are_read_of_old_and_new() -> None:
    for version in VERSIONS:
        found = read_types(printed(version, "mpi_list"))
        may = {"none", "pmi2", "pmix", "cray_shasta"} | OLD_TYPES.get(version, set())
        assert {"none", "pmi2"} <= {*found} <= may


OLD_TYPES = {"19.05": {"openmpi", "pmix_v3"}, "20.11": {"pmix_v4"}}


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("srun: job 4 queued and waiting for resources", ("waiting", "4")),
        ("srun: job 4 has been allocated resources", ("held", "4")),
        ("salloc: Pending job allocation 5", ("waiting", "5")),
        ("salloc: Granted job allocation 5", ("held", "5")),
        ("srun: Required node not available (down, drained or reserved)", None),
    ],
)
def test_what_is_said_while_a_job_waits(line: str, read: tuple[str, str] | None) -> None:
    assert read_waiting(line) == read


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("gone", "slurm_load_jobs error: Invalid job id specified\n", "Invalid job id specified"),
        (
            "gone",
            "srun: error: Unable to confirm allocation for job 9: Invalid job id specified\n"
            "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 9\n",
            "Check SLURM_JOB_ID environment variable. Expired or invalid job 9",
        ),
        (
            "refused",
            "srun: error: invalid partition specified: nope\n"
            "srun: error: Unable to allocate resources: Invalid partition name specified\n",
            "Unable to allocate resources: Invalid partition name specified",
        ),
        (
            "refused",
            "squeue: error: _parse_next_key: Parsing error at unrecognized key: Foo\n"
            "squeue: fatal: Unable to process configuration file\n",
            "Unable to process configuration file",
        ),
        (
            "refused",
            "srun: fatal: Could not establish a configuration source\n",
            "Could not establish a configuration source",
        ),
        (
            "refused",
            "Slurm accounting storage is disabled\n",
            "Slurm accounting storage is disabled",
        ),
        (
            "unreachable",
            "srun: error: Unable to allocate resources: Unable to contact slurm controller "
            "(connect failure)\n",
            "Unable to allocate resources: Unable to contact slurm controller (connect failure)",
        ),
        ("unknown", "srun: error: the moon is full\n", "the moon is full"),
        ("unknown", "", ""),
    ],
)
def test_a_complaint_says_whether_it_can_help_to_try_again(kind: str, text: str, says: str) -> None:
    found = read_complaint(text)
    assert isinstance(found, Complaint)
    assert (found.kind, found.text) == (kind, says)


REFUSED = 'Munge encode failed: Failed to connect to "/run/munge/munge.sock": Connection refused'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"scontrol: debug:  auth/munge: auth_p_create: {REFUSED} (retrying ...)\n", REFUSED),
        (f"scontrol: error: {REFUSED}\nscontrol: error: auth_g_create: error\n", REFUSED),
        ("scontrol: debug:  auth/munge: init: Munge authentication plugin loaded\n", ""),
    ],
)
def test_the_complaint_of_munge_is_found_while_a_command_still_tries(text: str, says: str) -> None:
    assert " ".join(munge_words(6.0)) == "timeout 6 scontrol -vv ping"
    assert read_munge(text) == says


# ---- what a cluster can never give ----
