"""Errors and lists as one line."""

from collections.abc import Sequence

from flowos.model import FeedError

_MOST_LISTED = 3


def one_line(why: BaseException) -> str:
    """Ours are one line already; of another's, its kind and its first line."""
    try:
        text = str(why)
    except Exception:  # its class is broken
        text = ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if isinstance(why, FeedError):
        return first
    return f"{type(why).__name__}: {first}" if first else type(why).__name__


def listed(names: Sequence[str]) -> str:
    """All of three names; of more, the first two, and how many there are besides."""
    if len(names) <= _MOST_LISTED:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"
