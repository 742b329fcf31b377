"""The line that shows progress on a terminal: what is printed meanwhile stays whole."""

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PYTHON = sys.executable
XTERM = {**os.environ, "TERM": "xterm"}
RUN = "$FLOWOS run program.py n=3"
PROGRESS = re.compile(r"\[[#.]{24}\] \d+/\d+ \w+s")

SEEN = "[time.sleep(0.01) for _ in iter(lambda: os.path.exists('seen'), True)]"
"""Waits until the terminal has shown the line that the test waits for."""

WORKS = f"""
    {SEEN}
    time.sleep(0.05)
    if n % 5 == 0:
        long = "of the work, and what is longer than a line of progress is, " * 2
        sys.stdout.write(f"item {{n}} {{long}}\\n")
    if n % 5 == 1:
        sys.stderr.write(f"warning {{n}}\\n")
"""
"""At once: `print` writes in pieces, and other workers between them."""
NAPS = "[time.sleep(0.05) for _ in range(1200)]"
"""A minute. CPython forgets an interrupt that comes as a sleep begins, until the sleep ends."""


def flow_of(body: str) -> str:
    return f"""
import os, subprocess, sys, time
import flowos as fo

@fo.task
def work(n: fo.int64) -> fo.int64:
    {body.strip()}
    return n

flow = fo.flow_output(work(fo.flow_input("n", fo.int64)))
"""


FLOW = flow_of(WORKS)


def screen_of(shown: str) -> list[str]:
    """The lines that a terminal shows in the end; it is as wide as the longest of them."""
    lines, column = [""], 0
    for each in re.findall(r"\x1b\[K|[^\x1b]", shown):
        line = lines[-1]
        if each == "\x1b[K":
            lines[-1] = line[:column]
        elif each == "\r":
            column = 0
        elif each == "\n":
            lines.append("")
            column = 0
        else:
            lines[-1] = line[:column].ljust(column) + each + line[column + 1 :]
            column += 1
    return lines


@pytest.fixture
def shown(terminal: Callable[..., Any], tmp_path: Path) -> Callable[..., str]:
    """All that a program, or a command, writes to a terminal.

    What waits for `SEEN` goes on when `line` was written; `typed` is typed `late` seconds
    after the program says `ready`.
    """

    def run(
        program: str,
        *words: str,
        line: str = "",
        typed: str = "",
        late: float = 0.0,
        name: str = "xterm",
    ) -> str:
        (tmp_path / "program.py").write_text(program)
        at = terminal(**{**os.environ, "PYTHONUNBUFFERED": ""})
        command = " ".join(words) or f"{PYTHON} {tmp_path}/program.py"
        at.type(f"cd {tmp_path}; stty cols 90; clear -x; echo be''gin; TERM={name} {command}; ")
        at.type("echo code=$?=\n")
        at.read_until("begin\r\n")
        before = ""
        if line:
            before = at.read_until(line)
            (tmp_path / "seen").touch()
        if typed:
            before += at.read_until("ready")
            time.sleep(late)
            at.type(typed)
        return str(before + at.read_until("code=").removesuffix("code=") + at.read_until("="))

    return run


@pytest.mark.parametrize("way", ["thread", "process"])
def test_what_tasks_print_is_whole_and_the_line_is_gone_at_the_end(
    shown: Callable[..., str], way: str
) -> None:
    out = shown(
        FLOW
        + f"""
with fo.slice(flow, workers={way!r}, progress=True) as s:
    print("sum", sum(r[0] for r in s.map(range(40))))
print("after", sys.stdout is sys.__stdout__)
""",
        line="items",
    )
    assert PROGRESS.search(out)
    lines = screen_of(out)
    assert sorted(line for line in lines if line.startswith("warning")) == sorted(
        f"warning {n}" for n in range(1, 40, 5)
    )
    items = [line for line in lines if line.startswith("item")]
    assert len(items) == 8
    assert all(re.fullmatch(r"item \d+ (of the work, and [^,]* is, ){2}", line) for line in items)
    assert not [line for line in lines if "left" in line or "[#" in line]
    assert lines[-3:] == ["sum 780", "after True", "0="]
    assert len(lines) == 8 + 8 + 3


def test_flowos_run_shows_it_by_itself_and_not_when_asked_not_to(
    shown: Callable[..., str],
) -> None:
    out = shown(flow_of(SEEN), RUN, line="flow [........................] 0/1 tasks")
    assert screen_of(out) == ["work = 3", "0="]
    for words in ("--no-progress", "--json", "2>err", "2>&1 | cat"):
        out = shown(flow_of("time.sleep(0.9)"), RUN, words)
        assert "tasks" not in out
        assert "\x1b" not in out


def test_a_terminal_that_cannot_rewrite_a_line_shows_none(shown: Callable[..., str]) -> None:
    assert screen_of(shown(flow_of("time.sleep(0.9)"), RUN, name="dumb")) == ["work = 3", "0="]


def test_ctrl_c_leaves_no_line_behind(shown: Callable[..., str]) -> None:
    out = shown(
        flow_of(f"{SEEN}; print('rea' + 'dy', flush=True); {NAPS}"),
        RUN,
        line="0/1 tasks",
        typed="\x03",
    )
    lines = screen_of(out)
    assert lines[-1] == "130="
    assert lines[-2].endswith("flowos run: interrupted")
    assert not [line for line in lines if "tasks" in line]


def test_a_failure_is_printed_without_the_line(shown: Callable[..., str]) -> None:
    out = shown(flow_of(f"{SEEN}; raise ValueError(n)"), RUN, line="0/1 tasks")
    lines = screen_of(out)
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2].startswith("flowos run: task 'work' raised ValueError: 3")
    assert lines[-1] == "1="


@pytest.mark.parametrize("line", ["", "0/1 tasks"])  # before and after there is a line
@pytest.mark.parametrize(
    "ask",
    [
        "input('rea' + 'dy? ')",
        "(print('rea' + 'dy? ', end='', flush=True) or sys.stdin.readline().strip())",
    ],
)
def test_a_prompt_has_the_terminal_for_itself(
    shown: Callable[..., str], ask: str, line: str
) -> None:
    waits = f"{SEEN}; " if line else ""
    body = f"{waits}name = {ask}; time.sleep(1); print('hello', name)"
    out = shown(flow_of(body), RUN, line=line, typed="me\n", late=1.0)
    assert "tasks" not in out.split("ready?")[1].split("hello")[0]
    assert screen_of(out) == ["ready? me", "hello me", "work = 3", "0="]


def test_what_writes_to_the_descriptor_has_the_terminal_for_itself(
    shown: Callable[..., str],
) -> None:
    body = f"{SEEN}; subprocess.run(['echo', 'below'], stdout=sys.stdout); time.sleep(0.5)"
    out = shown(flow_of(body), RUN, line="0/1 tasks")
    assert screen_of(out) == ["below", "work = 3", "0="]


def test_what_holds_a_stream_since_before_prints_above_the_line(shown: Callable[..., str]) -> None:
    body = f"""
    {SEEN}
    time.sleep(0.1)
    logging.warning("logged %d", n)
    sys.stdout.buffer.write(b"bytes %d\\n" % n)
    kept.write("kept\\n")
    """
    out = shown(
        "import logging, sys\nlogging.basicConfig()\nkept = sys.stderr\n"
        + flow_of(body)
        + """
with fo.slice(flow, progress=True) as s:
    list(s.map(range(20)))
print(vars(sys.stdout.buffer).keys() & {"write"}, vars(sys.stdout).keys() & {"fileno"})
""",
        line="items",
    )
    lines = screen_of(out)
    logged = [f"WARNING:root:logged {i}" for i in range(20)]
    assert sorted(lines[:-2]) == sorted(
        [*logged, *(f"bytes {i}" for i in range(20)), *["kept"] * 20]
    )
    assert lines[-2:] == ["set() set()", "0="]


def test_many_slices_rewrite_the_line_as_seldom_as_one(shown: Callable[..., str]) -> None:
    out = shown(
        flow_of("time.sleep(0.1)")
        + """
import threading
began = time.monotonic()

def use() -> None:
    with fo.slice(flow, progress=True) as s:
        list(s.map(range(20)))

threads = [threading.Thread(target=use) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(f"seconds={time.monotonic() - began:.0f}=")
"""
    )
    seconds = int(re.findall(r"seconds=(\d+)=", out)[0])
    assert 1 <= len(re.findall(r"\d+/\d+ items", out)) / 2 <= 12 * (seconds + 1)
    assert screen_of(out) == [f"seconds={seconds}=", "0="]


def test_slices_within_tasks_share_the_line(shown: Callable[..., str]) -> None:
    out = shown(
        FLOW
        + """
@fo.task
def sums(n: fo.int64) -> fo.int64:
    with fo.slice(flow, progress=True) as s:
        return sum(r[0] for r in s.map(range(n)))

with fo.slice(sums(fo.flow_input("n", fo.int64)), progress=True) as s:
    print("sum", s.run(40))
""",
        line="items",
    )
    assert re.search(r"flow  0/1 tasks  sums( for \d+ s)? \| flow  \d+/40 items", out)
    lines = screen_of(out)
    assert lines[-2:] == ["sum [780]", "0="]
    assert len(lines) == 8 + 8 + 2


def test_a_forked_child_prints_while_the_line_is_there(shown: Callable[..., str]) -> None:
    out = shown(
        f"""
import os, sys, time
import flowos as fo

@fo.task
def forks(n: fo.int64) -> fo.int64:
    {SEEN}
    for i in range(20):
        child = os.fork()
        if child == 0:
            print("child", i, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.02)
    return n

with fo.slice(forks(fo.flow_input("n", fo.int64)), progress=True) as s:
    print(s.run(1))
""",
        line="0/1 tasks",
    )
    assert [line for line in screen_of(out) if line == "[1]"]
    assert all(f"child {i}" in out for i in range(20))


def test_a_terminal_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "done"
    (tmp_path / "program.py").write_text(
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        + flow_of("time.sleep(0.05)")
        + f"""
with fo.slice(flow, progress=True) as s:
    total = sum(r[0] for r in s.map(n for n in [2] * 100))
open({str(file)!r}, "w").write(str(total))
"""
    )
    ours, its = pty.openpty()
    words = (PYTHON, str(tmp_path / "program.py"))
    program = subprocess.Popen(words, stdin=its, stdout=its, stderr=its, env=XTERM)
    os.close(its)
    out = b""
    while b"items" not in out:
        out += os.read(ours, 1 << 16)
    os.close(ours)
    assert program.wait(timeout=300) == 0
    assert file.read_text() == "200"


def test_lines_of_an_unbuffered_program_are_seen_as_they_come(
    terminal: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(flow_of(f"print('first'); {NAPS}"))
    at = terminal(PYTHONUNBUFFERED="1")
    at.type(f"$FLOWOS run {tmp_path}/program.py n=5\n")
    at.read_until("first\r\n")
    at.type("\x03")
    at.read_until("interrupted")
