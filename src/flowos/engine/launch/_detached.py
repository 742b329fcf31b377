"""Processes that outlive what started them."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from flowos.engine._ask import announce_start


def start_detached(argv: Sequence[str], variables: Mapping[str, str], log: Path) -> int:
    """Start a program in a session of its own, without input, and forget it; its process id.

    Slurm's daemons block signals and keep descriptors open: a program that got these from us could
    not be ended by TERM, and Slurm would wait for it. Raises OSError if it cannot be started.
    """
    announce_start(lambda: argv)
    _keep_descriptors()
    writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawnp(
        argv[0],
        list(argv),
        variables,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), writing, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )


def _keep_descriptors() -> None:
    """To ourselves, but for the standard ones."""
    for entry in Path("/proc/self/fd").iterdir():
        if int(entry.name) > 2:
            with suppress(OSError):  # that of the listing
                os.set_inheritable(int(entry.name), False)


def started_at(pid: int) -> str:
    """When a process started, in the kernel's words; "" if there is none, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
