"""Nodes are held by keepers, and freed however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._allocation import SILENCE_SECONDS, Allocation, allocate
from flowos.model import Ask, Pool, SliceRefused
from tests.waiting import PATIENCE_SECONDS, comes

from .box import Box
from .test_box import processes_of, read_of

POOL = Pool(name="c", kind="slurm", nodes=2)
SESSION = LaunchSession()

HOLDS = """
from flowos.engine.launch._session import LaunchSession
from flowos.engine.slurm._allocation import allocate
from flowos.model import Ask, Pool
held = allocate(LaunchSession(), Pool(name="c", kind="slurm", nodes=2), Ask(nodes=2), print, 4.0)
print("held", *[node.name for node in held.nodes], flush=True)
input()
"""
GROUPS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None]
"""How a driver dies; None: with all that it has started, as when its login node does."""


@pytest.fixture(autouse=True)
def cluster(box: Box, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is left of a test is nothing."""
    for name, value in box.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_JOB_ID", "999999")  # of a job around us
    monkeypatch.setenv("SLURM_NNODES", "7")
    await_free(box)
    yield
    await_free(box)


def await_free(box: Box, seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until no job is there, and all nodes can be had."""
    states = ("sinfo", "--noheader", "--Node", "--format=%T")

    def is_free() -> bool:
        busy = box.ask("squeue", "--noheader")
        return not busy and box.ask(*states).split() == ["idle", "idle"]

    if not comes(is_free, seconds):
        found = [box.ask("squeue"), box.ask("squeue", "--steps"), box.ask("sinfo", "--Node")]
        found += [f"{log}\n{log.read_text()[-1500:]}" for log in box.folder.glob("*.log")]
        box.run("scancel", "--user", str(os.geteuid()))  # for the tests that follow
        pytest.fail("\n".join(("nodes are not freed:", *found)))


def space_of(pid: int) -> Path | None:
    """Of a process that may end meanwhile."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/ns/pid").readlink()
    return None


def ours_of(box: Box) -> list[int]:
    """Processes that talk to the cluster, of our own namespace, but for this one."""
    mine = Path("/proc/self/ns/pid").readlink()
    found = [pid for pid in processes_of(box.folder) if space_of(pid) == mine]
    return [
        pid for pid in found if pid != os.getpid() and b"inside.py" not in read_of(pid, "cmdline")
    ]


def send(signum: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signum)


def stopped(box: Box) -> bool:
    """Stops them; are all stopped, also those that were started meanwhile?"""
    send(signal.SIGSTOP, ours_of(box))
    states = (read_of(pid, "stat").rpartition(b") ")[2][:1] for pid in ours_of(box))
    return all(state in (b"T", b"Z", b"") for state in states)


def hold(nodes: int = 2, pool: Pool = POOL) -> Allocation:
    return allocate(SESSION, pool, Ask(nodes=nodes), print)


def test_nodes_are_held_until_they_are_freed(box: Box) -> None:
    held = hold()
    assert [node.name for node in held.nodes] == ["n1", "n2"]
    assert box.ask("squeue", "--noheader", "--format=%A %T %D") == f"{held.job} RUNNING 2"
    assert held.ended() is None
    step = ("srun", f"--jobid={held.job}", "--overlap", "--nodes=2", "printenv", "SLURMD_NODENAME")
    assert sorted(box.ask(*step).split()) == ["n1", "n2"]
    held.free()
    held.free()
    assert held.ended()


def test_nodes_stay_held_for_longer_than_a_keeper_bears_silence() -> None:
    for silence in (1.0, 4.0, 16.0):  # a busy machine is silent for long
        held = allocate(SESSION, POOL, Ask(nodes=2), print, silence_seconds=silence)
        stayed = held.ended(3 * silence) is None
        held.free()
        if stayed:
            break
    assert stayed


def test_while_it_waits_slurm_says_why(box: Box) -> None:
    box.run("sbatch", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 1000")
    reasons = []

    def on_waiting(reason: str) -> None:
        reasons.append(reason)
        box.run("scancel", "--state=RUNNING", "--user", str(os.geteuid()))

    held = allocate(SESSION, POOL, Ask(nodes=2), on_waiting)
    assert reasons[0] in ("Resources", "Priority")
    held.free()


def test_an_interrupt_while_it_waits_leaves_nothing(box: Box) -> None:
    with_others = hold()

    def interrupted(reason: str) -> None:
        raise KeyboardInterrupt(reason)

    with pytest.raises(KeyboardInterrupt):
        allocate(SESSION, POOL, Ask(nodes=1), interrupted)
    assert box.ask("squeue", "--noheader", "--format=%A") == with_others.job
    with_others.free()


def test_what_slurm_refuses_is_refused_in_its_words() -> None:
    with pytest.raises(SliceRefused, match="Invalid partition name specified"):
        hold(pool=Pool(name="c", kind="slurm", partition="nope"))


def test_an_end_that_another_asks_for_is_seen(box: Box) -> None:
    held = hold()
    box.run("scancel", held.job)
    assert held.ended(PATIENCE_SECONDS)
    held.free()


def sruns(box: Box) -> list[int]:
    """Both processes of the one srun that holds nodes, the first one first."""
    found = [pid for pid in processes_of(box.folder) if read_of(pid, "cmdline")[:5] == b"srun\0"]
    assert len(found) == 2
    return sorted(found)


def test_nodes_are_freed_when_their_step_is_ended_and_srun_does_nothing(box: Box) -> None:
    """As when srun is killed while it ends the step."""
    held = hold()
    runs = sruns(box)
    for pid in runs:
        os.kill(pid, signal.SIGSTOP)
    box.run("scancel", "--signal=TERM", f"{held.job}.0")
    runs_still = not comes(lambda: box.ask("squeue", "--noheader", "--format=%T") != "RUNNING")
    for pid in runs:
        with suppress(ProcessLookupError):  # what the first one leaves is ended with it
            os.kill(pid, signal.SIGKILL)
    held.free()
    assert not runs_still


@pytest.mark.parametrize("count", [1, 2])
def test_nodes_are_freed_when_their_srun_is_killed(box: Box, count: int) -> None:
    """Which is two processes, and the second would free them."""
    held = hold()
    for pid in sruns(box)[:count]:
        with suppress(ProcessLookupError):  # what the first one leaves is ended with it
            os.kill(pid, signal.SIGKILL)
    assert held.ended(PATIENCE_SECONDS)
    held.free()


@pytest.mark.parametrize("signum", GROUPS)
def test_nodes_are_freed_when_their_process_dies(box: Box, signum: signal.Signals | None) -> None:
    words = (sys.executable, "-c", HOLDS)
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as driver:
        assert driver.stdout
        assert driver.stdout.readline() == "held n1 n2\n"
        driver.send_signal(signum or signal.SIGSTOP)
        if signum is None:
            # All at once, as a login node that fails: srun's other process is stopped before it can
            # end the step, which without it would leave the job. Children first: Linux continues
            # stopped processes whose parent ends.
            assert comes(lambda: stopped(box))
            send(signal.SIGKILL, sorted(ours_of(box), reverse=True))
        driver.communicate()
    # Slurm may not tell the keepers that all of ours is gone: then they wait for a word.
    await_free(box, PATIENCE_SECONDS + (0.0 if signum else SILENCE_SECONDS))
