"""HTCondor's command lines, and its answers in the format of 8.8, 10 and 25."""

from pathlib import Path

import pytest

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.htcondor import (
    jobs_words,
    nodes_words,
    phase_of,
    read_complaint,
    read_jobs,
    read_nodes,
    read_submitted,
    submit_text,
    submit_words,
)
from flowos.model import Ask, NodeInfo, SliceRefused

GOLDEN = Path(__file__).parents[2] / "golden/htcondor"
VERSIONS = ("8.8", "10", "25")


def printed(version: str, name: str) -> str:
    return (GOLDEN / version / name).read_text()


def test_a_keeper_is_submitted_for_each_node() -> None:
    assert " ".join(submit_words("flowos-1")) == ("condor_submit -terse -batch-name flowos-1 -")
    assert submit_text(Ask(nodes=2), ("/bin/sh", "-c", 'echo "it\'s"')) == (
        "universe = vanilla\n"
        "executable = /bin/sh\n"
        "transfer_executable = false\n"
        "arguments = \"'-c' 'echo \"\"it''s\"\"'\"\n"
        "request_cpus = 1\n"
        "queue 2\n"
    )
    ask = Ask(cores=4, gpus=2, memory_bytes=(1 << 30) + 1, devices=(("fpga", 1),), seconds=60.5)
    assert submit_text(ask, ("k",), group="physics").splitlines()[4:] == [
        "request_cpus = 4",
        "request_memory = 1025MB",
        "request_gpus = 2",
        "request_fpga = 1",
        "accounting_group = physics",
        "periodic_remove = JobStatus == 2 && time() - JobCurrentStartDate > 61",
        "queue 1",
    ]


def test_what_cannot_be_asked_of_it_is_refused() -> None:
    with pytest.raises(SliceRefused, match="topology='pack': HTCondor does not place nodes"):
        submit_text(Ask(topology="pack"), ("k",))
    with pytest.raises(SliceRefused, match="HTCondor takes no line breaks in arguments"):
        submit_text(Ask(), ("k", "a\nqueue 100"))


def test_what_is_asked_is_asked_as_json() -> None:
    assert jobs_words(job="17")[:3] == ("condor_q", "-json", "-attributes")
    assert jobs_words(job="17")[-1] == "17"
    assert jobs_words(name="flowos-1")[-2:] == ("-constraint", 'JobBatchName == "flowos-1"')
    assert len(jobs_words()) == 4
    assert nodes_words()[:2] == ("condor_status", "-json")


def test_the_cluster_that_was_submitted_is_read() -> None:
    assert read_submitted("17.0 - 17.3\n") == "17"
    with pytest.raises(SliceRefused, match="HTCondor names no job: 'ERROR'"):
        read_submitted("ERROR")


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_read_with_their_nodes(version: str) -> None:
    assert read_jobs(printed(version, "condor_q.json")) == (
        Job(
            id="41.0",
            name="flowos-00ff",
            state="Running",
            phase="running",
            nodes=("n1.cluster",),
        ),
        Job(id="41.1", name="flowos-00ff", state="Idle", phase="waiting"),
        Job(
            id="42.0",
            name="flowos-00ff",
            state="Held",
            phase="waiting",
            reason="Error from slot1@n2.cluster: memory usage exceeded request_memory",
        ),
    )


def test_what_has_no_jobs_or_is_no_json() -> None:
    assert read_jobs("\n") == ()
    assert read_jobs('[3, {"ClusterId": 1, "ProcId": 0, "JobStatus": 9}, {}]') == (
        Job(id="1.0", state="9", phase="unknown"),
        Job(id=".", state="", phase="unknown"),
    )
    with pytest.raises(SliceRefused, match="HTCondor answers no JSON that can be read"):
        read_jobs("-- Failed to fetch ads")


def test_every_number_of_a_state_has_its_name() -> None:
    text = ",".join(f'{{"ClusterId": {n}, "ProcId": 0, "JobStatus": {n}}}' for n in range(1, 8))
    states = [(job.state, job.phase) for job in read_jobs(f"Welcome!\n[{text}]")]
    assert states == [
        ("Idle", "waiting"),
        ("Running", "running"),
        ("Removed", "over"),
        ("Completed", "over"),
        ("Held", "waiting"),
        ("TransferringOutput", "ending"),
        ("Suspended", "running"),
    ]


@pytest.mark.parametrize(
    ("state", "phase"),
    [("Held", "waiting"), ("Suspended", "running"), ("Removed", "over"), ("9", "unknown")],
)
def test_the_phase_of_a_state(state: str, phase: str) -> None:
    assert phase_of(state) == phase


@pytest.mark.parametrize("version", VERSIONS)
def test_the_slots_of_a_machine_are_one_node(version: str) -> None:
    has = {"cores": 16, "memory_bytes": 64000 << 20, "gpus": 0 if version == "8.8" else 2}
    assert read_nodes(printed(version, "condor_status.json")) == (
        NodeInfo(name="n1.cluster", state="Claimed Busy, Claimed Retiring", **has),  # type: ignore[arg-type]
        NodeInfo(name="n2.cluster", state="Unclaimed Idle", **has),  # type: ignore[arg-type]
        NodeInfo(name="n3.cluster", state="Owner Idle", **has),  # type: ignore[arg-type]
    )
    assert read_nodes('[{"State": "Owner"}]') == ()
    assert read_nodes('[{"Machine": "n1"}]') == (NodeInfo(name="n1", cores=0, state=""),)
    for no_number in ("1e999", "NaN", "-1", '"many"'):
        (node,) = read_nodes(f'[{{"Machine": "n1", "TotalCpus": {no_number}}}]')
        assert node.cores == 0


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("gone", "Couldn't find/remove all jobs in cluster 99\n", ""),
        (
            "unreachable",
            "-- Failed to fetch ads from: <10.0.0.1:9618> : login1\n",
            "Failed to fetch ads from: <10.0.0.1:9618> : login1",
        ),
        ("unreachable", "ERROR: Can't find address of local schedd\n", ""),
        ("refused", "ERROR: on Line 3 of submit file: unknown request\n", ""),
        ("unknown", "the moon is full\n", "the moon is full"),
    ],
)
def test_a_complaint_says_whether_it_can_help_to_try_again(kind: str, text: str, says: str) -> None:
    found = read_complaint(text)
    assert (found.kind, found.text) == (kind, says or text.strip().removeprefix("ERROR: "))
