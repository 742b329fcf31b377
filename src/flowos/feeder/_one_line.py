"""Errors as one line."""

from flowos.model import FeedError


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
