"""A run that is submitted to held nodes: it may wait for room, and begin anew on another one."""

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol

from flowos.engine._node import Node
from flowos.engine.flow._submitted import BackgroundRun
from flowos.model import Flow, WorkerLost

Begin = Callable[[], Future[list[object]]]


class RunHost(Protocol):
    """What begins runs."""

    def begin_anew(self, run: "WaitingRun", error: WorkerLost) -> bool:
        """Begin one, sooner or later, that was lost so. False if it does not.

        Called in a thread of its own. What is raised the run ends with.
        """
        ...


class WaitingRun(BackgroundRun):
    """As `SubmittedRun`, once it began. of: lives on until it is done.

    lost: how many nodes were, with it. attempt: that comes next, or is made. node: the one on which
    it began last.
    """

    def __init__(
        self, of: RunHost, flow: Flow, values: tuple[object, ...], named: dict[str, object]
    ) -> None:
        super().__init__()
        flow.bind(values, named)
        self.flow, self.values, self.named = flow, values, named
        self.lost, self.attempt = 0, 1
        self.node: Node
        self._of: RunHost | None = of
        self._deciding = threading.Lock()
        self._run: Future[list[object]] | None = None

    def begin(self, node: Node, begin: Begin) -> bool:
        """Begin it; False if it was cancelled. begin: raises what the run then ends with."""
        with self._deciding:
            if self.cancelled():
                return False
            try:
                run = begin()
            except BaseException as error:
                self._end(error)
                return True
            self.node, self._run = node, run
        run.add_done_callback(self._over)
        return True

    def refuse(self, error: BaseException) -> None:
        """End it while it does not run."""
        with self._deciding:
            if not self.cancelled():
                self._end(error)

    def cancel(self) -> bool:
        """End the run. False if it was done."""
        with self._deciding:
            if self.cancelled():
                return True
            if not super().cancel():
                return False
            run = self._run
            if run is None:
                self._of = None
                self.set_running_or_notify_cancel()
                return True
        run.cancel()
        return True

    def _help(self, timeout: float | None) -> None:
        """By the run that began."""
        while timeout is None and (run := self._run) is not None and not run.done():
            with suppress(FutureCancelled):
                run.exception()

    def _over(self, run: Future[list[object]]) -> None:
        with self._deciding:
            error = None if self.cancelled() else run.exception()
            if isinstance(error, WorkerLost):
                self._run = None
                threading.Thread(target=self._again, args=(error,), daemon=True).start()
                return
        self._of = None
        if not self.set_running_or_notify_cancel():
            return
        if error is None:
            self.set_result(run.result())
        else:
            self.set_exception(error)

    def _again(self, error: WorkerLost) -> None:
        """This may take its time, and whoever ended the run does not wait for it."""
        self.lost += 1
        self.attempt += error.attempts
        host = self._of
        try:
            if host is not None and host.begin_anew(self, error):
                return
        except Exception as refused:
            self.refuse(refused)
        else:
            self.refuse(error)

    def _end(self, error: BaseException) -> None:
        self._of = None
        self.set_running_or_notify_cancel()
        self.set_exception(error)
