"""An environment that launches can start in."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from flowos.model import Environment


class Ready:
    """An environment to launch in, until `close`. `notes`: what a person should know of it."""

    def __init__(self, env: Environment, notes: tuple[str, ...], undo: Callable[[], None]) -> None:
        self.env = env
        self.notes = notes
        self._undo: list[Callable[[], None]] = [undo]

    def close(self) -> None:
        """Give back what was mounted. No launch in it may run any more. Twice is once."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
