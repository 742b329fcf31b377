"""A run that is submitted before a node has room for it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from flowos.model import Flow

Begin = Callable[[], Future[list[object]]]


class WaitingRun(Future[list[object]]):
    """As `SubmittedRun`, once it began. of: what has to live on until it is done."""

    def __init__(
        self, of: object, flow: Flow, values: tuple[object, ...], named: dict[str, object]
    ) -> None:
        super().__init__()
        flow.bind(values, named)
        self.flow, self.values, self.named = flow, values, named
        self._of: object = of
        self._deciding = threading.Lock()
        self._run: Future[list[object]] | None = None

    def begin(self, begin: Begin) -> bool:
        """Begin it; False if it was cancelled. begin: raises what the run then ends with."""
        with self._deciding:
            if self.cancelled():
                return False
            try:
                self._run = begin()
            except BaseException as error:
                self._end(error)
                return True
        self._run.add_done_callback(self._over)
        return True

    def refuse(self, error: BaseException) -> None:
        """End it before it began."""
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
            if self._run is None:
                self._of = None
                self.set_running_or_notify_cancel()
                return True
        self._run.cancel()
        return True

    def running(self) -> bool:
        """Whether it is not done: it may wait for a node."""
        return not self.done()

    def _over(self, run: Future[list[object]]) -> None:
        self._of = None
        if not self.set_running_or_notify_cancel():
            return
        error = run.exception()
        if error is None:
            self.set_result(run.result())
        else:
            self.set_exception(error)

    def _end(self, error: BaseException) -> None:
        self._of = None
        self.set_running_or_notify_cancel()
        self.set_exception(error)
