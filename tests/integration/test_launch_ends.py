"""How launches end: every end is told as it was, and nothing is left behind."""

import errno
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath

import pytest

from flowos.engine import Running, own_variables, prepare, run, start
from flowos.engine._run_folder import session_folder
from flowos.model import (
    Exited,
    Killed,
    Launch,
    LaunchFailed,
    Lost,
    NotStarted,
    Outcome,
    RuntimeFailed,
)

PATIENCE_SECONDS = 20.0


def launch(*argv: str, limit_seconds: float | None = None, cwd: str = "/tmp") -> Launch:
    return Launch(
        argv=argv, variables=own_variables(), cwd=PurePath(cwd), limit_seconds=limit_seconds
    )


def sh(script: str, limit_seconds: float | None = None, cwd: str = "/tmp") -> Launch:
    return launch("sh", "-c", script, limit_seconds=limit_seconds, cwd=cwd)


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome.end, NotStarted)
    return outcome.end.reason


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def all_gone(pids: list[int]) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(lives, pids))


def numbers_in(path: Path, count: int) -> list[int]:
    """Wait until that many process ids stand in the file."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if path.exists() and len(found := path.read_text().split()) >= count:
            return [int(word) for word in found]
        time.sleep(0.01)
    raise AssertionError(f"{path} never got {count} numbers")


def init_pid(running: Running) -> int:
    return numbers_in(running.folder / "started.0", 4)[0]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    run(launch("true"))
    before = open_descriptors()
    yield
    assert open_descriptors() == before
    assert [path.name for path in session_folder().iterdir() if path.is_dir()] == []
    assert children() == []


def open_descriptors() -> list[str]:
    """Closed ones drop out, and so does that of the listing itself."""
    found = [path.name for path in Path("/proc/self/fd").iterdir()]
    return sorted(fd for fd in found if Path(f"/proc/self/fd/{fd}").is_symlink())


def children() -> list[str]:
    """Command lines of processes below this one, zombies too."""
    task = Path("/proc/self/task")
    found = [pid for t in task.iterdir() for pid in (t / "children").read_text().split()]
    return [Path(f"/proc/{pid}/cmdline").read_text() for pid in found]


def test_an_exit_code_and_both_outputs_come_back() -> None:
    outcome = run(sh("echo out; echo err >&2; exit 3"))
    assert outcome.end == Exited(3)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")
    assert not outcome.ok


def test_what_was_used_comes_back() -> None:
    usage = run(sh("head -c 20000000 /dev/zero | tail -c 20000000 >/dev/null; sleep 0.05")).usage
    assert usage.wall_seconds >= 0.05
    assert 0 < usage.user_seconds + usage.system_seconds < PATIENCE_SECONDS
    assert 20_000_000 < usage.max_rss_bytes < 1 << 30


def test_a_missing_command_is_told_with_the_path_it_was_looked_for_in() -> None:
    missing = Launch(argv=("no-such-command",), variables=(("PATH", "/bin:/nowhere"),))
    assert (
        reason(run(missing)) == "no such command 'no-such-command' (looked in PATH=/bin:/nowhere)"
    )
    assert reason(run(launch("/no/such/file"))) == "no such command '/no/such/file'"


def test_a_file_that_cannot_be_executed_is_told_with_the_remedy(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("echo hello\n")
    assert "chmod +x mends it" in reason(run(launch(str(program))))
    program.chmod(0o755)
    assert "no program of this machine" in reason(run(launch(str(program))))
    program.write_text("#!/no/such/shell\n")
    assert "is there, but what it names to run it is not" in reason(run(launch(str(program))))


def test_a_missing_folder_is_named() -> None:
    assert reason(run(sh("true", cwd="/no/such"))) == "no such folder to start in: /no/such"
    assert reason(run(sh("true", cwd="/etc/passwd"))) == "no such folder to start in: /etc/passwd"


def test_arguments_too_long_for_the_kernel_are_told_not_raised() -> None:
    long = Launch(argv=("true",), variables=(("LONG", "x" * 200_000),))
    assert "longer than the kernel takes" in reason(run(long))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_of_somebody_else_is_told(number: int) -> None:
    assert run(sh(f"kill -{number} $$")).end == Killed(number, "other")


def test_a_command_killed_from_outside_is_told() -> None:
    running = start(launch("sleep", "300"))
    command = numbers_in(running.folder / "started.0", 4)[1]
    os.kill(command, signal.SIGKILL)
    assert running.wait().end == Killed(signal.SIGKILL, "other")


def test_a_signal_to_the_init_reaches_a_trap(tmp_path: Path) -> None:
    script = f"trap 'exit 9' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.02; done"
    running = start(sh(script))
    numbers_in(tmp_path / "pid", 1)
    os.kill(init_pid(running), signal.SIGTERM)
    assert running.wait().end == Exited(9)


def test_a_time_limit_ends_the_command() -> None:
    assert run(launch("sleep", "300", limit_seconds=0.1)).end == Killed(signal.SIGTERM, "limit")


def test_a_time_limit_that_is_not_reached_does_nothing() -> None:
    assert run(launch("sleep", "0.05", limit_seconds=60.0)).end == Exited(0)


def test_a_command_that_ignores_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    script = f"trap 'echo told' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.02; done"
    running = start(sh(script))
    numbers_in(tmp_path / "pid", 1)
    running.stop(grace_seconds=0.2)
    outcome = running.wait()
    assert outcome.end == Killed(signal.SIGKILL, "request")
    assert outcome.stdout == b"told\n"


def test_a_command_that_leaves_in_good_order_when_stopped_was_stopped(tmp_path: Path) -> None:
    script = f"trap 'echo bye; exit 0' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.02; done"
    running = start(sh(script))
    numbers_in(tmp_path / "pid", 1)
    running.stop()
    outcome = running.wait()
    assert outcome.end == Killed(signal.SIGTERM, "request")
    assert outcome.stdout == b"bye\n"


def test_a_second_stop_without_grace_ends_at_once(tmp_path: Path) -> None:
    script = f"trap '' TERM; (trap '' TERM; sleep 300) & echo $$ $! >{tmp_path}/pid; wait"
    running = start(sh(script))
    pids = numbers_in(tmp_path / "pid", 2)
    running.stop(grace_seconds=600.0)
    running.stop(grace_seconds=0.0)
    assert running.wait(PATIENCE_SECONDS).end == Killed(signal.SIGKILL, "request")
    assert all_gone(pids)


def test_a_stop_right_after_the_start_and_one_after_the_end_are_harmless() -> None:
    running = start(launch("sleep", "300"))
    running.stop()
    assert running.wait().end == Killed(signal.SIGTERM, "request")
    running.stop()
    assert running.wait().end == Killed(signal.SIGTERM, "request")


def test_waiting_can_be_bounded() -> None:
    running = start(launch("sleep", "300"))
    with pytest.raises(TimeoutError, match=r"'sleep' still runs after 0\.01 s"):
        running.wait(0.01)
    assert not running.done
    running.stop()
    running.wait()
    assert running.done


def test_orphaned_grandchildren_are_gone_when_wait_returns(tmp_path: Path) -> None:
    script = f"""
        (setsid sh -c 'trap "" TERM HUP; echo $$ >>{tmp_path}/pids; exec sleep 300' &
         sh -c 'trap "" TERM HUP; echo $$ >>{tmp_path}/pids; exec sleep 300' &)
        while [ "$(wc -l <{tmp_path}/pids)" != 2 ]; do sleep 0.01; done; exit 4"""
    assert run(sh(script)).end == Exited(4)
    pids = numbers_in(tmp_path / "pids", 2)
    assert not any(map(lives, pids))


def test_a_killed_init_leaves_nothing_and_the_launch_is_lost(tmp_path: Path) -> None:
    script = f"sleep 300 & echo $$ $! >{tmp_path}/pids; wait"
    running = start(sh(script))
    pids = numbers_in(tmp_path / "pids", 2)
    os.kill(init_pid(running), signal.SIGKILL)
    end = running.wait().end
    assert isinstance(end, Lost)
    assert end.reason == "'sh' vanished: flowos-init was killed"
    assert all_gone(pids)


def test_fifty_megabytes_come_through_whole() -> None:
    outcome = run(launch("head", "-c", str(50 << 20), "/dev/zero"))
    assert outcome.ok
    assert outcome.stdout == bytes(50 << 20)


def test_two_full_pipes_do_not_block_each_other() -> None:
    script = "for i in 1 2 3; do head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; done"
    outcome = run(sh(script))
    assert (len(outcome.stdout), len(outcome.stderr)) == (3_000_000, 3_000_000)


def test_output_beyond_the_bound_is_left_out_in_the_middle_and_said_so() -> None:
    script = "echo first; head -c 1000000 /dev/zero; echo last"
    outcome = run(sh(script), most_output_bytes=100)
    head, tail = outcome.stdout[:50], outcome.stdout[-50:]
    assert (head, tail) == (b"first\n" + bytes(44), bytes(45) + b"last\n")
    assert outcome.stdout[50:-50] == b"\n[flowos: 999911 bytes left out here]\n"


def test_an_endless_printer_is_ended_by_its_limit_within_its_bound() -> None:
    outcome = run(launch("yes", limit_seconds=0.3), most_output_bytes=10_000)
    assert outcome.end == Killed(signal.SIGTERM, "limit")
    assert len(outcome.stdout) < 10_100


def test_two_hundred_launches_leave_nothing() -> None:
    for number in range(200):
        assert run(launch("sh", "-c", f"exit {number % 256}")).end == Exited(number % 256)


def test_launches_of_many_threads_keep_apart() -> None:
    def one(number: int) -> tuple[bytes, bytes]:
        outcome = run(sh(f"echo {number}; sleep 0.01; echo e{number} >&2"))
        return outcome.stdout, outcome.stderr

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(80)))
    assert answers == [(b"%d\n" % n, b"e%d\n" % n) for n in range(80)]


def test_many_run_at_once_and_end_in_any_order() -> None:
    running = [start(sh(f"sleep 0.{n % 7}; exit {n}")) for n in range(40)]
    assert [r.wait().end for r in running] == [Exited(n) for n in range(40)]


def test_an_end_without_anyone_waiting_leaves_nothing() -> None:
    running = start(launch("true"))
    until = time.monotonic() + PATIENCE_SECONDS
    while not running.done and time.monotonic() < until:
        time.sleep(0.01)
    assert not running.folder.exists()


def test_several_threads_may_wait_for_one_launch() -> None:
    running = start(launch("sleep", "0.1"))
    seen: list[Outcome] = []
    threads = [threading.Thread(target=lambda: seen.append(running.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.end for outcome in seen] == [Exited(0)] * 4


def test_a_prepared_folder_takes_files_and_goes_with_the_launch() -> None:
    prepared = prepare(sh("exec cat $0/mine"))
    (prepared.folder / "mine").write_bytes(b"\x00own")
    (prepared.folder / "deeper").mkdir()
    again = prepare(launch("cat", str(prepared.folder / "mine")))
    assert again.start().wait().stdout == b"\x00own"
    assert prepared.start().wait().end == Exited(1)
    assert not prepared.folder.exists()


def test_a_prepared_launch_can_be_let_go() -> None:
    prepared = prepare(launch("true"))
    prepared.discard()
    assert not prepared.folder.exists()


def test_a_run_folder_that_somebody_cleans_away_does_not_hang_us(tmp_path: Path) -> None:
    running = start(sh(f"echo $$ >{tmp_path}/pid; sleep 0.2; echo printed"))
    numbers_in(tmp_path / "pid", 1)
    shutil.rmtree(running.folder)
    outcome = running.wait(PATIENCE_SECONDS)
    assert isinstance(outcome.end, RuntimeFailed)
    assert "flowos-init: cannot write status.0: No such file or directory" in outcome.end.reason
    assert outcome.stdout == b"printed\n"


def test_files_of_others_in_the_run_folder_are_not_taken_for_answers() -> None:
    prepared = prepare(launch("true"))
    for name in ("status", "status.txt", "started.", "status.0.old", ".status.0"):
        (prepared.folder / name).write_text("nonsense")
    assert prepared.start().wait().ok


def test_ends_are_noticed_on_a_kernel_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(pid: int) -> int:
        raise OSError(errno.ENOSYS, f"no pidfd for {pid}")

    monkeypatch.setattr(os, "pidfd_open", none)
    running = [start(sh(f"sleep 0.05; exit {n}")) for n in range(5)]
    assert [r.wait(PATIENCE_SECONDS).end for r in running] == [Exited(n) for n in range(5)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_of_this_process_keeps_no_launch_alive() -> None:
    """A copy of the FIFO's end in a child would keep the command from noticing the closing."""
    running = start(launch("sleep", "300"))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writer)
        good = run(launch("true")).ok
        os.read(reader, 1)
        os._exit(0 if good else 1)
    running.stop()
    end = running.wait().end
    os.close(reader)
    os.close(writer)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert end == Killed(signal.SIGTERM, "request")


def test_an_interrupted_wait_ends_the_command(tmp_path: Path) -> None:
    def interrupt() -> None:
        numbers_in(tmp_path / "pid", 1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(sh(f"echo $$ >{tmp_path}/pid; exec sleep 300"))
    thread.join()
    assert all_gone(numbers_in(tmp_path / "pid", 1))


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
        run(bad)
    assert "\n" not in str(refused.value)


def test_an_unknown_or_missing_launcher_is_one_line() -> None:
    with pytest.raises(LaunchFailed, match="unknown launcher 'mpi'"):
        run(launch("true"), launcher="mpi")
    with pytest.raises(LaunchFailed, match="no such launcher '/no/mpirun'"):
        run(launch("true"), launcher="openmpi", starter="/no/mpirun")


def test_more_ranks_than_cpus_are_refused_unless_asked_for() -> None:
    many = Launch(argv=("x",), ranks=1 + len(os.sched_getaffinity(0)))
    with pytest.raises(LaunchFailed, match=r"ranks with 1 core each on \d+ cpus; ask for fewer"):
        run(many, launcher="other", starter=sys.executable)
