"""A folder on the storage that is measured."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from flowos.model import UsageError


@contextmanager
def scratch_in(folder: PurePath) -> Iterator[str]:
    """A fresh folder on the storage to be measured. UsageError where none can be made."""
    try:
        fresh = tempfile.TemporaryDirectory(prefix="flowos-", dir=folder)
    except OSError as error:
        raise UsageError(
            f"no folder can be made in {folder} ({error.strerror}): give another with --scratch"
        ) from error
    with fresh as name:
        yield name


def emptied(folder: str) -> None:
    """Remove what lies in the folder; what cannot be removed stays."""
    for left in Path(folder).iterdir():
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
