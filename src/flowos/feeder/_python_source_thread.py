"""A source that Python reads, in a thread of its own."""

import threading
from typing import TYPE_CHECKING

from flowos.feeder._interfaces import Source
from flowos.feeder._one_line import one_line

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from flowos._native import Cache, Catalog, Feeder

_MAX_TICKETS = 256
_PARTING_SECONDS = 3.0

_threads: dict[int, threading.Thread] = {}
"""Those that run, by the id of their feeder, which they keep."""


class _Tickets:
    """What a source sees of the feeder and its cache."""

    def __init__(self, feeder: "Feeder", cache: "Cache | None") -> None:
        self.pull, self.push, self.fail = feeder.pull, feeder.push, feeder.fail
        self.closed = feeder.closed
        self._cache = cache

    def offer(self, sample: int, data: "Buffer") -> bool:
        """False: there is no cache, or no room in it for more."""
        return self._cache is not None and self._cache.offer(sample, data)


def serve(
    source: Source, feeder: "Feeder", catalog: "Catalog", cache: "Cache | None"
) -> threading.Thread:
    """Answers the feeder's tickets until it is closed, whatever becomes of the source."""

    def work() -> None:
        try:
            source.serve(_Tickets(feeder, cache), catalog)
        except Exception as why:
            while tickets := feeder.pull(_MAX_TICKETS):
                for ticket, _ in tickets:
                    feeder.fail(ticket, one_line(why))
        finally:
            del _threads[id(feeder)]

    thread = threading.Thread(target=work, name="flowos-source", daemon=True)
    _threads[id(feeder)] = thread
    thread.start()
    return thread


def close(feeder: "Feeder") -> None:
    """End all reading, and wait a while for threads of Python that read.

    Libraries that they read by (pyarrow) abort the process where a thread returns from their C++
    while Python shuts down; ours waits then (bind/gil.h). A read that hangs is not waited for.
    """
    thread = _threads.get(id(feeder))
    feeder.close()
    if thread is not None:
        thread.join(_PARTING_SECONDS)
