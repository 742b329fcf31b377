"""`flowos exec` and `flowos shell` at a terminal: a job like any other of the person's shell."""

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import comes

COUNTS = """
import signal, sys, time
told = []
signal.signal(signal.SIGINT, lambda *_: told.append(1))
print("ready", flush=True)
until = time.monotonic() + 60
while not told and time.monotonic() < until: time.sleep(0.01)
time.sleep(0.6)
print("told", len(told), "times")
"""


def field_of(pid: int, number: int) -> str:
    """One of /proc/PID/stat, by its number in proc(5), which is 3 for the state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[number - 3]


def parent_of(pid: int) -> int:
    return int(field_of(pid, 4))


def wait_until_stopped(pid: int) -> None:
    until = time.monotonic() + 60.0
    while (state := field_of(pid, 3)) != "T":
        assert time.monotonic() < until, f"process {pid} is {state}"
        time.sleep(0.005)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    file = tmp_path / "counts.py"
    file.write_text(COUNTS)
    return file


def test_ctrl_c_reaches_the_command_once(terminal: Any, counts: Path) -> None:
    at = terminal()
    at.type(f"$FLOWOS exec -- python3 {counts}\n")
    at.read_until("\nready")
    at.type("\x03")
    at.read_until("told 1 times")


def test_an_interrupt_for_flowos_alone_reaches_the_command_once(
    terminal: Any, counts: Path
) -> None:
    at = terminal()
    at.type(f"$FLOWOS exec -- python3 {counts} & echo pid=$!=\n")
    pid = at.read_number("pid")
    at.read_until("ready")
    at.type("fg\n")
    at.read_until("exec")
    os.kill(pid, signal.SIGINT)
    at.read_until("told 1 times")


def test_ctrl_c_ends_a_command_that_does_nothing_about_it(terminal: Any) -> None:
    at = terminal()
    at.type("$FLOWOS exec -- sh -c 'echo rea''dy; exec sleep 60'\n")
    at.read_until("ready")
    at.type("\x03")
    at.read_until("$> ")
    at.type("echo code=$?=\n")
    at.read_until("code=130=")


def test_ctrl_z_stops_it_and_fg_goes_on(terminal: Any) -> None:
    at = terminal()
    at.type("$FLOWOS exec -- sh -c 'echo pid=$$=; read line; echo got $line'\n")
    pid = at.read_number("pid")
    at.type("\x1a")
    at.read_until("Stopped")
    at.read_until("$> ")
    wait_until_stopped(pid)  # bash waits for flowos alone; what still reads would read our `fg`
    at.type("fg\n")
    at.read_until("exec")
    at.type("it\n")
    at.read_until("got it")
    at.read_until("$> ")


def test_both_ends_of_a_pipe_have_the_terminal(terminal: Any) -> None:
    at = terminal()
    at.type("$FLOWOS exec -- sh -c 'read a; echo $a' | (read b </dev/tty; cat; echo b=$b)\n")
    at.type("one\ntwo\n")
    shown = at.read_until("b=one", "b=two")
    first, second = ("two", "one") if shown.endswith("b=one") else ("one", "two")
    assert re.search(rf"{first}\s+b={second}$", shown)


def test_a_new_window_size_is_told_to_the_command(terminal: Any) -> None:
    at = terminal()
    script = "trap 'stty size; exit' WINCH; echo rea''dy; while :; do sleep 0.02; done"
    at.type(f'$FLOWOS exec -- bash -c "{script}"\n')
    at.read_until("ready")
    at.resize(33, 101)
    at.read_until("33 101")


def test_a_terminal_is_sane_after_a_command_that_died_in_raw_mode(terminal: Any) -> None:
    at = terminal()
    at.type("$FLOWOS exec -- sh -c 'stty raw -echo; kill -9 $$'; echo en''d\n")
    at.read_until("end")
    assert at.modes == "ECHO ICANON ISIG"


def test_what_nohup_started_is_deaf_to_the_terminal(terminal: Any) -> None:
    at = terminal()
    at.type("(trap '' INT; $FLOWOS exec -- sh -c 'echo rea''dy; sleep 1; echo li''ves')\n")
    at.read_until("ready")
    at.type("\x03")
    at.read_until("lives")


def in_shell(at: Any) -> None:
    at.type("$FLOWOS shell\n")
    at.read_until("shell")
    at.type("PS1='in> '\n")
    at.read_until("\nin> ", "$ in> ", "# in> ")


def test_a_shell_controls_its_jobs_and_gives_the_terminal_back(
    terminal: Any, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    job.write_text(  # one process: a shell that a stop meets inside vfork() never stops
        "import signal, time\n"
        "signal.signal(signal.SIGCONT, lambda *_: print('again', flush=True))\n"
        "print('ready', flush=True)\nwhile True:\n    time.sleep(0.02)\n"
    )
    at = terminal(SHELL="/bin/bash")
    in_shell(at)
    at.type(f"{sys.executable} {job}\n")
    at.read_until("ready")
    at.type("\x1a")
    at.read_until("Stopped")
    at.read_until("in> ")
    at.type("fg\n")
    at.read_until("again")
    at.type("\x03")
    at.read_until("^C")  # a prompt of before may have been drawn twice
    at.read_until("in> ")
    at.type("exit 7\n")
    at.read_until("$> ")
    at.type("echo code=$?=\n")
    at.read_until("code=7=")
    assert at.modes == "ECHO ICANON ISIG"


def test_jobs_that_a_shell_left_end_with_it(terminal: Any, is_gone: Any) -> None:
    at = terminal(SHELL="/bin/bash")
    in_shell(at)
    at.type("sleep 61 & disown; echo pid=$!=\n")
    pid = at.read_number("pid")
    at.type("exit\n")
    at.read_until("$> ")
    assert is_gone(pid)


def test_the_persons_own_shell_goes_on_when_flowos_is_killed(terminal: Any, is_gone: Any) -> None:
    at = terminal(SHELL="/bin/bash")
    in_shell(at)
    at.type("echo pid=$$= parent=$PPID=\n")
    shell, init = at.read_number("pid"), at.read_number("parent")
    at.read_until("in> ")  # its shell has set the modes of its next prompt
    guardian = parent_of(init)
    os.kill(parent_of(guardian), signal.SIGKILL)
    at.read_until("Killed")
    assert is_gone(shell)
    # Of a line that is typed before they change the kernel may make an end of the input.
    assert comes(lambda: at.modes == "ECHO ICANON ISIG")
    at.type("echo go''es on\n")
    at.read_until("goes on")


def test_an_init_that_is_killed_takes_nothing_else_of_the_session_along(
    terminal: Any, is_gone: Any
) -> None:
    """What is left of it is looked for, but not among what the person's own shell has started."""
    at = terminal()
    at.type("sleep 62 & echo other=$!=\n")
    other = at.read_number("other")
    at.read_until("$> ")
    at.type("$FLOWOS exec -- sh -c 'echo command=$$= init=$PPID=; exec sleep 60'\n")
    command, init = at.read_number("command"), at.read_number("init")
    os.kill(init, signal.SIGKILL)
    at.read_until("vanished: flowos-init was killed")
    at.type("echo code=$?=\n")
    at.read_until("code=125=")
    assert is_gone(command)
    assert not is_gone(other, 0.0)


def test_what_a_shell_is_told_by_a_pipe_it_runs(terminal: Any) -> None:
    at = terminal()
    at.type("echo 'echo $((6*7)); exit 5' | $FLOWOS shell; echo code=$?=\n")
    shown = at.read_until("code=5=")
    assert "42" in shown
