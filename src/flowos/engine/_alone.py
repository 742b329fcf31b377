"""What has nodes for itself, as a task that is to be alone has: a measurement."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module

from flowos.engine._ledger import granted
from flowos.engine._node import Node
from flowos.engine.flow._core_share import is_at_a_place, progress_callers
from flowos.model import Needs, OnProgress, Progress

_WORKER_MODULES = ("flowos.engine.workers._worker_control", "flowos.engine.ray.ray_worker")
"""Each says by `is_worker` whether this process is one."""


def in_a_task() -> bool:
    """Whether a task of a slice calls this, in a thread of the slice or in a worker process."""
    if is_at_a_place(threading.get_ident()):
        return True
    loaded = [name for name in _WORKER_MODULES if name in sys.modules]
    # Asked for so, one that another thread is loading has been loaded.
    return any(import_module(name).is_worker for name in loaded)


@contextmanager
def alone_on(nodes: Sequence[Node], check: Callable[[Node], None]) -> Iterator[None]:
    """No task of this process's slices runs on these nodes until the end of the `with`.

    It waits until those that run have ended. check: called again and again meanwhile, with the node
    that is waited for; what it raises ends the wait.
    """
    with ExitStack() as held:
        for node in sorted(nodes, key=lambda node: node.name):  # two never wait for each other
            wait = partial(check, node)
            held.enter_context(granted(node.ledger, Needs(alone=True), wait))
        yield


def in_on_progress() -> bool:
    """Whether a measurement calls this by its `on_progress`."""
    return threading.get_ident() in progress_callers


def refusing_runs(on_progress: OnProgress) -> OnProgress:
    """The same, in which no slice runs: it would wait for the measurement, and that for it."""

    def call(progress: Progress) -> None:
        progress_callers.add(threading.get_ident())
        try:
            on_progress(progress)
        finally:
            progress_callers.discard(threading.get_ident())

    return call
