"""Runs that no thread waits for, as futures of the standard library."""

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar

from flowos.engine.flow._core_share import is_at_a_place
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._runs import FlowRun
from flowos.model import Cancelled, ValueRefused, brief_repr

T = TypeVar("T")


def as_completed(
    runs: "Iterable[Future[T]]", timeout: float | None = None
) -> "Iterator[Future[T]]":
    """Runs that were submitted, each as it ends, as `concurrent.futures.as_completed` gives them.

    timeout: seconds for all of them; after that it raises TimeoutError. Ctrl-C ends them. Raises
    ValueRefused for what is no run.

    >>> with fo.slice(fo.kernels.sort(fo.flow_input("x", fo.array(fo.int64)))) as s:
    ...     runs = [s.submit(np.array([n, 1])) for n in (3, 2)]
    ...     sorted(run.result()[0].tolist() for run in fo.as_completed(runs))
    [[1, 2], [1, 3]]
    """
    asked = list(dict.fromkeys(runs))
    for run in asked:
        if not isinstance(run, Future):
            raise ValueRefused(f"as_completed: {brief_repr(run)}; expected runs of `submit`")
    return _as_they_end(asked, timeout)


def _as_they_end(runs: "list[Future[T]]", timeout: float | None) -> "Iterator[Future[T]]":
    ended = concurrent.futures.as_completed(runs, timeout)
    try:
        for run in runs:
            if isinstance(run, BackgroundRun):
                run._help(timeout)
            yield next(ended)
    except (KeyboardInterrupt, SystemExit):
        for run in runs:
            run.cancel()
        raise


class BackgroundRun(Future[list[object]]):
    """A run that no thread waits for by itself."""

    def running(self) -> bool:
        """Whether it is not done: it may wait for cores, or for a node."""
        return not self.done()

    def result(self, timeout: float | None = None) -> list[object]:
        """The outputs; raises what `Slice.run` does, TimeoutError, or CancelledError."""
        self._help(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._help(timeout)
        return super().exception(timeout)

    def _help(self, timeout: float | None) -> None:
        """Where a task or a callback waits, it lends its cores and thread: none may be left."""
        raise NotImplementedError


class SubmittedRun(BackgroundRun):
    """A run in the background: `concurrent.futures` waits for it, `asyncio.wrap_future` awaits it.

    `cancel` ends it also while it runs, as far as `Slice.free` could. of: what has to live on until
    the run is done. on_failed: gets its error.
    """

    def __init__(self, of: object, on_failed: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._of: object = of
        self._on_failed = on_failed
        self._helping = threading.Lock()
        self._executor: Executor | None = None
        self._run: FlowRun | None = None

    def begin(self, executor: Executor, values: Sequence[object], first: int) -> bool:
        """Begin it; False once the executor has ended."""
        self._executor = executor
        self._run = executor.submit(values, self._over, first)
        return self._run is not None

    def cancel(self) -> bool:
        """End the run. False if it was done."""
        if not super().cancel():
            return False
        assert self._executor is not None
        assert self._run is not None
        self._executor.cancel(self._run, Cancelled("the run was cancelled"))
        return True

    def _help(self, timeout: float | None) -> None:
        assert self._executor is not None
        assert self._run is not None
        if timeout is not None or self.done():
            return
        if not (is_at_a_place(threading.get_ident()) or self._executor.is_helper()):
            return
        if not self._helping.acquire(blocking=False):  # another thread does
            return
        try:
            self._executor.work_on(self._run)
        except BaseException:
            self._executor.cancel(self._run, Cancelled("the run was interrupted"))
            raise

    def _over(self, run: FlowRun) -> None:
        self._of = None
        if not self.set_running_or_notify_cancel():
            return
        error, run.error = run.error, None
        if error is not None:
            self._on_failed(error)
            self.set_exception(error)
        else:
            assert self._executor is not None
            self.set_result(self._executor.outputs(run))


async def awaited(run: Future[list[object]]) -> list[object]:
    """Its outputs; the run is ended if the task that awaits it is."""
    import asyncio  # whoever awaits has it

    try:
        if isinstance(run, BackgroundRun):
            run._help(None)  # nothing else goes on meanwhile, but without cores nothing would
        return await asyncio.wrap_future(run)
    except BaseException:
        run.cancel()
        raise
