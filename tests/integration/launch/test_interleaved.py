"""Launches that take turns: one works at a time, whatever becomes of the others."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from flowos.engine import PreparedLaunch, here, run_interleaved
from flowos.model import BARE, Exited, Killed, Launch, LaunchFailed, Outcome
from flowos.plan import drawn

pytestmark = pytest.mark.usefixtures("nothing_is_left")

TAKES_PART = """
import os, signal, socket, sys, time
log, name, turns = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), sys.argv[2], int(sys.argv[3])
giver = socket.socket(socket.AF_UNIX)
giver.connect(os.environ["FLOWOS_TURNS"])

def turn():
    giver.send(b"0")
    if not giver.recv(1):
        sys.exit("nobody gives turns")

for number in range(turns):
    turn()
    os.write(log, f"{name}<".encode())
    time.sleep(0.002)
    os.write(log, f"{name}>".encode())
    if number == 1:
        exec(" ".join(sys.argv[4:]))
turn()
os.write(log, f"{name}!".encode())
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    made = tmp_path / "log"
    made.touch()
    return made


def part(log: Path, name: str, turns: int, *second: str, limit: float = 60.0) -> PreparedLaunch:
    """A launch with so many turns, and a last one; `second` is done in the second of them."""
    argv = (sys.executable, "-c", TAKES_PART, str(log), name, str(turns), *second)
    return here().prepare(
        Launch(
            argv=argv, variables=here().variables(BARE), cwd=PurePath("/tmp"), limit_seconds=limit
        )
    )


def ends(found: list[Outcome | LaunchFailed]) -> list[object]:
    return [one.end if isinstance(one, Outcome) else one for one in found]


def test_one_works_at_a_time_as_drawn_and_back(log: Path) -> None:
    assert ends(run_interleaved([part(log, name, 4) for name in "abc"], "seed")) == [Exited(0)] * 3
    first, second, last = ("".join(drawn("abc", "seed", number)) for number in range(3))
    rounds = [first, first[::-1], second, second[::-1]]
    worked = "".join(f"{n}<{n}>" for r in rounds for n in r)
    assert log.read_text() == worked + "".join(f"{n}!" for n in last)


def test_the_seed_draws_who_comes_first(log: Path) -> None:
    begun = set()
    for seed in "abcdefgh":
        run_interleaved([part(log, name, 1) for name in "ab"], seed)
        begun.add(log.read_text()[0])
        log.write_text("")
    assert begun == {"a", "b"}


def test_who_has_fewer_turns_leaves_the_rest_to_the_others(log: Path) -> None:
    assert ends(run_interleaved([part(log, "a", 1), part(log, "b", 3)], "seed")) == [Exited(0)] * 2
    assert log.read_text().replace("a<a>", "").replace("a!", "") == "b<b>" * 3 + "b!"


@pytest.mark.parametrize("does", ["os._exit(3)", "giver.close(); time.sleep(0.2); os._exit(3)"])
def test_who_leaves_in_its_turn_stops_nobody_else(log: Path, does: str) -> None:
    found = run_interleaved([part(log, "a", 4, does), part(log, "b", 4)], "seed")
    assert ends(found) == [Exited(3), Exited(0)]
    assert log.read_text().count("b<b>") == 4


def test_who_hangs_in_its_turn_is_ended_by_its_limit_times_their_number(log: Path) -> None:
    hangs = part(log, "a", 4, "time.sleep(600)", limit=1.0)
    first, second = run_interleaved([hangs, part(log, "b", 4)], "seed")
    assert isinstance(first, Outcome)
    assert isinstance(first.end, Killed)
    assert first.end.by == "limit"
    assert first.usage.wall_seconds >= 2.0
    assert ends([second]) == [Exited(0)]


def test_who_takes_no_part_runs_to_its_end(log: Path) -> None:
    alone = here().prepare(Launch(argv=("sh", "-c", "sleep 0.1; echo here")))
    first, second = run_interleaved([alone, part(log, "b", 2)], "seed")
    assert isinstance(first, Outcome)
    assert (first.end, first.stdout) == (Exited(0), b"here\n")
    assert ends([second]) == [Exited(0)]


def test_who_cannot_be_started_is_told_in_its_place(log: Path) -> None:
    bad = here().prepare(Launch(argv=("true",)), launcher="mpich", mpirun="/nowhere/mpiexec")
    first, second = run_interleaved([bad, part(log, "b", 2)], "seed")
    assert isinstance(first, LaunchFailed)
    assert "/nowhere/mpiexec" in str(first)
    assert ends([second]) == [Exited(0)]


@contextlib.contextmanager
def interrupted_by(name: signal.Signals) -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(name, interrupt)
    try:
        yield
    finally:
        signal.signal(name, before)


def test_an_interrupt_ends_them_all(log: Path) -> None:
    interrupts = f"os.kill({os.getpid()}, signal.SIGUSR1); time.sleep(600)"
    parts = [part(log, "a", 4), part(log, "b", 4, interrupts)]
    with interrupted_by(signal.SIGUSR1), pytest.raises(KeyboardInterrupt):
        run_interleaved(parts, "seed")
    assert log.read_text().endswith("b<b>")
