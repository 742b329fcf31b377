"""Files that FlowOS wrote, perhaps on another machine, read whole and with bounds."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from flowos.model import UsageError

T = TypeVar("T")


def read_document(path: Path, noun: str, read: Callable[[str], T], *, max_bytes: int) -> T:
    """What `read` makes of the text. Raises UsageError, with the file's name, if it is none.

    noun: what the file should be, such as baseline.
    """
    try:
        with open(path, "rb", opener=_opened) as file:
            text = file.read(max_bytes + 1)
        if len(text) > max_bytes:
            raise UsageError(f"this is no FlowOS {noun}: it is larger than {max_bytes >> 20} MiB")
        return read(text.decode("utf-8-sig"))  # some editors write a mark
    except OSError as error:
        raise UsageError(f"{noun} {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: this is no FlowOS {noun}: it is no text") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _opened(path: str, flags: int) -> int:
    """A FIFO without a writer is empty, and is not waited for."""
    found = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(found, True)
    return found
