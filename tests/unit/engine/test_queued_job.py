"""What is said of a job that waits for nodes while its controller is away, or has lost it."""

from pathlib import Path

import pytest

from flowos.engine.slurm._queued_job import QueuedJob
from flowos.model import SliceRefused


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is written into it is run instead of Slurm's."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    program = tmp_path / "squeue"
    program.touch(0o755)
    return program


def test_a_controller_that_is_away_is_why_it_is_not_known(squeue: Path) -> None:
    job = QueuedJob("flowos-c-1", ask_seconds=0)
    squeue.write_text(
        "#!/bin/sh\n"
        "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2\n"
        "exit 1\n"
    )
    for _ in range(9):
        assert "Unable to contact slurm controller" in job.reason(queued=True)
    squeue.write_text("#!/bin/sh\necho '7|PENDING||INVALID|0:00|Resources'\n")
    assert job.reason(queued=True) == "Resources"


def test_a_job_that_is_not_known_for_a_while_is_lost(squeue: Path) -> None:
    job = QueuedJob("flowos-c-1", ask_seconds=0)
    squeue.write_text("#!/bin/sh\n")
    for _ in range(4):
        assert job.reason(queued=True) == ""
    with pytest.raises(SliceRefused, match="Slurm does not know the job any more"):
        job.reason(queued=True)


def test_of_nodes_that_are_powered_up_slurm_gives_no_reason(squeue: Path) -> None:
    job = QueuedJob("flowos-c-1", ask_seconds=0)
    for nodes, said in (
        ("c[1-2]", "c1, c2: booting"),
        ("c[1-12]", "c1, c2, c3, c4, c5, c6, c7, c8 and 4 more: booting"),
        ("", ""),
    ):
        squeue.write_text(f"#!/bin/sh\necho '7|CONFIGURING|{nodes}|1:00|0:01|None'\n")
        assert job.reason(queued=True) == said


def test_a_job_that_was_never_known_is_not_lost_and_one_that_is_held_not_asked_about(
    squeue: Path,
) -> None:
    squeue.write_text("#!/bin/sh\n")
    job = QueuedJob("flowos-c-1", ask_seconds=0)
    assert [job.reason(queued=False) for _ in range(9)] == [""] * 9
    squeue.write_text("#!/bin/sh\necho '7|PENDING||INVALID|0:00|Resources'\n")
    assert job.reason(queued=False) == "Resources"
    assert QueuedJob("", ask_seconds=0).reason(queued=True) == ""


def test_an_answer_counts_for_a_while(squeue: Path) -> None:
    job = QueuedJob("flowos-c-1", ask_seconds=3600)
    squeue.write_text("#!/bin/sh\necho '7|PENDING||INVALID|0:00|Resources'\n")
    assert job.reason(queued=True) == "Resources"
    squeue.write_text("#!/bin/sh\necho '7|PENDING||INVALID|0:00|Priority'\n")
    assert job.reason(queued=True) == "Resources"
