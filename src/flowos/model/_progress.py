"""Progress of a long operation."""

from collections.abc import Callable

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`done` of `total` units are done; total: 0 while it is unknown.

    detail: a rate or a residual, in words. left_seconds: None while there is no estimate. lasting:
    whether it stays on the screen.
    """

    doing: str
    done: float = 0
    total: float = 0
    unit: str = ""
    detail: str = ""
    left_seconds: float | None = None
    lasting: bool = False


OnProgress = Callable[[Progress], None]
