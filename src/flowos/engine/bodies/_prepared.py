"""What a native body runs: an object that is called with values, made ready once per process."""

import threading
from collections.abc import Callable
from sys import modules
from typing import Any

from flowos.engine.bodies._masks import MASKS, refuse_masked
from flowos.model import NativePorts

__flowos_frames__ = True
_making = threading.Lock()


class BodyError(Exception):
    """A body could not be run with these values, or returned something else than 0."""


class PreparedBody:
    """Called with the values of a task's inputs, gives those of its outputs."""

    __slots__ = ("_call",)
    ports: NativePorts

    def __init__(self) -> None:
        self._call: Callable[..., Any] | None = None

    def __call__(self, *values: Any) -> Any:
        if MASKS in modules:
            refuse_masked(self.ports, values)
        return (self._call or self._ready())(*values)

    def _ready(self) -> Callable[..., Any]:
        with _making:
            if self._call is None:
                self._call = self._prepared()
        return self._call

    def _prepared(self) -> Callable[..., Any]:
        """What is called from now on; by one thread at a time."""
        raise NotImplementedError
