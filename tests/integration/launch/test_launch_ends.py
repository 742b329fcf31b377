"""How launches end: every end is reported correctly, and nothing is left behind."""

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.engine import PreparedLaunch, RunningProcess, here
from flowos.engine.launch._prepared import Stdin
from flowos.model import (
    BARE,
    Exited,
    Killed,
    Launch,
    Lost,
    NotStarted,
    Outcome,
    RuntimeFailed,
)
from tests.waiting import PATIENCE_SECONDS, numbers_in

from .launched import all_gone, lives

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def launch(*argv: str, limit_seconds: float | None = None, cwd: str = "/tmp") -> Launch:
    return Launch(
        argv=argv, variables=here().variables(BARE), cwd=PurePath(cwd), limit_seconds=limit_seconds
    )


def sh(script: str, limit_seconds: float | None = None, cwd: str = "/tmp") -> Launch:
    return launch("sh", "-c", script, limit_seconds=limit_seconds, cwd=cwd)


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome.end, NotStarted)
    return outcome.end.reason


def init_pid(running: RunningProcess) -> int:
    return numbers_in(running.folder / "started.0", 4)[0]


def test_an_exit_code_and_both_outputs_come_back() -> None:
    outcome = here().run(sh("echo out; echo err >&2; exit 3"))
    assert outcome.end == Exited(3)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")
    assert not outcome.ok


def test_what_was_used_comes_back() -> None:
    usage = (
        here().run(sh("head -c 20000000 /dev/zero | tail -c 20000000 >/dev/null; sleep 0.05")).usage
    )
    assert usage.wall_seconds >= 0.05
    assert 0 < usage.user_seconds + usage.system_seconds < PATIENCE_SECONDS
    assert 20_000_000 < usage.max_rss_bytes < 1 << 30


def test_a_missing_command_is_told_with_the_path_it_was_looked_for_in() -> None:
    missing = Launch(argv=("no-such-command",), variables=(("PATH", "/bin:/nowhere"),))
    assert (
        reason(here().run(missing))
        == "no such command 'no-such-command' (looked in PATH=/bin:/nowhere)"
    )
    assert reason(here().run(launch("/no/such/file"))) == "no such command '/no/such/file'"


def test_a_file_that_cannot_be_executed_is_told_with_the_remedy(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("echo hello\n")
    assert "chmod +x mends it" in reason(here().run(launch(str(program))))
    program.chmod(0o755)
    assert "no program of this machine" in reason(here().run(launch(str(program))))
    program.write_text("#!/no/such/shell\n")
    assert "is there, but not the interpreter" in reason(here().run(launch(str(program))))
    program.write_text("#!/etc/passwd\n")
    assert "may be executed, but not the interpreter" in reason(here().run(launch(str(program))))
    assert "is a folder" in reason(here().run(launch(str(tmp_path))))


def test_a_folder_of_path_hides_no_command(tmp_path: Path) -> None:
    (tmp_path / "true").mkdir()
    found = Launch(argv=("true",), variables=(("PATH", f"{tmp_path}:/bin"),))
    assert here().run(found).ok
    assert reason(here().run(replace(found, variables=(("PATH", str(tmp_path)),)))) == (
        f"no such command 'true' (looked in PATH={tmp_path})"
    )


def test_a_missing_folder_is_named() -> None:
    assert reason(here().run(sh("true", cwd="/no/such"))) == "no such folder to start in: /no/such"
    assert (
        reason(here().run(sh("true", cwd="/etc/passwd")))
        == "no such folder to start in: /etc/passwd"
    )


def test_arguments_too_long_for_the_kernel_are_told_not_raised() -> None:
    long = Launch(argv=("true",), variables=(("LONG", "x" * 200_000),))
    assert "longer than the kernel takes" in reason(here().run(long))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_of_somebody_else_is_told(number: int) -> None:
    assert here().run(sh(f"kill -{number} $$")).end == Killed(number, "other")


def test_a_command_killed_from_outside_is_told() -> None:
    running = here().start(launch("sleep", "300"))
    command = numbers_in(running.folder / "started.0", 4)[1]
    os.kill(command, signal.SIGKILL)
    assert running.wait().end == Killed(signal.SIGKILL, "other")


def test_a_signal_to_the_init_reaches_a_trap(tmp_path: Path) -> None:
    script = f"trap 'exit 9' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.02; done"
    running = here().start(sh(script))
    numbers_in(tmp_path / "pid", 1)
    os.kill(init_pid(running), signal.SIGTERM)
    assert running.wait().end == Exited(9)


def test_a_time_limit_ends_the_command() -> None:
    assert here().run(launch("sleep", "300", limit_seconds=0.1)).end == Killed(
        signal.SIGTERM, "limit"
    )


def test_a_time_limit_that_is_not_reached_does_nothing() -> None:
    assert here().run(launch("sleep", "0.05", limit_seconds=60.0)).end == Exited(0)


def test_a_command_that_ignores_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    script = f"trap : TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.02; done"
    running = here().start(sh(script))
    numbers_in(tmp_path / "pid", 1)
    running.stop(grace_seconds=0.2)
    assert running.wait().end == Killed(signal.SIGKILL, "request")


def test_a_command_that_leaves_in_good_order_when_stopped_was_stopped(tmp_path: Path) -> None:
    script = f"trap 'echo bye; exit 0' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.02; done"
    running = here().start(sh(script))
    numbers_in(tmp_path / "pid", 1)
    running.stop(grace_seconds=PATIENCE_SECONDS)
    outcome = running.wait()
    assert outcome.end == Killed(signal.SIGTERM, "request")
    assert outcome.stdout == b"bye\n"


def test_a_second_stop_without_grace_ends_at_once(tmp_path: Path) -> None:
    script = f"trap '' TERM; (trap '' TERM; sleep 300) & echo $$ $! >{tmp_path}/pid; wait"
    running = here().start(sh(script))
    pids = numbers_in(tmp_path / "pid", 2)
    running.stop(grace_seconds=600.0)
    running.stop(grace_seconds=0.0)
    assert running.wait(PATIENCE_SECONDS).end == Killed(signal.SIGKILL, "request")
    assert all_gone(pids)


def test_a_stop_right_after_the_start_and_one_after_the_end_are_harmless() -> None:
    running = here().start(launch("sleep", "300"))
    running.stop()
    assert running.wait().end == Killed(signal.SIGTERM, "request")
    running.stop()
    assert running.wait().end == Killed(signal.SIGTERM, "request")


def test_waiting_can_be_bounded() -> None:
    running = here().start(launch("sleep", "300"))
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
    assert here().run(sh(script)).end == Exited(4)
    pids = numbers_in(tmp_path / "pids", 2)
    assert not any(map(lives, pids))


def test_a_killed_init_leaves_nothing_and_the_launch_is_lost(tmp_path: Path) -> None:
    script = f"sleep 300 & echo $$ $! >{tmp_path}/pids; wait"
    running = here().start(sh(script))
    pids = numbers_in(tmp_path / "pids", 2)
    os.kill(init_pid(running), signal.SIGKILL)
    end = running.wait().end
    assert isinstance(end, Lost)
    assert end.reason == "'sh' vanished: flowos-init was killed"
    assert all_gone(pids)


def test_an_end_without_anyone_waiting_leaves_nothing() -> None:
    running = here().start(launch("true"))
    until = time.monotonic() + PATIENCE_SECONDS
    while not running.done and time.monotonic() < until:
        time.sleep(0.01)
    assert not running.folder.exists()


def test_a_prepared_folder_takes_files_and_goes_with_the_launch() -> None:
    prepared = here().prepare(sh("exec cat $0/mine"))
    (prepared.folder / "mine").write_bytes(b"\x00own")
    (prepared.folder / "deeper").mkdir()
    again = here().prepare(launch("cat", str(prepared.folder / "mine")))
    assert again.start().wait().stdout == b"\x00own"
    assert prepared.start().wait().end == Exited(1)
    assert not prepared.folder.exists()


def test_a_prepared_launch_can_be_let_go() -> None:
    prepared = here().prepare(launch("true"))
    prepared.discard()
    assert not prepared.folder.exists()


def test_a_run_folder_that_somebody_cleans_away_does_not_hang_us(tmp_path: Path) -> None:
    until_told = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"
    running = here().start(sh(f"echo $$ >{tmp_path}/pid; {until_told}; echo printed"))
    numbers_in(tmp_path / "pid", 1)
    shutil.rmtree(running.folder)
    (tmp_path / "go").touch()
    outcome = running.wait(PATIENCE_SECONDS)
    assert isinstance(outcome.end, RuntimeFailed)
    assert "flowos-init: cannot write status.0: No such file or directory" in outcome.end.reason
    assert outcome.stdout == b"printed\n"


def test_files_of_others_in_the_run_folder_are_not_taken_for_answers() -> None:
    prepared = here().prepare(launch("true"))
    for name in ("status", "status.txt", "started.", "status.0.old", ".status.0"):
        (prepared.folder / name).write_text("nonsense")
    assert prepared.start().wait().ok


def test_an_interrupt_before_it_is_waited_for_ends_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fixture of all tests here sees what is left."""
    start = PreparedLaunch.start

    def interrupted(self: PreparedLaunch, *, stdin: Stdin = None) -> RunningProcess:
        start(self, stdin=stdin)
        raise KeyboardInterrupt

    monkeypatch.setattr(PreparedLaunch, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        here().run(sh("exec sleep 300"))


def test_an_interrupted_wait_ends_the_command(tmp_path: Path) -> None:
    def interrupt() -> None:
        numbers_in(tmp_path / "pid", 1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        here().run(sh(f"echo $$ >{tmp_path}/pid; exec sleep 300"))
    thread.join()
    assert all_gone(numbers_in(tmp_path / "pid", 1))
