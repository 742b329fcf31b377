"""Queue of requested rows, grouped by row group; one thread works on a group at a time."""

import threading
from collections import OrderedDict
from collections.abc import Iterable

Group = tuple[str, int]  # file, number of the row group in it
RowRequest = tuple[int, int, int]  # ticket, sample, row within the group


class RowGroupQueue:
    """Thread-safe. A thread that takes a group gets all rows requested of it by then."""

    def __init__(self) -> None:
        self._requests: OrderedDict[Group, list[RowRequest]] = OrderedDict()
        self._busy: set[Group] = set()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, rows: Iterable[tuple[Group, RowRequest]]) -> None:
        """At once, so that no thread takes a group while more of it is being put in."""
        with self._changed:
            for group, request in rows:
                self._requests.setdefault(group, []).append(request)
            self._changed.notify_all()

    def take(self) -> tuple[Group, list[RowRequest]] | None:
        """The oldest request of a group that no thread works on; blocks. None once closed."""
        with self._changed:
            while not self._closed:
                free = next((group for group in self._requests if group not in self._busy), None)
                if free is not None:
                    self._busy.add(free)
                    return free, self._requests.pop(free)
                self._changed.wait()
            return None

    def more(self, group: Group) -> list[RowRequest]:
        """Further requests of the group that was taken; if there are none, releases the group."""
        with self._changed:
            requests = self._requests.pop(group, [])
            if not requests:
                self._busy.discard(group)
            return requests

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
