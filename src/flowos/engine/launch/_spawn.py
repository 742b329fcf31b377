"""Starts the first process of a launch, here or with a stand-in for one elsewhere."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen

from flowos.engine.launch._session import Starter
from flowos.model import Argv, LaunchFailed

_STAND_IN = ("/bin/sh", "-c", 'read -r code && exit "$code"; exit 255', "--", "its stand-in")


def start_here(
    argv: Argv, variables: dict[str, str], streams: tuple[int, int, int]
) -> "Popen[bytes]":
    """A session of its own: a terminal's Ctrl-C is ours to pass on, and leftovers are found."""
    stdin, stdout, stderr = streams
    try:
        return Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env=variables,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        where = variables.get("PATH", os.defpath)
        raise LaunchFailed(f"no such launcher '{argv[0]}' (looked in PATH={where})") from error
    except (OSError, UnicodeEncodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        command = argv[argv.index("--") + 1]
        raise LaunchFailed(f"cannot start '{command[:80]}': {why}") from error


def start_there(
    starter: Starter,
    argv: Argv,
    variables: dict[str, str],
    folder: Path,
    streams: tuple[int, int, int],
) -> "Popen[bytes]":
    """What stands here for a command on another machine: each ends with the other."""
    code = starter.start(argv, variables, folder, streams)
    try:
        return start_here(_STAND_IN, {}, (code, DEVNULL, DEVNULL))
    finally:
        os.close(code)


@contextmanager
def on_cpus(cpus: Collection[int]) -> Iterator[None]:
    """What this thread starts meanwhile runs on these, as far as they are still ours."""
    ours = os.sched_getaffinity(0)
    usable = ours.intersection(cpus)
    if not usable:
        yield
        return
    os.sched_setaffinity(0, usable)
    try:
        yield
    finally:
        os.sched_setaffinity(0, ours)
