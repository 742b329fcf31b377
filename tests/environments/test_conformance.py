"""One behaviour everywhere: bare, and in every runtime with every form of image that it enters."""

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.engine import RunningProcess, here
from flowos.model import (
    EnvironmentRefused,
    Exited,
    Killed,
    Launch,
    Lost,
    NotStarted,
    Outcome,
    Pairs,
    RuntimeFailed,
    to_plain,
)
from tests.waiting import PATIENCE_SECONDS, numbers_in

from .conftest import INSIDE, Place, all_gone, descendants

pytestmark = pytest.mark.usefixtures("nothing_is_left")

HOSTILE: Pairs = (
    ("PLAIN", "x"),
    ("EMPTY", ""),
    ("NEWLINES", "a\nb\n"),
    ("QUOTES", "\"'`"),
    ("SHELL", "$(touch /tmp/no) $HOME ``id`` ;&|<>*?~\\"),
    ("COMMAS", "=a,b=c,$z"),
    ("SPACES", "  a  b  "),
    ("NOT_UTF8", os.fsdecode(b"\xff\xfe\x80")),
    ("LONG", "y" * 100_000),
    ("with space", "1"),
    ("BASH_FUNC_x%%", "() { :; }"),
    ("LD_LIBRARY_PATH", "/no/such"),
    ("APPTAINERENV_X", "`touch /tmp/no`"),
)


def launch(place: Place, *argv: str) -> Launch:
    return Launch(argv=argv, env=place.env, variables=INSIDE)


def sh(place: Place, script: str) -> Launch:
    return launch(place, "/bin/sh", "-c", script)


def said(outcome: Outcome) -> str:
    assert outcome.ok, outcome
    return outcome.stdout.decode()


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome.end, (NotStarted, RuntimeFailed, Lost)), outcome
    assert "Traceback" not in outcome.end.reason
    assert "\n" not in outcome.end.reason
    return outcome.end.reason


class Busy:
    """A command with two children that ignore signals, one of them in a session of its own."""

    def __init__(self, place: Place, folder: Path, trap: str = "") -> None:
        script = f"""
            {trap}
            (setsid sh -c 'trap "" TERM HUP INT; echo $$ >>{folder}/pids; exec sleep 300' &
             sh -c 'trap "" TERM HUP INT; echo $$ >>{folder}/pids; exec sleep 300' &)
            echo $$ >>{folder}/pids
            while :; do sleep 0.02; done"""
        self.running: RunningProcess = here().start(sh(place, script))
        self.patience = place.patience
        self.pids = numbers_in(folder / "pids", 3, place.patience)
        if place.runtime == "qemu":  # which has processes of its own
            self.pids = numbers_in(self.running.folder / "qemu.pid", 1)
        started = (self.running.folder / "started.0").read_text().split()
        self.init, self.command = map(int, started[:2])

    def end(self) -> Outcome:
        outcome = self.running.wait(self.patience)
        assert all_gone(self.pids)
        return outcome


@pytest.mark.booted
def test_an_exit_code_and_both_outputs_come_back(place: Place) -> None:
    outcome = here().run(sh(place, "echo out; echo err >&2; exit 3"))
    assert outcome.end == Exited(3)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")


@pytest.mark.booted
def test_a_missing_command_is_told_with_the_path_it_was_looked_for_in(place: Place) -> None:
    assert reason(here().run(launch(place, "no-such-command"))) == (
        "no such command 'no-such-command' (looked in PATH=/bin:/usr/bin)"
    )


def test_a_file_that_may_not_be_executed_is_told_with_the_remedy(
    place: Place, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho hello\n")
    assert "chmod +x mends it" in reason(here().run(launch(place, str(program))))
    program.chmod(0o755)
    assert said(here().run(launch(place, str(program)))) == "hello\n"


def test_a_program_of_another_machine_is_told(place: Place, tmp_path: Path) -> None:
    program = tmp_path / "program"
    elf = bytearray(Path(sys.executable).read_bytes()[:4096])
    elf[18:20] = (0xF3 if elf[18] != 0xF3 else 0x3E).to_bytes(2, "little")  # e_machine: RISC-V
    program.write_bytes(elf)
    program.chmod(0o755)
    assert "no program of this machine: another architecture" in reason(
        here().run(launch(place, str(program)))
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_command_that_kills_itself_is_told_by_its_signal(place: Place, number: int) -> None:
    assert here().run(sh(place, f"kill -{number} $$")).end == Killed(number, "other")


@pytest.mark.booted
def test_a_stop_reaches_a_trap_and_leaves_nothing(place: Place, tmp_path: Path) -> None:
    busy = Busy(place, tmp_path, "trap 'echo told; exit 9' TERM")
    busy.running.stop(grace_seconds=PATIENCE_SECONDS)
    outcome = busy.end()
    assert outcome.end == Killed(signal.SIGTERM, "request")
    assert outcome.stdout == b"told\n"


def test_a_command_that_ignores_term_is_killed_after_the_grace(
    place: Place, tmp_path: Path
) -> None:
    busy = Busy(place, tmp_path, "trap '' TERM")
    busy.running.stop(grace_seconds=0.2)
    assert busy.end().end == Killed(signal.SIGKILL, "request")


def test_a_time_limit_ends_the_command(place: Place) -> None:
    outcome = here().run(replace(launch(place, "sleep", "300"), limit_seconds=0.5))
    assert outcome.end == Killed(signal.SIGTERM, "limit")


@pytest.mark.of_this_kernel
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_init_reaches_a_trap(place: Place, tmp_path: Path, number: int) -> None:
    busy = Busy(place, tmp_path, "trap 'exit 9' TERM INT")
    os.kill(busy.init, number)
    assert busy.end().end == Exited(9)


@pytest.mark.of_this_kernel
def test_a_killed_command_is_told_and_leaves_nothing(place: Place, tmp_path: Path) -> None:
    busy = Busy(place, tmp_path)
    os.kill(busy.command, signal.SIGKILL)
    assert busy.end().end == Killed(signal.SIGKILL, "other")


@pytest.mark.of_this_kernel
def test_a_killed_init_leaves_nothing_and_the_launch_is_lost(place: Place, tmp_path: Path) -> None:
    busy = Busy(place, tmp_path)
    os.kill(busy.init, signal.SIGKILL)
    assert "vanished: flowos-init was killed" in reason(busy.end())


def test_a_killed_runtime_leaves_nothing(place: Place, tmp_path: Path) -> None:
    busy = Busy(place, tmp_path)
    os.kill(busy.running.pid, signal.SIGKILL)
    assert not busy.end().ok


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_runtime_does_not_keep_a_stop_from_ending_all(
    place: Place, tmp_path: Path, number: int
) -> None:
    """Runtimes do with it what they like: hand it on, leave at once, or (ch-run) hang."""
    busy = Busy(place, tmp_path)
    os.kill(busy.running.pid, number)
    time.sleep(0.05)
    busy.running.stop(grace_seconds=0.2)
    assert not busy.end().ok


@pytest.mark.booted
def test_a_killed_supervisor_leaves_nothing(place: Place, tmp_path: Path) -> None:
    script = f"echo $$ >>{tmp_path}/pids; (setsid sleep 300 &) ; sleep 300"
    program = f"""
import sys, time
from flowos.engine import here
from flowos.model import *
here().start(from_plain(Launch, {to_plain(sh(place, script))!r}))
time.sleep(300)
"""
    before = descendants()
    with subprocess.Popen([sys.executable, "-c", program]) as supervisor:
        pids = numbers_in(tmp_path / "pids", 1, place.patience)
        if place.runtime == "qemu":  # which has processes of its own
            pids = []
        started = {*pids} | descendants().keys() - {*before, supervisor.pid}
        supervisor.kill()
    assert len(started) > len(pids)
    assert all_gone([*started])


def test_words_arrive_as_they_are(place: Place) -> None:
    words = ("a b", "", "$x", "--", "'", '"', "\n", "*", "`id`", os.fsdecode(b"\xff"))
    outcome = here().run(launch(place, "/bin/printf", "%s\\0", *words))
    assert outcome.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


def test_variables_arrive_byte_for_byte_and_no_other(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("APPTAINERENV_SECRET", "1")
    monkeypatch.setenv("PMIX_RANK", "3")
    found = here().run(replace(launch(place, "/bin/cat", "/proc/self/environ"), variables=HOSTILE))
    assert found.ok, found
    pairs = [os.fsdecode(item).partition("=") for item in found.stdout.split(b"\0") if item]
    assert {name: value for name, _, value in pairs} == dict(HOSTILE)


def test_standard_input_is_empty_unless_given(place: Place) -> None:
    cat = launch(place, "/bin/cat")
    assert here().run(cat).stdout == b""
    assert here().run(cat, stdin=b"x" * 300_000).stdout == b"x" * 300_000


def test_the_folder_is_the_one_asked_for(place: Place, tmp_path: Path) -> None:
    odd = tmp_path / "odd $x 'a'"
    odd.mkdir()
    assert said(here().run(replace(launch(place, "/bin/pwd"), cwd=odd))) == f"{odd}\n"


def test_a_missing_folder_is_named(place: Place) -> None:
    outcome = here().run(replace(launch(place, "/bin/true"), cwd=PurePath("/no/such")))
    assert isinstance(outcome.end, NotStarted)
    assert reason(outcome).startswith("no such folder to start in: /no/such")


def test_the_user_and_the_owner_of_what_is_written_are_the_caller(
    place: Place, tmp_path: Path
) -> None:
    script = f"id -u; id -g; touch {tmp_path}/made; stat -c %u:%g {tmp_path}/made"
    uid, gid = os.geteuid(), os.getegid()
    assert said(here().run(sh(place, script))).split() == [f"{uid}", f"{gid}", f"{uid}:{gid}"]
    made = (tmp_path / "made").stat()
    assert (made.st_uid, made.st_gid) == (uid, gid)


@pytest.mark.inside
def test_the_root_is_read_only(place: Place) -> None:
    outcome = here().run(sh(place, "touch /bin/mine /mine"))
    assert outcome.end == Exited(1)
    assert outcome.stderr.count(b"Read-only file system") == 2


@pytest.mark.of_this_kernel
def test_devices_shared_memory_temporary_files_and_processes_are_the_hosts(
    place: Place, tmp_path: Path
) -> None:
    shared = Path(f"/dev/shm/flowos-test-{os.getpid()}")
    shared.touch()
    (tmp_path / "here").touch()
    script = f"""
        test -e {shared} && test -e {tmp_path}/here && echo x >/dev/null && test -c /dev/zero
        test -d /proc/{os.getpid()} && test -e /sys/devices/system/cpu && echo all"""
    try:
        assert said(here().run(sh(place, script))) == "all\n"
    finally:
        shared.unlink()


@pytest.mark.of_this_kernel
def test_the_network_is_the_hosts(place: Place) -> None:
    inside = said(here().run(launch(place, "/bin/cat", "/proc/net/dev")))
    names = [line.split(":")[0] for line in inside.splitlines()[2:]]
    outside = Path("/proc/net/dev").read_text().splitlines()[2:]
    assert names == [line.split(":")[0] for line in outside]


def test_limits_are_the_callers(place: Place) -> None:
    kinds = {"n": resource.RLIMIT_NOFILE, "l": resource.RLIMIT_MEMLOCK, "s": resource.RLIMIT_STACK}
    scale = {"n": 1, "l": 1024, "s": 1024}
    script = "; ".join(f"ulimit -S{kind}" for kind in kinds)
    soft = [resource.getrlimit(what)[0] for what in kinds.values()]
    told = said(here().run(sh(place, script))).split()
    expected = [
        "unlimited" if value == resource.RLIM_INFINITY else str(value // scale[kind])
        for kind, value in zip(kinds, soft, strict=True)
    ]
    assert told == expected


@pytest.mark.of_this_kernel
def test_the_cgroup_is_the_callers(place: Place) -> None:
    assert said(here().run(launch(place, "/bin/cat", "/proc/self/cgroup"))) == (
        Path("/proc/self/cgroup").read_text()
    )


def test_no_descriptor_of_ours_or_the_runtimes_is_inherited(place: Place) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        told = said(here().run(launch(place, "/bin/ls", "/proc/self/fd"))).split()
    finally:
        os.close(reader)
        os.close(writer)
    assert told == ["0", "1", "2", "3"]


def test_eight_at_once_on_one_image(place: Place) -> None:
    running = [here().start(sh(place, f"sleep 0.1; echo {number}")) for number in range(8)]
    assert [said(each.wait(PATIENCE_SECONDS)) for each in running] == [f"{n}\n" for n in range(8)]


@pytest.mark.inside
@pytest.mark.parametrize("target", ["/data", "/not/there/yet", "/etc/below"])
def test_a_bind_shows_a_folder_whether_the_image_has_a_place_for_it_or_not(
    place: Place, tmp_path: Path, target: str
) -> None:
    (tmp_path / "in").write_text("seen\n")
    with here().ready(replace(place.requested, binds=((str(tmp_path), target),))) as ready:
        script = f"cat {target}/in; touch {target}/out"
        assert said(here().run(replace(sh(place, script), env=ready.env))) == "seen\n"
    assert (tmp_path / "out").exists()


@pytest.mark.inside
def test_a_bind_to_read_only_is_that_or_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("seen\n")
    requested = replace(place.requested, binds=((str(tmp_path), "/data:ro"),))
    if place.runtime == "ch-run":
        with pytest.raises(EnvironmentRefused, match=r"cannot bind for reading only.*bwrap"):
            here().ready(requested)
        return
    with here().ready(requested) as ready:
        outcome = here().run(replace(sh(place, "cat /data/in; touch /data/out"), env=ready.env))
    assert outcome.stdout == b"seen\n"
    assert b"Read-only file system" in outcome.stderr


@pytest.mark.inside
def test_a_file_can_be_bound(place: Place, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("seen\n")
    with here().ready(replace(place.requested, binds=((f"{tmp_path}/one", "/opt/two"),))) as ready:
        assert (
            said(here().run(replace(launch(place, "cat", "/opt/two"), env=ready.env))) == "seen\n"
        )


@pytest.mark.inside
def test_a_bind_of_what_is_not_there_is_refused_in_a_line(place: Place, tmp_path: Path) -> None:
    requested = replace(place.requested, binds=((f"{tmp_path}/nothing", "/data"),))
    with pytest.raises(EnvironmentRefused, match=f"there is no {tmp_path}/nothing") as told:
        here().ready(requested)
    assert "\n" not in str(told.value)
