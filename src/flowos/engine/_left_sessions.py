"""What a killed process leaves behind: its set-ups undone, its orphans ended, its files removed.

A set-up that must be undone by commands (podman's own files belong to subordinate ids, and a
process keeps its namespaces) leaves them in its folder, for whoever starts next:

    /tmp/flowos-UID/SESSION/NUMBER/undo     [[program, argument ...], ...] and the pid namespace
"""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from flowos.engine._launch_leftovers import end_orphans, is_of_these_processes, unmount
from flowos.engine._own_folders import remove_tree
from flowos.model import Argv

_UNDO = "undo"
_LIMIT_SECONDS = 10.0


def note_undo(folder: Path, steps: Sequence[Argv]) -> None:
    record = {"steps": steps, "pids": _pid_namespace()}
    (folder / _UNDO).write_text(json.dumps(record))


def remove_session(folder: Path) -> None:
    """All of a session whose process is gone, as far as it can be."""
    unmount(folder)
    for of_launch in folder.iterdir():
        end_orphans(of_launch)
        _undo(of_launch)
    remove_tree(folder)


def _undo(folder: Path) -> None:
    """Its commands name processes: they are run only where their numbers mean what they meant."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads((folder / _UNDO).read_bytes())
        if record["pids"] == _pid_namespace() and is_of_these_processes(folder / _UNDO):
            for argv in record["steps"]:
                _run(argv)


def _run(argv: Sequence[str]) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_SECONDS, cwd="/"
        )


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino
