"""Which programs this process starts: each is said, with all its words, to one that listens."""

from collections.abc import Callable, Sequence
from pathlib import Path

OnStart = Callable[[Sequence[str | Path]], None]

_listening: list[OnStart] = []


def tell_starts(to: OnStart | None) -> None:
    """From now on it is called before each start, in whatever thread; None: nothing is."""
    _listening[:] = [] if to is None else [to]


def starts(argv: Callable[[], Sequence[str | Path]]) -> None:
    """A program is started now; its words are asked for only if one listens."""
    for listener in _listening:
        listener(argv())
