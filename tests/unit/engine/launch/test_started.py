"""What a flowos-init says of where it runs, and whose process numbers those are."""

import os
from pathlib import Path

import pytest

from flowos.engine.launch._orphans import Answers, Started, boot_id, pid_namespace

OURS, FOREIGN = boot_id().decode(), "5f1c9c0e-6d2f-4c55-9b0d-0c1f5a3f7d11"


def said(*, pids: int | None = None, rest: str = "") -> Started:
    own = pid_namespace() if pids is None else pids
    return Started(f"{os.getpid()} 2 3 {own} 0 {rest}\n".encode())


def test_numbers_are_ours_in_our_namespace_of_our_boot() -> None:
    assert said(rest=f"{OURS} host -.-").here
    assert said().here, "flowos-init of before boots were said"


@pytest.mark.parametrize(
    "of_another",
    [
        said(rest=f"{FOREIGN} host 7.3"),
        said(rest="- host -.-"),
        said(pids=pid_namespace() + 1, rest=f"{OURS} host -.-"),
    ],
    ids=["boot", "unknown boot", "namespace"],
)
def test_numbers_of_another_boot_or_namespace_are_not_ours(of_another: Started) -> None:
    assert not of_another.here


def test_a_rank_of_another_boot_may_live_whatever_our_processes_are() -> None:
    """Its first pid namespace has the number of ours, and its process one that is free here."""
    free = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    answers = Answers()
    answers.started[0] = Started(f"{free} 2 3 {pid_namespace()} 0 {FOREIGN} n1 7.3".encode())
    assert answers.may_go_on()
    answers.started[0] = Started(f"{free} 2 3 {pid_namespace()} 0 {OURS} n1 7.3".encode())
    assert not answers.may_go_on()


@pytest.mark.parametrize(
    ("rest", "step"),
    [(f"{FOREIGN} n1 7.3", "7.3"), (f"{FOREIGN} n1 -.-", ""), (f"{FOREIGN} n1", ""), ("", "")],
)
def test_the_step_is_known_where_slurm_has_started_it(rest: str, step: str) -> None:
    answers = Answers()
    assert answers.step == ""
    answers.started[0] = said(rest=rest)
    assert answers.step == step
