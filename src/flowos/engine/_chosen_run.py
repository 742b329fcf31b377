"""A run of a flow whose tasks have several bodies, as a future."""

from collections.abc import Callable
from concurrent.futures import Future

from flowos.engine.flow._submitted import BackgroundRun


class ChosenRun(BackgroundRun):
    """Of a run that gives more than its caller wants. outputs: takes what is the caller's."""

    def __init__(
        self, inner: "Future[list[object]]", outputs: Callable[[list[object]], list[object]]
    ) -> None:
        super().__init__()
        self._inner, self._outputs = inner, outputs
        inner.add_done_callback(self._over)

    def cancel(self) -> bool:
        """End the run. False if it was done."""
        return super().cancel() and (self._inner.cancel() or True)

    def _help(self, timeout: float | None) -> None:
        assert isinstance(self._inner, BackgroundRun)
        self._inner._help(timeout)

    def _over(self, inner: "Future[list[object]]") -> None:
        if not self.set_running_or_notify_cancel() or inner.cancelled():
            return
        error = inner.exception()
        if error is not None:
            self.set_exception(error)
            return
        try:
            self.set_result(self._outputs(inner.result()))
        except Exception as failed:  # else it would never be done
            self.set_exception(failed)
