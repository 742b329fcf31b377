"""LSF's command lines, and its answers in the format of 9.1, 10.1 and 11."""

import math
from pathlib import Path

import pytest

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.lsf import (
    hold_words,
    jobs_words,
    nodes_words,
    phase_of,
    read_complaint,
    read_hosts,
    read_jobs,
    read_nodes,
    read_waiting,
)
from flowos.model import Ask, NodeInfo, SliceRefused

GOLDEN = Path(__file__).parents[2] / "golden/lsf"
VERSIONS = ("9.1", "10.1", "11")


def printed(version: str, name: str) -> str:
    return (GOLDEN / version / name).read_text()


def test_nodes_are_held_by_a_keeper_that_a_shell_starts_as_it_is() -> None:
    assert hold_words(Ask(nodes=2, cores=4), "flowos-1", ("/x/keeper", "a b")) == (
        *("bsub", "-I", "-x", "-J", "flowos-1", "-n", "8", "-R", "span[ptile=4]"),
        "/x/keeper 'a b'",
    )
    ask = Ask(gpus=2, memory_bytes=(1 << 30) + 1, devices=(("fpga", 1),), seconds=61)
    assert hold_words(ask, "n", ("k",), queue="gpu", project="physics")[6:] == (
        *("1", "-R", "span[ptile=1] rusage[mem=1025MB] rusage[fpga=1]"),
        *("-q", "gpu", "-P", "physics", "-W", "2", "-gpu", "num=2", "k"),
    )
    for seconds, minutes in ((60, "1"), (60.1, "2"), (6000, "100")):
        assert hold_words(Ask(seconds=seconds), "n", ())[-2] == minutes
    assert "rusage[mem=1MB]" in hold_words(Ask(memory_bytes=1), "n", ())[8]
    with pytest.raises(SliceRefused, match="topology='pack': LSF does not place nodes"):
        hold_words(Ask(topology="pack"), "n", ())


def test_what_is_asked_is_asked_as_json_or_in_columns() -> None:
    fields = "jobid stat job_name exec_host time_left run_time pend_reason"
    assert jobs_words(job="17") == ("bjobs", "-a", "-json", "-o", fields, "17")
    assert jobs_words(name="flowos-1")[-2:] == ("-J", "flowos-1")
    assert jobs_words()[-1] == fields
    assert nodes_words() == ("bhosts", "-w")


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_read_with_their_nodes_and_times(version: str) -> None:
    runs, waits, failed = read_jobs(printed(version, "bjobs.json"))
    assert runs == Job(
        id="41",
        name="flowos-00ff",
        state="RUN",
        phase="running",
        nodes=("n1", "n2"),
        left_seconds=3480.0,
        used_seconds=62.0,
    )
    assert (waits.phase, waits.nodes, waits.left_seconds) == ("waiting", (), math.inf)
    assert waits.reason == ("Not enough processors to meet the job's spanning requirement: 3 hosts")
    assert (failed.name, failed.phase) == ("/bin/false", "over")


def test_what_has_no_jobs_or_is_no_json() -> None:
    assert read_jobs("No unfinished job found\n") == ()
    assert read_jobs("") == ()
    assert read_jobs("Job <99> is not found\n") == ()
    for text in ("LSF is down. Please wait ...\n", '{"RECORDS":['):
        with pytest.raises(SliceRefused, match="LSF answers no JSON"):
            read_jobs(text)


def test_times_that_are_not_known() -> None:
    text = '{"RECORDS":[{"JOBID":"1","STAT":"UNKWN","TIME_LEFT":"0:10 E","RUN_TIME":"-"}]}'
    assert read_jobs(text) == (Job(id="1", state="UNKWN", phase="unknown"),)
    left = read_jobs(text.replace("0:10 E", "2:10"))[0].left_seconds
    assert left == 7800.0


@pytest.mark.parametrize(
    ("state", "phase"),
    [("PSUSP", "waiting"), ("SSUSP", "running"), ("ZOMBI", "ending"), ("DONE", "over")],
)
def test_the_phase_of_a_state(state: str, phase: str) -> None:
    assert phase_of(state) == phase


def test_hosts_are_read_with_or_without_their_slots() -> None:
    assert read_hosts("4*n1:n2:n2") == ("n1", "n2")
    assert read_hosts("") == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_are_read_with_their_slots(version: str) -> None:
    nodes = read_nodes(printed(version, "bhosts.txt"))
    closed = ("closed_Excl", "closed_Adm") if version != "9.1" else ("closed", "closed")
    assert nodes == (
        NodeInfo(name="n1", cores=16, state=closed[0]),
        NodeInfo(name="n2", cores=16, state="ok"),
        NodeInfo(name="login1", cores=0, state=closed[1]),
        NodeInfo(name="n3", cores=1, state="unavail"),
    )
    assert read_nodes("LSF is down. Please wait ...\n") == ()


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("Job <41> is submitted to queue <normal>.", ("waiting", "41")),
        ("Job <41> is submitted to default queue <normal>.", ("waiting", "41")),
        ("<<Starting on n1.cluster>>", ("held", "n1.cluster")),
        ("<<Waiting for dispatch ...>>", None),
    ],
)
def test_what_is_said_while_a_job_waits(line: str, read: tuple[str, str] | None) -> None:
    assert read_waiting(line) == read


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("gone", "Job <99> is not found"),
        ("gone", "Job <41>: Job has already finished"),
        ("unreachable", "LSF is down. Please wait ..."),
        ("unreachable", "batch daemon not responding ... still trying"),
        ("refused", "nope: No such queue. Job not submitted."),
        ("refused", "Request aborted by esub. Job not submitted."),
        ("unknown", "the moon is full"),
    ],
)
def test_a_complaint_says_whether_it_can_help_to_try_again(kind: str, text: str) -> None:
    found = read_complaint(text + "\n")
    assert (found.kind, found.text) == (kind, text)
