"""A keeper: what holds nodes for this process, until a line ends it or this process is gone.

It runs below the command of a resource manager, which carries our lines to its standard input.
"""

import contextlib
import os
import threading
from collections.abc import Callable

from flowos.drivers import runtime_named
from flowos.engine.launch._capture import LineCapture
from flowos.engine.launch._prepared import prepare
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._session import LaunchSession
from flowos.model import Argv, Launch, Pairs

HELLO = "flowos-keeper"
"""The first word of a keeper's first line."""

FREE = "free"
"""The line by which a keeper ends."""

_MAX_BYTES = 1 << 20
_KEEPERS_SECONDS = 20.0


class Lifeline:
    """Our end of a keeper's standard input, which never blocks us. Any thread may use it.

    descriptor: of a pipe; the line owns it. A keeper reads its end once we are gone, however.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._writing = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def beat(self) -> bool:
        """Say that we are there. False if it is closed."""
        self.say("")
        return self.is_open

    def free(self) -> None:
        """Let the keeper end, and close. Twice is once."""
        self.say(FREE)
        self.close()

    def close(self) -> None:
        with self._writing:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor = -1

    def say(self, line: str) -> bool:
        """A short line. False if the keeper hangs, or is gone."""
        with self._writing, contextlib.suppress(BlockingIOError, BrokenPipeError):
            if self._descriptor >= 0:
                return os.write(self._descriptor, os.fsencode(f"{line}\n")) > 0
        return False


def start_keeper(
    session: LaunchSession,
    words: Argv,
    variables: Pairs,
    on_line: Callable[[str], None],
    on_complaint: Callable[[str], None],
) -> tuple[RunningProcess, Lifeline]:
    """Start the command below which keepers run, and the line to them.

    on_line, on_complaint: get the lines of its standard output and of its standard error.
    """
    captures = (LineCapture(_MAX_BYTES, on_line), LineCapture(_MAX_BYTES, on_complaint))
    launch = Launch(argv=words, variables=variables)
    prepared = prepare(launch, runtime_named("bare"), session, captures=captures)
    reader, ours = os.pipe2(os.O_CLOEXEC)
    lifeline = Lifeline(ours)
    try:
        return prepared.start(stdin=reader), lifeline
    except BaseException:
        lifeline.close()
        raise
    finally:
        os.close(reader)


def leave_to_keepers(command: RunningProcess) -> None:
    """Once this process is gone, their command goes on until they have ended what they hold.

    Of TERM srun kills its keepers at once and then waits for those of lost nodes: both gone,
    nothing would be left to end the job.
    """
    new = command.folder / "grace.new"
    with contextlib.suppress(OSError):  # a full disk: it gets TERM
        new.write_text(f"-{_KEEPERS_SECONDS}")
        new.replace(command.folder / "grace")
