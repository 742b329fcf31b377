"""What a program prints, within the time that there is for all of them.

Standard library only, Python 3.8 or newer: collect_software.py imports it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time

MAX_BUSY = 3.0
"""A machine that is as busy gets so many times the seconds: what waits does not hang."""


def busy() -> float:
    """How many want each core, within these limits."""
    try:
        wanted = os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        wanted = 1.0
    return min(MAX_BUSY, max(1.0, wanted))


COMMAND_SECONDS = 5.0 * busy()
ALL_SECONDS = 15.0 * busy()
MAX_SAID = 4000

ENDS_AT = time.monotonic() + ALL_SECONDS


def output_of(*argv: str, **variables: str) -> tuple[int, str]:
    """Exit code (-1: not started, or too slow) and the beginning of what it printed."""
    code, says = all_of_output_of(*argv, **variables)
    return code, says[:MAX_SAID]


def all_of_output_of(*argv: str, **variables: str) -> tuple[int, str]:
    limit = min(COMMAND_SECONDS, ENDS_AT - time.monotonic())
    if limit <= 0:
        return -1, "not looked at: the time for looking was up"
    try:
        started = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, LC_ALL="C", **variables),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return -1, str(error)
    try:
        said, _ = started.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return -1, f"{argv[0]}: no answer in {limit:.0f} s"
    return started.returncode, said.decode("utf-8", "replace")


def complaint(code: int, says: str) -> str:
    return "" if code == 0 else says.strip() or f"exit {code}"
