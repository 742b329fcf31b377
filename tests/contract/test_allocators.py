"""What the drivers of all resource managers promise; see flowos.drivers._allocators.Allocator."""

import re
from pathlib import Path

import pytest

from flowos.drivers._allocators import Allocator
from flowos.drivers.allocators import htcondor, lsf, pbs, sge, slurm
from flowos.model import SliceRefused

GOLDEN = Path(__file__).parents[1] / "golden"
ALLOCATORS: dict[str, Allocator] = {
    "htcondor": htcondor,
    "lsf": lsf,
    "pbs": pbs,
    "sge": sge,
    "slurm": slurm,
}
JOBS = {
    "htcondor": "condor_q.json",
    "lsf": "bjobs.json",
    "pbs": "qstat.json",
    "sge": "qstat_jobs.xml",
    "slurm": "squeue.txt",
}
NODES = {
    "htcondor": "condor_status.json",
    "lsf": "bhosts.txt",
    "pbs": "pbsnodes.json",
    "sge": "qstat_nodes.xml",
    "slurm": "sinfo.txt",
}
VERSIONS = {"slurm": 5}
"""Of others there are three."""
every = pytest.mark.parametrize("name", ALLOCATORS)


def printed(name: str, files: dict[str, str]) -> list[str]:
    found = sorted((GOLDEN / name).glob(f"*/{files[name]}"))
    assert len(found) == VERSIONS.get(name, 3), "as many versions as there are folders"
    return [file.read_text() for file in found]


@every
def test_jobs_have_a_number_a_state_and_nodes_if_they_run(name: str) -> None:
    for text in printed(name, JOBS):
        jobs = ALLOCATORS[name].read_jobs(text)
        assert len({job.id for job in jobs}) == len(jobs) >= 2
        assert {"running", "waiting"} <= {job.phase for job in jobs}
        assert all(job.nodes for job in jobs if job.phase == "running")
        assert not any(job.nodes for job in jobs if job.phase == "waiting")
        assert all(ALLOCATORS[name].phase_of(job.state) == job.phase for job in jobs)


@every
def test_every_version_says_the_same_of_the_same(name: str) -> None:
    first, *others = (
        [(job.id, job.phase, job.nodes) for job in ALLOCATORS[name].read_jobs(text)]
        for text in printed(name, JOBS)
    )
    assert others == [first] * (VERSIONS.get(name, 3) - 1)


@every
def test_nodes_have_a_name_slots_and_a_state(name: str) -> None:
    for text in printed(name, NODES):
        nodes = ALLOCATORS[name].read_nodes(text)
        assert len({node.name for node in nodes}) == len(nodes) >= 2
        assert any(node.cores > 1 for node in nodes)
        assert all(node.state for node in nodes)


@every
@pytest.mark.parametrize("state", ["", "HIBERNATING", "?", "42"])
def test_a_state_that_is_not_known_is_a_value(name: str, state: str) -> None:
    assert ALLOCATORS[name].phase_of(state) == "unknown"


@every
def test_a_node_whose_name_could_be_an_option_is_refused(name: str) -> None:
    for text in printed(name, JOBS):
        hostile = re.sub(r"\b(?:n1\b|rack1-n(?=\[))", "-oProxyCommand=x", text)
        assert hostile != text
        with pytest.raises(SliceRefused, match="node"):
            ALLOCATORS[name].read_jobs(hostile)


@every
def test_a_job_is_asked_for_and_cancelled_by_its_number(name: str) -> None:
    allocator = ALLOCATORS[name]
    assert allocator.cancel_words("17")[-1] == "17"
    assert all(isinstance(word, str) for word in allocator.jobs_words(job="17"))
    assert len(allocator.jobs_words(name="flowos-1")) >= 2


@every
def test_nothing_said_is_no_complaint_that_is_known(name: str) -> None:
    found = ALLOCATORS[name].read_complaint("")
    assert (found.kind, found.text) == ("unknown", "")
    assert ALLOCATORS[name].read_complaint("the moon is full\n\n").text == "the moon is full"
