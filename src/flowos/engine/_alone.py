"""What has nodes for itself, as a task that is to be alone has: a measurement."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from flowos.engine._ledger import granted
from flowos.engine._node import Node
from flowos.engine.flow._core_share import is_at_a_place
from flowos.model import Needs

_SERVERS = ("flowos.engine.workers._worker_control", "flowos.engine.ray.ray_worker")
"""Each says by `serving` that this process is a worker."""


def in_a_task() -> bool:
    """Whether a task of a slice calls this, in a thread of the slice or in a worker process."""
    if is_at_a_place(threading.get_ident()):
        return True
    return any(getattr(sys.modules.get(name), "serving", False) for name in _SERVERS)


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
