"""How far something long is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """So many units of `total` are done; total: 0 while that is not known.

    detail: a rate or a residual, in words. left_seconds: None while it cannot be said. lasting: is
    it to stay shown?
    """

    doing: str
    done: float = 0
    total: float = 0
    unit: str = ""
    detail: str = ""
    left_seconds: float | None = None
    lasting: bool = False


OnProgress = Callable[[Progress], None]
