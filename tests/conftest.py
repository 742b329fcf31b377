"""Shared by all tests: a command in the foreground, and a terminal with a user.

If CI is set, a test may be skipped because of the machine, not because of a missing package.
"""

import atexit
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "patient", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")  # a busy machine is no defect of what is tested

# A shell that starts the tests in the background has Ctrl-C and Ctrl-\ ignored, also in their
# children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_configure() -> None:
    """Use a temporary data folder, so that tests write nothing to the user's own."""
    if "XDG_DATA_HOME" not in os.environ:
        made = tempfile.mkdtemp(prefix="flowos-test-data-")
        os.environ["XDG_DATA_HOME"] = made
        atexit.register(shutil.rmtree, made, ignore_errors=True)


OF_THE_MACHINE = re.compile(
    r"\b(cores?|cpus?|GPU|x86-64|huge pages|cgroups?|groups|namespaces|root|right to mount"
    r"|too small|no disk|no number again|Python 3|not in Debian 12)\b"
)
"""In every reason that no set-up could mend."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple)
        reason = report.longrepr[2]
        if not OF_THE_MACHINE.search(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason}: what is missing must be named in tools/setup"
    if call.excinfo is not None and call.excinfo.errisinstance(subprocess.TimeoutExpired):
        report.sections.append(("processes when the time was out", processes()))
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """`no_cover` holds below xdist, too, where pytest-cov starts two tracers and stops one."""
    tracer = sys.gettrace()
    if item.get_closest_marker("no_cover"):
        sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


def processes() -> str:
    """Those of this user, where in the kernel each waits, and what it is."""
    columns = "pid,ppid,pgid,sid,stat,wchan:20,etimes,args"
    words = ("ps", "-U", str(os.geteuid()), "-ww", "--forest", "-o", columns)
    return subprocess.run(words, capture_output=True, text=True).stdout


FLOWOS = str(Path(sys.executable).with_name("flowos"))


class Terminal:
    """A program on a terminal of its own, as a user sees it."""

    def __init__(self, argv: Sequence[str], variables: Mapping[str, str]) -> None:
        self._unread = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a terminal's, whatever nohup began
            os.execvpe(argv[0], list(argv), {"TERM": "dumb", **variables})

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read_until(self, *wanted: str, seconds: float = 60.0) -> str:
        """The output up to the first of these. Raises AssertionError if none comes."""
        until = time.monotonic() + seconds
        while not (found := [w for w in wanted if w.encode() in self._unread]):
            ready, _, _ = select.select([self._fd], [], [], max(0.0, until - time.monotonic()))
            data = b""
            with suppress(OSError):  # EIO: its other end is closed
                data = os.read(self._fd, 1 << 16) if ready else b""
            assert data, f"wanted {wanted}, there is: {self._unread.decode(errors='replace')}"
            self._unread += data
        word = min(found, key=lambda w: self._unread.index(w.encode()))
        end = self._unread.index(word.encode()) + len(word.encode())
        shown, self._unread = self._unread[:end], self._unread[end:]
        return shown.decode(errors="replace")

    def read_number(self, name: str) -> int:
        """The text between NAME= and the next = in the output."""
        shown = ""
        while not (found := re.search(rf"{name}=(\d+)=", shown)):
            shown += self.read_until("=")
        return int(found[1])

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def modes(self) -> str:
        """The terminal modes that are on, among those a user notices."""
        local = termios.tcgetattr(self._fd)[3]
        return " ".join(
            name for name in ("ECHO", "ICANON", "ISIG") if local & int(getattr(termios, name))
        )

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGHUP)
        os.close(self._fd)
        until = time.monotonic() + 5.0
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Opens a terminal with bash at it, which shows `$> ` when it waits for a command."""
    opened: list[Terminal] = []

    def at(**variables: str) -> Terminal:
        words = ("bash", "--norc", "--noprofile", "--noediting", "-i")
        known = {**os.environ, "FLOWOS": FLOWOS, "SHELL": "/bin/sh", **variables}
        new = Terminal(words, {**known, "PS1": "$> ", "TERM": "dumb"})
        opened.append(new)
        new.read_until("$> ")
        return new

    yield at
    for one in opened:
        one.close()


class Foreground(subprocess.Popen[str]):
    """`flowos exec` as a program starts it that writes to it and reads from it."""

    def __init__(self, *words: str) -> None:
        """In a session of its own, without the terminal that the tests run on."""
        super().__init__(
            [FLOWOS, "exec", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )

    def read_line(self) -> str:
        assert self.stdout
        return self.stdout.readline().rstrip("\n")


@pytest.fixture
def opened() -> type[Foreground]:
    return Foreground


@pytest.fixture
def is_gone() -> Callable[..., bool]:
    """Waits for the end of a process; a zombie has ended."""

    def wait(pid: int, seconds: float = 30.0) -> bool:
        until = time.monotonic() + seconds
        while runs(pid):
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    def runs(pid: int) -> bool:
        try:
            return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            return False

    return wait
