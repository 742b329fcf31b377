"""Copies in the folder that the nodes of a job share, of what nodes do not see."""

import threading
from collections.abc import Callable
from pathlib import Path

from flowos.engine.launch._session import Elsewhere, LaunchSession


class SharedCopies:
    """Each is made once, in a folder in `base`. All go once each node that got one was closed.

    Methods may be called from any thread.
    """

    def __init__(self, base: Callable[[], Path]) -> None:
        self._session = LaunchSession(Elsewhere(base=base, cpus=1))
        self._lock = threading.Lock()
        self._made: dict[str, Path] = {}
        self._nodes: set[str] = set()

    def once(self, node: str, name: str, copy: Callable[[Path], None]) -> Path:
        """The copy of this name for a node, by `copy`. Raises as that and `folder` do."""
        with self._lock:
            self._nodes.add(node)
            if name not in self._made:
                to = self._session.folder() / name
                copy(to)
                self._made[name] = to
            return self._made[name]

    def folder(self, node: str) -> Path:
        """Theirs, for files of this node. Raises OSError if it cannot be there."""
        with self._lock:
            self._nodes.add(node)
            return self._session.folder()

    def close(self, node: str) -> None:
        """This node needs none any more."""
        with self._lock:
            if node in self._nodes:
                self._nodes.discard(node)
                if not self._nodes:
                    self._made.clear()
                    self._session.folders.remove()
