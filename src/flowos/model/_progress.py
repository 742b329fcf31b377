"""How far something long is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is being done. left_seconds: None while it cannot be said. lasting: is to stay shown."""

    doing: str
    left_seconds: float | None = None
    lasting: bool = False


OnProgress = Callable[[Progress], None]
