"""Starting a worker process, up to its first word."""

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGTERM

from flowos._dataclasses import dataclass, replace
from flowos.engine.flow._bound import with_threads
from flowos.engine.flow._inside import Surroundings
from flowos.engine.launch._end_reasons import how_ended
from flowos.engine.launch._prepared import PreparedLaunch
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._same_flowos import Unlike, mend_words, sizes_here, unlike_words
from flowos.engine.workers import stream_worker, worker
from flowos.engine.workers._listeners import (
    AnyChannel,
    Listener,
    StreamListener,
    UnixListener,
    certificate,
)
from flowos.engine.workers._worker_files import path_there, worker_file
from flowos.model import (
    Cancelled,
    Killed,
    Launch,
    LaunchFailed,
    NotStarted,
    Outcome,
    Pairs,
)

START_SECONDS = 60.0
_TICK_SECONDS = 0.02
_LEAVE_SECONDS = 10.0
"""More than it takes to end a process; what hangs in the kernel is given up sooner."""
KILL_SECONDS = 0.2
_ENDING_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How the workers of a slice are started: `count` of them share the node's cores.

    python: what runs them; in an image its own python3. threads: for each worker's libraries, where
    its tasks ask for cores; else the node's cores are shared out.
    """

    count: int
    around: Surroundings
    python: str = sys.executable
    threads: int | None = None

    @property
    def launch(self) -> Launch:
        """Of a worker, but for the path of its socket."""
        file = Path(worker.__file__)
        if self.around.in_image or not self.around.node.is_here:
            file = worker_file(self.around.node)
        if not self.around.node.is_here:
            file = file.with_name(Path(stream_worker.__file__).name)
        return Launch(
            argv=(*_argv(self.command), "-u", str(file)),
            env=self.around.env,
            variables=_variables(self),
            cwd=self.around.cwd,
        )

    @property
    def command(self) -> str:
        """Of the Python that runs them."""
        return "python3" if self.around.in_image else self.python

    @property
    def path(self) -> list[str | None]:
        """Where a worker finds modules; None stands for where its own Python does."""
        return path_there(self.around) if self.around.in_image else list(sys.path)

    @property
    def where(self) -> str:
        """Words for a worker that is not on this machine."""
        node = self.around.node
        return "" if node.is_here else f" on node {node.name}"


def start_worker(start: Start, cancelled: Callable[[], bool]) -> tuple[RunningProcess, AnyChannel]:
    """A process and the channel to it. LaunchFailed; Cancelled as soon as `cancelled` says so."""
    prepared = start.around.node.prepare(start.launch)
    with contextlib.closing(_listener(start, prepared)) as listener:
        running = _started(prepared, listener.words)
        try:
            channel = _answer(start, listener, running, cancelled)
        except BaseException:
            running.stop(KILL_SECONDS)
            with contextlib.suppress(TimeoutError):
                running.wait(_LEAVE_SECONDS)
            raise
    return running, channel


def _listener(start: Start, prepared: PreparedLaunch) -> Listener:
    node = start.around.node
    try:
        if node.is_here:
            return UnixListener(prepared.folder / "worker")
        return StreamListener(node.our_address, certificate(node.folder()))
    except (OSError, LaunchFailed) as error:
        prepared.discard()
        raise LaunchFailed(f"a worker process could not start: {error}") from error


def _started(prepared: PreparedLaunch, words: tuple[str, ...]) -> RunningProcess:
    launch = replace(prepared.launch, argv=(*prepared.launch.argv, *words))
    return replace(prepared, launch=launch, relays=prepared.session.elsewhere is not None).start()


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
    return (python, *words)


def _variables(start: Start) -> Pairs:
    """So that workers do not ask for more cores than there are, their libraries get a share."""
    node = start.around.node
    share = start.threads or max(1, len(node.resources().cpus) // start.count)
    return with_threads(node.variables(start.around.env), share)


def _answer(
    start: Start, listener: Listener, running: RunningProcess, cancelled: Callable[[], bool]
) -> AnyChannel:
    until = time.monotonic() + START_SECONDS
    while (channel := listener.accept(_TICK_SECONDS)) is None:
        if cancelled():
            raise Cancelled("stopped while a worker process started")
        # it may have come, spoken and ended since we looked
        if running.done and (channel := listener.accept(0)) is None:
            raise LaunchFailed(_why_not_started(start, running.wait()))
        if channel is not None:
            break
        if time.monotonic() > until:
            raise LaunchFailed(f"a worker process did not answer within {START_SECONDS:.0f} s")
    try:
        _check_version(start, channel)
    except BaseException:
        channel.close()
        raise
    return channel


def _check_version(start: Start, channel: AnyChannel) -> None:
    try:
        version, _ = channel.receive()
    except (EOFError, ConnectionError) as error:
        raise LaunchFailed("a worker process ended while it started") from error
    if tuple(version) != sys.version_info[:2]:
        raise LaunchFailed(_other_python(start, ".".join(map(str, version))))


def _other_python(start: Start, theirs: str) -> str:
    ours = ".".join(map(str, sys.version_info[:2]))
    if not start.around.in_image:
        return (
            f"the worker{start.where} is Python {theirs}, this is {ours}: {start.python} has to be "
            "the same file on both sides"
        )
    return (
        f"image {start.around.named}: its python3 is Python {theirs}, this is Python {ours}, and "
        f"Python tasks need the same on both sides; use an image with Python {ours}, or run "
        f"flowos by Python {theirs}"
    )


def other_flowos(start: Start, there: Unlike) -> str:
    """Why Python tasks do not run with the FlowOS that their worker would load from there."""
    words = unlike_words(there)
    if not start.around.in_image:
        return f"the worker{start.where} has {words}: {mend_words(there, sizes_here())}"
    return (
        f"image {start.around.named}: it has {words}, and Python tasks need the same on both "
        "sides, or none in the image"
    )


def _why_not_started(start: Start, outcome: Outcome) -> str:
    if start.around.in_image and isinstance(outcome.end, NotStarted):
        return (
            f"image {start.around.named}: Python tasks need a python3 in it: {outcome.end.reason}"
        )
    theirs = _version_of(start) if start.around.in_image or start.where else ""
    if theirs and theirs != ".".join(map(str, sys.version_info[:2])):
        return _other_python(start, theirs)
    where = f"image {start.around.named}: " if start.around.in_image else ""
    there = start.where
    if there and isinstance(outcome.end, NotStarted):
        there += f", which has to see {start.python}, the Python of this program"
    return f"{where}a worker process could not start{there}: {_end_text(outcome)}"


def _version_of(start: Start) -> str:
    """A Python that is too old to read the worker's file can still say its version; "" if none."""
    say = "import sys; print('%d.%d' % sys.version_info[:2])"
    launch = replace(start.launch, argv=(start.command, "-c", say), limit_seconds=START_SECONDS)
    outcome = start.around.node.prepare(launch).run()
    return outcome.stdout.decode(errors="replace").strip() if outcome.ok else ""


def _end_text(outcome: Outcome) -> str:
    last = outcome.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return f"{how_ended(outcome)}; {last}" if last else how_ended(outcome)


def how_gone(start: Start, outcome: Outcome) -> str:
    """As `how_ended`; TERM is not from us, but where the job around it ends, say, by its limit."""
    ended = outcome.end == Killed(SIGTERM)
    why = start.around.node.why_unreachable(_ENDING_SECONDS) if ended else ""
    return how_ended(outcome) + why
