"""Processes of R and Julia: one is started where a body is called and none is idle."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from flowos._dataclasses import dataclass, replace
from flowos.drivers import runtime_named
from flowos.engine._ask import which
from flowos.engine.bodies._held_programs import takers
from flowos.engine.bodies._language_channel import LanguageAnswer, LanguageChannel
from flowos.engine.bodies._prepared import BodyError
from flowos.engine.launch._end_reasons import how_ended
from flowos.engine.launch._prepared import own_variables, prepare
from flowos.engine.launch._printing import start_printing
from flowos.engine.launch._running import RunningProcess
from flowos.engine.launch._session import LaunchSession
from flowos.model import EngineMissing, Launch, Outcome

__flowos_frames__ = True
_GRACE_SECONDS, _ENDING_SECONDS, _END_SECONDS = 0.2, 2.0, 5.0


@dataclass(frozen=True, slots=True)
class LanguageProgram:
    """What runs bodies in a language.

    script: what it runs, in a folder here. remedy: how one gets the program.
    """

    language: str
    program: str
    options: tuple[str, ...]
    script: str
    remedy: str

    @property
    def path(self) -> str | None:
        return which(self.program)

    @property
    def argv(self) -> tuple[str, ...]:
        """Raises EngineMissing if it is not there."""
        path = self.path
        if path is None:
            raise EngineMissing(f"there is no {self.program}: {self.remedy}")
        return (path, *self.options, str(Path(__file__).parent / self.script))


class LanguageProcess:
    """For one call at a time. taught: numbers of the bodies that it knows.

    Raises EngineMissing if its program is not there, BodyError if it does not start.
    """

    def __init__(self, program: LanguageProgram) -> None:
        self.program = program
        self.taught: set[int] = set()
        self._cpus = os.sched_getaffinity(0)
        self.running: RunningProcess | None = None
        launch = _launch(program.argv, self._cpus)
        prepared = prepare(launch, runtime_named("bare"), _session())
        try:
            self.channel = LanguageChannel(prepared.folder)
        except BaseException:
            prepared.discard()
            raise
        launch = prepared.launch
        argv, variables = launch.argv + self.channel.words, launch.variables
        if "TMPDIR" not in os.environ:  # R's own folder in /tmp would stay there if it is killed
            variables = (*variables, ("TMPDIR", str(prepared.folder)))
        prepared = replace(prepared, launch=replace(launch, argv=argv, variables=variables))
        try:
            self.running = start_printing(prepared, *self.channel.writers)
            self.channel.opened(self.running.pid)
            (pid,) = self._received("did not start").numbers
        except BaseException:
            self.end()
            raise
        self._pid = int(pid)

    @property
    def lives(self) -> bool:
        return self.running is not None and self.channel.is_open

    def ask(self, kind: int, numbers: Sequence[float]) -> LanguageAnswer:
        """About what is in the channel's room. Raises BodyError if it ends meanwhile."""
        try:
            if (cpus := os.sched_getaffinity(0)) != self._cpus:
                self._cpus = cpus
                _bind(self._pid, cpus)
            self.channel.send(kind, numbers)
            return self._received("ended")
        except BaseException:
            self.end()
            raise

    def _received(self, what: str) -> LanguageAnswer:
        try:
            return self.channel.receive()
        except EOFError:
            how = how_ended(self._outcome())
            raise BodyError(f"{self.program.language} {what}: {how}") from None

    def _outcome(self) -> Outcome:
        running = self.running
        assert running is not None
        with suppress(TimeoutError):
            return running.wait(_ENDING_SECONDS)
        running.stop(_GRACE_SECONDS)  # it has closed its connections, and runs on
        return running.wait()

    def end(self) -> None:
        """Twice is once."""
        with _lock:
            _all.discard(self)
        running, self.running = self.running, None
        if running is not None:
            running.stop(_GRACE_SECONDS)
            with suppress(TimeoutError):
                running.wait(_END_SECONDS)
        self.channel.close()


_lock = threading.Lock()
_all: set[LanguageProcess] = set()
_idle: list[LanguageProcess] = []


class OneProcess:
    """`with` gives a process, for this thread alone meanwhile."""

    # no contextmanager: messages would name contextlib as the place of an error

    def __init__(self, program: LanguageProgram) -> None:
        self._program = program

    def __enter__(self) -> LanguageProcess:
        self._process = _taken(self._program)
        return self._process

    def __exit__(self, *_: object) -> None:
        process = self._process
        if not process.lives:
            return
        with _lock:
            if process in _all:  # else it is being ended
                _idle.append(process)


def _taken(program: LanguageProgram) -> LanguageProcess:
    while True:
        with _lock:
            process = next((each for each in reversed(_idle) if each.program == program), None)
            if process is not None:
                _idle.remove(process)
        if process is None:
            process = LanguageProcess(program)
            with _lock:
                _all.add(process)
            return process
        if process.lives:
            return process
        process.end()


def _take_all() -> Callable[[], None]:
    """Idle ones, and those that are busy: their calls raise BodyError."""
    with _lock:
        idle, busy = tuple(_idle), _all.difference(_idle)
        _idle.clear()
        _all.clear()
    return partial(_end, idle, busy)


def _end(idle: Iterable[LanguageProcess], busy: Iterable[LanguageProcess]) -> None:
    for process in idle:
        process.end()
    ending = [running for process in busy if (running := process.running) is not None]
    for running in ending:
        running.stop(_GRACE_SECONDS)
    for running in ending:
        with suppress(TimeoutError):
            running.wait(_END_SECONDS)


def _forget_in_child() -> None:
    """After fork() they stay the parent's."""
    global _lock
    _lock = threading.Lock()
    for process in _all:
        process.channel.close()
    _all.clear()
    _idle.clear()
    _session.cache_clear()


takers.append(_take_all)
os.register_at_fork(after_in_child=_forget_in_child)


@cache
def _session() -> LaunchSession:
    return LaunchSession()


def _bind(pid: int, cpus: set[int]) -> None:
    """All threads that it has."""
    with suppress(OSError):  # it has ended, or a thread has
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cpus)


def _launch(argv: tuple[str, ...], cpus: set[int]) -> Launch:
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # removed under us
        folder = Path("/")
    return Launch(argv=argv, variables=own_variables(), cwd=folder, cpus=tuple(cpus))
