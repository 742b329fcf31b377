"""What a function gives, while the caller goes on."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Calls the function in a thread of its own."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._given: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether it has raised something."""
        return self._error is not None

    def result(self) -> T:
        """Wait for it. Raises as the function did."""
        self._thread.join()
        if self._error is None:
            return self._given[0]
        try:
            raise self._error
        finally:
            del self  # the error's traceback holds this frame

    def _call(self) -> None:
        try:
            self._given.append(self._function())
        except BaseException as error:
            self._error = error
