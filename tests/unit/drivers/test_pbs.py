"""PBS's command lines, and its answers in the format of 19.1, 2022.1 and 2024.1.

The files of tests/golden/pbs have what those versions get wrong: quotes that are not escaped, or
twice, and digits that are no number.
"""

import math
from pathlib import Path

import pytest

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.pbs import (
    jobs_words,
    nodes_words,
    phase_of,
    read_complaint,
    read_jobs,
    read_nodes,
    read_submitted,
    submit_words,
)
from flowos.model import Ask, NodeInfo, SliceRefused

GOLDEN = Path(__file__).parents[2] / "golden/pbs"
VERSIONS = ("19.1", "2022.1", "2024.1")


def printed(version: str, name: str) -> str:
    return (GOLDEN / version / name).read_text()


def test_whole_nodes_are_asked_for_with_a_keeper_on_the_first() -> None:
    assert " ".join(submit_words(Ask(nodes=2), "flowos-1", ("/x/keeper", "a b"))) == (
        "qsub -N flowos-1 -l select=2:ncpus=1 -l place=scatter:excl -j oe -o /dev/null -- "
        "/x/keeper a b"
    )
    ask = Ask(cores=4, gpus=2, memory_bytes=1 << 30, devices=(("fpga", 1),), seconds=3661.5)
    assert submit_words(ask, "n", (), queue="gpu", account="physics")[3:13] == (
        *("-q", "gpu", "-A", "physics"),
        *("-l", "select=1:ncpus=4:ngpus=2:fpga=1:mem=1073741824b"),
        *("-l", "walltime=1:01:02", "-l", "place=scatter:excl"),
    )
    assert "walltime=0:01:00" in submit_words(Ask(seconds=60), "n", ())
    with pytest.raises(SliceRefused, match="topology='switch': PBS does not place nodes"):
        submit_words(Ask(topology="switch"), "n", ())


def test_what_is_asked_is_asked_as_json() -> None:
    assert " ".join(jobs_words(job="17.pbs")) == "qstat -x -f -F json 17.pbs"
    assert " ".join(jobs_words(name="flowos-1")) == "qstat -x -f -F json"
    assert " ".join(nodes_words()) == "pbsnodes -a -F json"


def test_the_job_that_was_submitted_is_read() -> None:
    assert read_submitted("Welcome!\n17.pbs-01.cluster\n") == "17.pbs-01.cluster"
    with pytest.raises(SliceRefused, match="PBS names no job: 'Welcome!'"):
        read_submitted("Welcome!")


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_are_read_with_their_nodes_and_times(version: str) -> None:
    runs, waits, done = read_jobs(printed(version, "qstat.json"))
    assert (runs.name, runs.phase, runs.nodes) == ("flowos-00ff", "running", ("n1", "n2"))
    assert (runs.used_seconds, runs.left_seconds) == (62.0, 3538.0)
    assert (waits.phase, waits.nodes, waits.left_seconds) == ("waiting", (), math.inf)
    assert waits.reason == "Not Running: Insufficient amount of resource: ncpus"
    assert (done.phase, done.nodes) == ("over", ("n1",))


def test_what_has_no_jobs_or_is_no_json() -> None:
    assert read_jobs('{"pbs_version":"19.1.3","pbs_server":"pbs"}') == ()
    assert read_jobs('{"Jobs":{"7.pbs":{}, "8.pbs":"odd"}}') == (
        Job(id="7.pbs", state="", phase="unknown", left_seconds=math.inf),
    )
    waits = '{"Jobs":{"7.pbs":{"job_state":"Q","Resource_List":{"walltime":"00:01:00"}}}}'
    assert read_jobs(f"Welcome!\n{waits}")[0].left_seconds == 60.0
    with pytest.raises(SliceRefused, match="PBS answers no JSON that can be read"):
        read_jobs("Connection refused")
    with pytest.raises(SliceRefused, match="PBS answers no JSON"):
        read_jobs("[]")


@pytest.mark.parametrize(
    ("state", "phase"),
    [("H", "waiting"), ("S", "running"), ("E", "ending"), ("X", "over"), ("?", "unknown")],
)
def test_the_phase_of_a_state(state: str, phase: str) -> None:
    assert phase_of(state) == phase


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_are_read_with_what_they_have_and_why_they_are_not_to_be_had(version: str) -> None:
    assert read_nodes(printed(version, "pbsnodes.json")) == (
        NodeInfo(name="n1", cores=64, memory_bytes=527672488 << 10, gpus=4, state="job-exclusive"),
        NodeInfo(name="n2", cores=8, memory_bytes=16 << 30, state='offline: fan "B" broken'),
    )


def test_what_is_not_said_of_a_node_it_has_not() -> None:
    assert read_nodes('{"nodes":{"n1":{"state":"down"}}}') == (
        NodeInfo(name="n1", cores=0, state="down"),
    )


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("gone", "qstat: Unknown Job Id 99.pbs\n", "Unknown Job Id 99.pbs"),
        ("gone", "qdel: Job has finished 41.pbs\n", "Job has finished 41.pbs"),
        (
            "unreachable",
            "Connection refused\nqstat: cannot connect to server pbs (errno=15010)\n",
            "cannot connect to server pbs (errno=15010)",
        ),
        ("refused", "qsub: Unknown queue\n", "Unknown queue"),
        (
            "refused",
            "qsub: Job violates queue and/or server resource limits: exceeds queue limits\n",
            "Job violates queue and/or server resource limits: exceeds queue limits",
        ),
        ("unknown", "qsub: the moon is full\n", "the moon is full"),
    ],
)
def test_a_complaint_says_whether_it_can_help_to_try_again(kind: str, text: str, says: str) -> None:
    found = read_complaint(text)
    assert (found.kind, found.text) == (kind, says)
