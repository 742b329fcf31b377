"""What a killed process leaves behind: its set-ups undone, its orphans ended, its files removed.

A set-up that must be undone by commands (podman's own files belong to subordinate ids, and a
process keeps its namespaces) leaves them in its folder, for whoever starts next:

    /tmp/flowos-UID/SESSION/NUMBER/undo     [[program, argument ...], ...] and the pid namespace

A session that lists processes of another pid namespace is left alone, whole: they may run where we
cannot look. A process of that namespace removes it, or any process once the node was restarted.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from flowos.engine._ask import ask
from flowos.engine.launch._orphans import (
    Marks,
    await_unused,
    end_orphans,
    is_elsewhere,
    is_of_these_processes,
    kill_leftovers,
    may_run_elsewhere,
    pid_namespace,
    unmount,
)
from flowos.engine.launch._private_dirs import remove_tree
from flowos.model import Argv

_UNDO = "undo"
_LIMIT_SECONDS = 10.0
_ENDING_SECONDS = 5.0


def note_undo(folder: Path, steps: Sequence[Argv]) -> None:
    import json

    record = {"steps": steps, "pids": pid_namespace()}
    (folder / _UNDO).write_text(json.dumps(record))


def is_beyond_us(folder: Path) -> bool:
    """Whether a session lists processes that may run where we cannot look."""
    return any(
        may_run_elsewhere(launch) or is_elsewhere(_noted(launch)[1], launch / _UNDO)
        for launch in folder.iterdir()
    )


def remove_session(folder: Path) -> None:
    """All of a session whose process is gone, as far as it can be."""
    unmount(folder)
    for of_launch in folder.iterdir():
        end_orphans(of_launch)
        _undo(of_launch)
    remove_tree(folder)


def _undo(folder: Path) -> None:
    """Its commands name processes: they are run only where the numbers still name those.

    A runtime of the dead process may still be ending. It is waited for: a Podman whose files go
    meanwhile hangs, and keeps a lock that the next Podman of this user gets (see runtimes/podman).
    """
    steps, pids = _noted(folder)
    if steps and pids == pid_namespace() and is_of_these_processes(folder / _UNDO):
        await_unused(folder, _ENDING_SECONDS)
        kill_leftovers(Marks(folder=folder))
        for argv in steps:
            with contextlib.suppress(OSError):
                ask(argv, seconds=_LIMIT_SECONDS, cwd="/")


def _noted(folder: Path) -> tuple[list[list[str]], int]:
    """The steps, and of which pid namespace they speak; none, and ours, where nothing is noted."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        noted = (folder / _UNDO).read_bytes()
        import json  # most sessions leave nothing to undo

        record = json.loads(noted)
        return [[*map(str, argv)] for argv in record["steps"]], int(record["pids"])
    return [], pid_namespace()
