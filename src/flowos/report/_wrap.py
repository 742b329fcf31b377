"""Wraps text for a terminal to WIDTH columns; commands are not broken."""

from collections.abc import Sequence
from textwrap import wrap

from flowos.report._words import spans_of

WIDTH = 100
_HELD = "\N{NO-BREAK SPACE}"


def wrapped(words: str, first: str = "", rest: str = "") -> Sequence[str]:
    """Lines that begin with `first` and, from the second on, with `rest`.

    A command in backquotes stays on one line.
    """
    held = "".join(
        f"`{piece.replace(' ', _HELD)}`" if code else piece for piece, code in spans_of(words)
    )
    lines = wrap(
        held,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HELD, " ") for line in lines]


def safe(line: str) -> str:
    """No control character reaches a terminal; characters without an encoding become '?'."""
    printable = "".join(c if c.isprintable() else "?" for c in line)
    return printable.encode("utf-8", "replace").decode("utf-8")
