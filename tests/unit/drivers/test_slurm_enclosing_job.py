"""Command lines and refusals within a job that is there."""

from dataclasses import replace
from typing import Any

import pytest

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.slurm import join_words, refusal_of_job
from flowos.model import Ask


def test_keepers_join_a_job_that_is_there() -> None:
    words = "srun --jobid=17 --overlap --no-kill --nodes=2 --nodelist=a,b --ntasks-per-node=1 "
    words += "--mpi=none --input=all --kill-on-bad-exit=0"
    for binds, overlaps, says in (
        (False, True, f"{words} k"),
        (True, True, f"{words} --cpu-bind=none k"),
        (False, False, f"{words} k".replace("--overlap ", "")),
    ):
        joins = join_words("17", ("a", "b"), ("k",), binds=binds, overlaps=overlaps)
        assert " ".join(joins) == says


@pytest.mark.parametrize(
    ("changes", "ask", "complaint"),
    [
        ({}, Ask(nodes=2, seconds=60), ""),
        ({}, Ask(nodes=3), "3 nodes asked for, job 17 around this program has 2"),
        ({}, Ask(seconds=61), "61 s asked for, job 17 around this program ends in 60 s"),
        ({"left_seconds": None}, Ask(seconds=61), ""),
        ({"left_seconds": 0.0}, Ask(), "the job of SLURM_JOB_ID=17 is over"),
        ({"phase": "ending"}, Ask(), "the job of SLURM_JOB_ID=17 is over"),
        ({"phase": "waiting"}, Ask(), "the job of SLURM_JOB_ID=17 does not run, but is RUNNING"),
    ],
)
def test_a_job_around_the_program_gives_what_it_has(
    changes: dict[str, Any], ask: Ask, complaint: str
) -> None:
    job = Job(id="17", state="RUNNING", phase="running", nodes=("a", "b"), left_seconds=60.0)
    assert refusal_of_job(ask, "17", (replace(job, **changes),)) == complaint
    assert refusal_of_job(ask, "17", ()) == "the job of SLURM_JOB_ID=17 is over"
