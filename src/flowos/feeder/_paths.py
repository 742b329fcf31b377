"""What a file can be named."""

import os
from pathlib import Path

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


def absolute(word: str) -> Path:
    """Raises FeedError if it is below the current folder, which was removed."""
    try:
        return Path(word).absolute()
    except FileNotFoundError:
        raise FeedError(
            f"Feed: {word}: the current folder was removed: change to another one, or give a path "
            "that begins with /"
        ) from None
