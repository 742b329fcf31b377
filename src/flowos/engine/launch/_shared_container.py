"""One container for all ranks of a gang, entered once and held while they run.

Ranks that each enter the image for themselves are strangers to each other: they may not read each
other's memory (CMA, as Open MPI and UCX copy large messages), a runtime may close the descriptor by
which Hydra numbers a rank, and `ch-run --join` fails where one rank ends before another
joins. So one process enters the image and holds it, and the flowos-init of each rank joins it.
That costs one start of the runtime, however many the ranks.
"""

import time
from pathlib import Path

from flowos.engine.launch._running import RunningProcess
from flowos.model import LaunchFailed, NotStarted, RuntimeFailed

HOLD = ("/proc/self/exe", "--hold")
"""What flowos-init is asked to run in there: itself."""

_LIMIT_SECONDS = 60.0
_TICK_SECONDS = 0.001


def await_held(holder: RunningProcess) -> bytes:
    """What file `enter` of a rank's run folder says of this container; LaunchFailed."""
    until = time.monotonic() + _LIMIT_SECONDS
    while True:
        over = holder.done
        try:
            return _to_join(holder)
        except FileNotFoundError:
            pass
        if over:
            raise _failed(holder)
        if time.monotonic() > until:
            raise LaunchFailed(
                f"{_container(holder)} was not entered within {_LIMIT_SECONDS:.0f} s"
            )
        time.sleep(_TICK_SECONDS)


def _to_join(holder: RunningProcess) -> bytes:
    words = (holder.folder / "started.0").read_text().split()
    pid, processes = int(words[1]), int(words[3])
    if processes != Path("/proc/self/ns/pid").stat().st_ino:
        raise LaunchFailed(
            f"{_container(holder)} has processes of its own that ranks cannot join; "
            "use a runtime that shares those of the node"
        )
    try:
        return f"{pid} {Path(f'/proc/{pid}/ns/mnt').stat().st_ino}".encode()
    except PermissionError as error:
        raise LaunchFailed(
            f"{_container(holder)} does not let ranks join it: {error.strerror}; "
            "use a runtime that makes a user namespace of ours"
        ) from error


def _failed(holder: RunningProcess) -> LaunchFailed:
    end = holder.wait().end
    why = end.reason if isinstance(end, NotStarted | RuntimeFailed) else f"it ended at once: {end}"
    why = why.replace(f"what should start '{HOLD[0]}'", "its runtime")
    return LaunchFailed(f"{_container(holder)} cannot be entered: {why}")


def _container(holder: RunningProcess) -> str:
    return f"the container for the ranks ({holder.launch.env.label})"
