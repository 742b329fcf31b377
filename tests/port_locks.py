"""Other programs and users at the port of a device, for tests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locking(port: str, lock: str) -> Iterator[int]:
    """Another process that has the line open and locked; its number."""
    program = f"import fcntl; line = open({port!r}, 'r+b', 0); {lock}; print('has it', flush=True)"
    words = [sys.executable, "-c", f"{program}; input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"has it\n"
        yield other.pid
        other.kill()


def waits_for(port: str) -> bool:
    """Whether someone waits for a lock of it."""
    inode = Path(port).stat().st_ino
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f":{inode} " in line for line in lines)


@contextmanager
def as_another_user() -> Iterator[None]:
    """If this one may open all."""
    was = os.geteuid()
    os.seteuid(was or 65534)
    try:
        yield
    finally:
        os.seteuid(was)
