"""A launch that cannot be is refused in one line, before anything starts."""

import os
import sys
from pathlib import PurePath

import pytest

from flowos.engine import here
from flowos.model import Launch, LaunchFailed

pytestmark = pytest.mark.usefixtures("nothing_is_left")

BAD = [
    (Launch(argv=()), "a launch without a command"),
    (Launch(argv=("",)), "a launch without a command"),
    (Launch(argv=("echo", "a\0b")), "'echo': an argument holds a NUL"),
    (Launch(argv=("x",), variables=(("A=B", "1"),)), "'x': variable 'A=B'"),
    (Launch(argv=("x",), variables=(("", "1"),)), "'x': variable ''"),
    (Launch(argv=("x",), variables=(("A", "1\0"),)), "'x': variable 'A'"),
    (Launch(argv=("x",), variables=(("A", "\ud800"),)), "'x': a variable or folder name"),
    (Launch(argv=("x",), cwd=PurePath("here")), "'x': folder 'here' is no absolute path"),
    (Launch(argv=("x",), limit_seconds=0.0), "'x': a time limit of 0.0 s is not above 0"),
    (Launch(argv=("x",), limit_seconds=float("nan")), "'x': a time limit of nan s"),
    (Launch(argv=("x",), ranks=2), "x: 2 ranks need an MPI launcher"),
    (Launch(argv=("x" * 200_000,)), "cannot start 'xxx.*: Argument list too long"),
]


@pytest.mark.parametrize(("bad", "told"), BAD, ids=range(len(BAD)))
def test_a_launch_that_cannot_be_is_refused_in_one_line(bad: Launch, told: str) -> None:
    with pytest.raises(LaunchFailed, match=told) as refused:
        here().run(bad)
    assert "\n" not in str(refused.value)


def test_an_unknown_or_missing_launcher_is_one_line() -> None:
    with pytest.raises(LaunchFailed, match="unknown launcher 'mpi'"):
        here().run(Launch(argv=("true",)), launcher="mpi")
    with pytest.raises(LaunchFailed, match="no such launcher '/no/mpirun'"):
        here().run(Launch(argv=("true",)), launcher="openmpi", mpirun="/no/mpirun")


def test_more_ranks_than_cpus_are_refused_unless_asked_for() -> None:
    many = Launch(argv=("x",), ranks=1 + len(os.sched_getaffinity(0)))
    with pytest.raises(LaunchFailed, match=r"ranks with 1 core each on \d+ cpus; ask for fewer"):
        here().run(many, launcher="other", mpirun=sys.executable)
