"""Wraps text for a terminal to WIDTH columns, or to fewer; commands are not broken."""

import re
from collections.abc import Sequence
from textwrap import wrap

from flowos.report._words import spans_of

WIDTH = 100
_HELD = "\N{NO-BREAK SPACE}"


def wrapped(words: str, first: str = "", rest: str = "", width: int = WIDTH) -> Sequence[str]:
    """Lines that begin with `first` and, from the second on, with `rest`.

    A command in backquotes stays on one line.
    """
    lines = wrap(
        _with_commands_held(words),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HELD, " ") for line in lines]


def folded(text: str, width: int) -> str:
    """A text whose lines are no wider than a terminal: a row of a table goes on below, cell by
    cell, and prose word by word. One word that is wider stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def _folded(line: str, width: int) -> Sequence[str]:
    if len(line) <= width:
        return [line]
    cells = re.split(r" {2,}", line.strip())
    indent = " " * (len(line) - len(line.lstrip()))
    indent = indent[: width // 3]  # above a table, of the names of its columns
    rest = f"{indent}    "
    room = width - len(rest)
    held = (cell.replace(" ", _HELD) if len(cell) <= room else cell for cell in cells)
    return wrapped("  ".join(held), indent, rest, width)


def _with_commands_held(words: str) -> str:
    return "".join(
        f"`{piece.replace(' ', _HELD)}`" if code else piece for piece, code in spans_of(words)
    )


def safe(line: str) -> str:
    """No control character reaches a terminal; characters without an encoding become '?'."""
    printable = "".join(c if c.isprintable() else "?" for c in line)
    return printable.encode("utf-8", "replace").decode("utf-8")
