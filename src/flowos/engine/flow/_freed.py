"""What a `with` statement frees at its end."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Freed(ABC):
    """A slice of any kind."""

    @abstractmethod
    def free(self) -> None:
        """Give all back. Twice is once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.free()
