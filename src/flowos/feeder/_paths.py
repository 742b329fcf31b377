"""What a file can be named."""

import os

from flowos.model import FeedError, brief_repr


def check_path(word: str) -> None:
    """Raises FeedError for what no file can be named."""
    try:
        if b"\0" not in os.fsencode(word):
            return
        why = "it has a zero byte in it"
    except UnicodeEncodeError as error:
        why = str(error)
    raise FeedError(f"Feed: {brief_repr(word)} is no path: {why}")
