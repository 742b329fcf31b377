"""Starting a worker process, up to its first word."""

import contextlib
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from flowos.engine._launching import Prepared, own_variables, prepare
from flowos.engine._running import Running
from flowos.engine.local import worker
from flowos.engine.local._node import usable_cores
from flowos.model import Cancelled, Exited, Killed, Launch, LaunchFailed, Lost, Outcome, Pairs

START_SECONDS = 60.0
_TICK_MILLISECONDS = 20
_LEAVE_SECONDS = 5.0
"""More than it takes to end a process; what hangs in the kernel is given up sooner."""
KILL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How the workers of a slice are started: `count` of them share the node's cores."""

    count: int
    python: str = sys.executable


def start_worker(start: Start, cancelled: Callable[[], bool]) -> tuple[Running, worker.Channel]:
    """A process and the channel to it. LaunchFailed; Cancelled as soon as `cancelled` says so."""
    launch = Launch(argv=_argv(start.python), variables=_variables(start.count), cwd=_folder())
    prepared = prepare(launch)
    path = prepared.folder / "worker"
    with _listener(prepared, str(path)) as listener:
        running = _started(prepared, str(path))
        try:
            channel = _answer(listener, running, cancelled)
        except BaseException:
            running.stop(KILL_SECONDS)
            with contextlib.suppress(TimeoutError):
                running.wait(_LEAVE_SECONDS)
            raise
        path.unlink()
    return running, channel


def _listener(prepared: Prepared, path: str) -> socket.socket:
    listener = None
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        listener.listen(1)
    except OSError as error:
        if listener is not None:
            listener.close()
        prepared.discard()
        raise LaunchFailed(f"a worker process could not start: {error}") from error
    return listener


def _started(prepared: Prepared, path: str) -> Running:
    launch = replace(prepared.launch, argv=(*prepared.launch.argv, path))
    return replace(prepared, launch=launch).start()


def _argv(python: str) -> tuple[str, ...]:
    """With the options of this Python that change what user code does."""
    flags = sys.flags
    words = ["-" + "O" * flags.optimize] if flags.optimize else []
    words += [f"-W{option}" for option in sys.warnoptions]
    chosen = (
        ("-I", flags.isolated),
        ("-E", flags.ignore_environment),
        ("-s", flags.no_user_site),
        ("-S", flags.no_site),
        ("-B", flags.dont_write_bytecode),
    )
    words += [word for word, given in chosen if given]
    return (python, *words, "-u", str(Path(worker.__file__)))


def _variables(count: int) -> Pairs:
    """Ours; so that workers do not ask for more cores than there are, OpenMP gets its share."""
    variables = own_variables()
    if "OMP_NUM_THREADS" in os.environ:
        return variables
    return (*variables, ("OMP_NUM_THREADS", str(max(1, usable_cores() // count))))


def _folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # removed under us
        return Path("/")


def _answer(
    listener: socket.socket, running: Running, cancelled: Callable[[], bool]
) -> worker.Channel:
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    until = time.monotonic() + START_SECONDS
    while not poll.poll(_TICK_MILLISECONDS):
        if cancelled():
            raise Cancelled("stopped while a worker process started")
        if running.done:
            raise LaunchFailed(f"a worker process could not start: {_told(running.wait())}")
        if time.monotonic() > until:
            raise LaunchFailed(f"a worker process did not answer within {START_SECONDS:.0f} s")
    channel = worker.Channel(listener.accept()[0])
    try:
        _check_version(channel)
    except BaseException:
        channel.close()
        raise
    return channel


def _check_version(channel: worker.Channel) -> None:
    try:
        version, _ = channel.receive()
    except (EOFError, ConnectionError) as error:
        raise LaunchFailed("a worker process ended while it started") from error
    if tuple(version) != sys.version_info[:2]:
        theirs, ours = ".".join(map(str, version)), ".".join(map(str, sys.version_info[:2]))
        raise LaunchFailed(f"the worker is Python {theirs}, this is {ours}: they must be equal")


def _told(outcome: Outcome) -> str:
    last = outcome.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return f"{how_ended(outcome)}; {last}" if last else how_ended(outcome)


def how_ended(outcome: Outcome) -> str:
    """In words, for a process that should have gone on."""
    match outcome.end:
        case Exited(code):
            return f"it exited with code {code}"
        case Killed(signal):
            hint = ", as when memory runs out" if _name(signal) == "SIGKILL" else ""
            return f"it was killed by signal {signal} ({_name(signal)}){hint}"
        case Lost(reason):
            return f"it is gone ({reason})"
        case other:
            return other.reason


def _name(number: int) -> str:
    import signal

    return signal.Signals(number).name if number in set(signal.Signals) else "real time"
