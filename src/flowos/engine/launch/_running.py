"""A launch that runs: its output is drained, its limit kept, its end noticed, by the one watch."""

import atexit
import contextlib
import os
import threading
import time
from functools import partial
from pathlib import Path
from subprocess import Popen

from flowos._dataclasses import replace
from flowos.drivers import Seen, StoppedBy, classify_end, read_progress, runtime_named
from flowos.engine.launch._capture import Capture, Spawn
from flowos.engine.launch._end_reasons import explained, lives, may_lack_root, without_root
from flowos.engine.launch._orphans import (
    Answers,
    answers_in,
    is_monitor,
    is_named,
    kill_leftovers,
    marks_of,
)
from flowos.engine.launch._run_folders import RunFolders, remove_run_folder
from flowos.engine.launch._watch import Act, the_watch
from flowos.model import Launch, LaunchFailed, Lost, Outcome, Usage

DEFAULT_GRACE_SECONDS = 2.0
"""flowos-init's default between TERM and KILL."""

_LATE_SECONDS = 3.0
"""How much later than promised flowos-init may answer before it is ended itself: on a machine that
is short of everything it gets a processor late."""

_HUNG_SECONDS = 30.0
"""A runtime that still runs so long after all its ranks have ended is taken to hang."""

_CHUNK_BYTES = 1 << 16
_TICK_SECONDS = 0.01


class RunningProcess:
    """A started launch. Methods may be called from any thread.

    pid: of the outermost process, the guardian of flowos-init for a bare, direct launch.
    progress, step: once it has ended, as `read_progress` has it, and as `Answers`.
    """

    pid: int
    _process: "Popen[bytes]"

    def __init__(
        self,
        launch: Launch,
        folder: Path,
        spawn: Spawn,
        *,
        captures: tuple[Capture, Capture],
        folders: RunFolders,
        holders: "tuple[RunningProcess, ...]" = (),
        server: "RunningProcess | None" = None,
    ) -> None:
        """Start it by `spawn`, whose exception is raised here.

        captures: of its stdout and stderr; one that breaks ends it. folders: `folder` is one of
        them. holders: the launches that hold the containers of this one, and end with it.
        server: the launch that shows the image of this one, which has no root without it.

        `spawn` is called in the watch's thread, where no Ctrl-C can fall between a process that is
        there and the note that it is ours.
        """
        self.launch, self.folder = launch, folder
        self.folders = folders  # removed with the last reference to them
        self._stdout, self._stderr = captures
        self._open: dict[int, Capture] = {}
        self._began = time.monotonic()
        self._owner = os.getpid()
        self._holders, self._server = holders, server
        self._served: set[RunningProcess] = set()
        self._at_end: list[Act] = []
        self._stopped_by: StoppedBy = ""
        self._lifeline = self._pidfd = self._alarm = self._next_look = -1
        self._hung = self._lost = False
        self.progress, self.step = (0, 0), ""
        self._hard_at = 0.0
        self._begun, self._ended = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._outcome: Outcome | None = None
        self._watch = the_watch()
        all_running.add(self)
        self._watch.ask(partial(self._begin, spawn))
        self._await_begin()

    def _await_begin(self) -> None:
        try:
            self._begun.wait()
        except BaseException:
            self.stop()
            raise
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # its traceback holds this frame: a cycle would keep us

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    @property
    def code(self) -> int | None:
        """Exit code of the outermost process, or minus the signal that ended it."""
        return self._process.returncode

    def wait(self, seconds: float | None = None) -> Outcome:
        """How it ended; TimeoutError if it runs on after `seconds`."""
        if os.getpid() != self._owner:
            raise LaunchFailed(f"'{self.launch.argv[0]}' was started by process {self._owner}")
        if not self._ended.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX)):
            raise TimeoutError(f"'{self.launch.argv[0]}' still runs after {seconds} s")
        assert self._outcome is not None
        return self._outcome

    def stop(self, grace_seconds: float = DEFAULT_GRACE_SECONDS) -> None:
        """Ask for the end: TERM now, KILL after the grace; `wait` returns once it came."""
        self._watch.ask(self._guarded(partial(self._stop, "request", grace_seconds)))

    def lose(self, grace_seconds: float) -> None:
        """A node of it is gone: no answer is waited for. What is left of it has so long to end."""
        self._watch.ask(self._guarded(partial(self._end_lost, grace_seconds)))

    # ---- from here on, in the watch's thread only ----

    def _guarded(self, act: Act) -> Act:
        """A launch that goes wrong in our hands must not take the others with it, nor hang."""

        def guarded() -> None:
            if self.done:
                return
            try:
                act()
            except Exception as error:
                with contextlib.suppress(Exception):
                    self._process.kill()
                    self._kill_leftovers()
                with contextlib.suppress(Exception):
                    self._settle(Outcome(end=Lost(f"{type(error).__name__}: {error}")))

        return guarded

    def _begin(self, spawn: Spawn) -> None:
        try:
            self._process, pipes = spawn()
        except BaseException as error:
            self._failure = error
            self._settle(Outcome(end=Lost("it never began")))
        else:
            self.pid, self._lifeline = self._process.pid, pipes.lifeline
            outputs = ((pipes.stdout, self._stdout), (pipes.stderr, self._stderr))
            self._open = {fd: capture for fd, capture in outputs if fd >= 0}
            self._guarded(self._follow)()
        finally:
            self._begun.set()

    def _follow(self) -> None:
        if self._server is not None:
            self._server._served.add(self)
            if self._server.done:
                self._stop("request", DEFAULT_GRACE_SECONDS)
        for fd in self._open:
            self._watch.on_readable(fd, self._guarded(partial(self._read, fd)))
        if self.launch.limit_seconds is not None:
            self._at(self.launch.limit_seconds, partial(self._stop, "limit", DEFAULT_GRACE_SECONDS))
        if self.launch.env.image is not None:
            self._look_whether_it_hangs(ended=False)
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except OSError:  # a kernel before 5.3
            self._look_again()
        else:
            self._watch.on_readable(self._pidfd, self._guarded(self._outermost_ended))

    def _look_again(self) -> None:
        self._outermost_ended()
        if self._process.returncode is None:
            self._watch.at(time.monotonic() + _TICK_SECONDS, self._guarded(self._look_again))

    def _at(self, seconds: float, act: Act) -> None:
        """One alarm at a time: each state of a launch waits for one thing."""
        self._watch.cancel(self._alarm)
        self._alarm = self._watch.at(time.monotonic() + seconds, self._guarded(act))

    def _read(self, fd: int) -> bool:
        """Take what is there; False at the end, or if nothing is there now."""
        try:
            data = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._open[fd].add(data)
            if self._open[fd].broken:
                self._stop("request", DEFAULT_GRACE_SECONDS)
        else:
            self._close_output(fd)
        return bool(data)

    def _close_output(self, fd: int) -> None:
        self._watch.forget(fd)
        del self._open[fd]
        os.close(fd)

    def _stop(self, by: StoppedBy, grace_seconds: float) -> None:
        if self._process.returncode is not None:
            return
        late = _LATE_SECONDS if self._lifeline >= 0 or grace_seconds > 0 else 0.0
        hard_at = time.monotonic() + grace_seconds + late
        if self._lifeline >= 0:
            self._stopped_by = by
            with contextlib.suppress(OSError):  # a full disk: then it is flowos-init's own grace
                (self.folder / "grace").write_text(str(grace_seconds))
            self._close_lifeline()
        elif hard_at >= self._hard_at:  # asked before; only a shorter grace is news
            return
        self._hard_at = hard_at
        self._at(hard_at - time.monotonic(), self._end_hard)

    def _close_lifeline(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _end_hard(self) -> None:
        """flowos-init did not answer, or the launcher does not end."""
        self._process.kill()
        self._at(_LATE_SECONDS, self._give_up)

    def _end_lost(self, grace_seconds: float) -> None:
        self._lost = True
        self._close_lifeline()
        self._at(grace_seconds, self._end_hard if self.code is None else self._outermost_ended)

    def _look_whether_it_hangs(self, *, ended: bool) -> None:
        """Podman may wait for ever for a container that is gone.

        ended: whether all ranks had ended at the look before this one.
        """
        if self._process.returncode is not None:
            return
        if ended:
            self._hung = True
            self._end_hard()
            return
        now = len(answers_in(self.folder).statuses) >= self.launch.ranks
        act = self._guarded(partial(self._look_whether_it_hangs, ended=now))
        self._next_look = self._watch.at(time.monotonic() + _HUNG_SECONDS, act)

    def _give_up(self) -> None:
        self._kill_leftovers()
        self._settle(Outcome(end=Lost("cannot be ended: it hangs in the kernel")))

    def _kill_leftovers(self, *, helpers: bool = True) -> None:
        """Some launchers give each rank a session of its own, so flowos-init names its own.
        A helper (podman's conmon) holds the pipes too."""
        pipes = frozenset(os.fstat(fd).st_ino for fd in self._open if helpers)
        kill_leftovers(marks_of(self.folder, self.pid, pipes), helpers=helpers)

    def _outermost_ended(self) -> None:
        if self._process.poll() is None:
            return
        self._forget_pidfd()
        self._close_lifeline()
        self._finish_without_ranks(time.monotonic() + DEFAULT_GRACE_SECONDS + _LATE_SECONDS)

    def _finish_without_ranks(self, until: float) -> None:
        """A launcher may end before its ranks: then the closed FIFO ends them."""
        said = answers_in(self.folder, elsewhere=self.folders.elsewhere)
        lacking, code = len(said.statuses) < self.launch.ranks, self._process.returncode
        by_force = code < 0 or lacking
        wait = said.may_go_on() or (not by_force and self._is_watched())
        wait = wait or (self.folders.elsewhere and lacking and code == 0)
        hears = self.folders.elsewhere and may_lack_root(self.launch, code, self._stderr)
        hears = hears and time.monotonic() < until - _LATE_SECONDS
        wait = wait or (hears and not self.folders.lost_image(self.launch, self._began))
        if wait and not (self._lost or self.folders.lost) and time.monotonic() < until:
            self._at(_TICK_SECONDS, partial(self._finish_without_ranks, until))
        elif by_force:
            self._finish_by_force(until)
        else:
            self._settle(self._outcome_of(said))

    def _is_watched(self) -> bool:
        """A runtime that was stopped may be gone before its monitor, which tidies up."""
        monitor = runtime_named(self.launch.env.runtime).traits.monitor
        return bool(monitor) and is_monitor(self.folder / monitor, self.folder)

    def _finish_by_force(self, until: float) -> None:
        """A runtime's helpers (podman's conmon) end, and tidy, when what they watch has ended."""
        patient = self.launch.env.image is not None and time.monotonic() < until
        self._kill_leftovers(helpers=not patient)
        if patient and is_named(self.folder):
            self._at(_TICK_SECONDS, partial(self._finish_by_force, until))
            return
        self._settle(self._outcome_of(answers_in(self.folder, elsewhere=self.folders.elsewhere)))

    def _outcome_of(self, said: Answers) -> Outcome:
        for fd in list(self._open):
            while self._read(fd):
                pass
        self.progress, self.step = read_progress(said.statuses.get(0, b"")), said.step
        code, by, stderr = self._process.returncode, self._stopped_by, self._stderr.value()
        seen = Seen(
            statuses=said.statuses,
            started=frozenset(said.started),
            code=code,
            stopped_by=by,
            stderr=stderr,
            hung=self._hung,
        )
        end, usage = classify_end(self.launch, seen)
        end = explained(self.launch, seen, end)
        node = self.folders.lost_image(self.launch, self._began)
        if node or (self._server is not None and not lives(self._server.folder)):
            end = without_root(self.launch, end, node)
        return Outcome(end=end, stdout=self._stdout.value(), stderr=stderr, usage=usage)

    def _settle(self, outcome: Outcome) -> None:
        if not outcome.usage.wall_seconds:
            outcome = replace(outcome, usage=Usage(wall_seconds=time.monotonic() - self._began))
        self._outcome = outcome
        self.folders.use(outcome.usage)
        try:
            self._watch.cancel(self._alarm)
            self._watch.cancel(self._next_look)
            self._forget_pidfd()
            self._close_lifeline()
            for fd in list(self._open):
                self._close_output(fd)
            remove_run_folder(self.folder)
        finally:
            all_running.discard(self)
            if self._server is not None:
                self._server._served.discard(self)
            self._end_holders(self._holders)

    def _end_holders(self, left: "tuple[RunningProcess, ...]") -> None:
        if not left:
            self._notify_end()
        else:
            left[0]._end_then(partial(self._end_holders, left[1:]))

    def _notify_end(self) -> None:
        self._ended.set()
        for running in tuple(self._served):
            running._guarded(partial(running._stop, "request", DEFAULT_GRACE_SECONDS))()
        for act in self._at_end:
            act()

    def _end_then(self, act: Act) -> None:
        if self.done:
            act()
        else:
            self._at_end.append(act)
            self._guarded(partial(self._stop, "request", 0.0))()

    def _forget_pidfd(self) -> None:
        if self._pidfd >= 0:
            self._watch.forget(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _let_go_in_child(self) -> None:
        """After fork(): a copy of the FIFO's end here would keep the launch alive without us."""
        for fd in (self._lifeline, self._pidfd, *self._open):
            if fd >= 0:
                os.close(fd)


# Of all nodes: the kernel forks and ends processes, and its hooks act on these.
all_running: set[RunningProcess] = set()


def _end_all() -> None:
    """At exit nothing of ours runs on."""
    for running in (left := list(all_running)):
        running.stop()
    until = time.monotonic() + DEFAULT_GRACE_SECONDS + 2 * _LATE_SECONDS
    for running in left:
        with contextlib.suppress(TimeoutError):
            running.wait(max(0.0, until - time.monotonic()))


def _let_go_in_child() -> None:
    for running in all_running:
        running._let_go_in_child()
    all_running.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_let_go_in_child)
