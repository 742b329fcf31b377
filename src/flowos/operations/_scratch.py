"""A folder on the storage that is measured, and whether one can be made elsewhere."""

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


def check_out(out: Path) -> None:
    """UsageError where the report's folder cannot be made or written; nothing is left behind."""
    try:
        there = next(folder for folder in (out, *out.parents) if folder.exists())
        tempfile.TemporaryDirectory(prefix=".flowos-", dir=there).cleanup()
    except OSError as error:
        raise UsageError(
            f"the report cannot be written to {out} ({error.strerror}): give another with --out"
        ) from error


def emptied(folder: str) -> None:
    """Remove what lies in the folder; what cannot be removed stays."""
    for left in Path(folder).iterdir():
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
