"""A folder on the storage that is measured, and checks of the report's folder."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from flowos.model import UsageError
from flowos.operations._files import check_folder
from flowos.operations.settings import pool_named

USUAL_SCRATCH = PurePath("/var/tmp")


def scratch_of(pool: str | None) -> PurePath:
    """What is measured by default: on this machine, or a folder that all nodes of a pool see, if it
    has one. Raises UsageError for an unknown pool."""
    shared = "" if pool is None else pool_named(pool).shared
    return PurePath(shared) if shared else USUAL_SCRATCH


@contextmanager
def scratch_in(folder: PurePath) -> Iterator[str]:
    """A new folder on the measured storage. Raises UsageError if none can be created."""
    try:
        fresh = tempfile.TemporaryDirectory(prefix="flowos-", dir=folder)
    except OSError as error:
        raise UsageError(
            f"no folder can be made in {folder} ({error.strerror}): give another with --scratch"
        ) from error
    with fresh as name:
        yield name


def check_out(out: Path) -> None:
    """Raises UsageError if the report's folder cannot be created or written; leaves no file."""
    try:
        check_folder(out)
    except OSError as error:
        raise UsageError(
            f"the report cannot be written to {out} ({error.strerror}): give another with --out"
        ) from error


def emptied(folder: str) -> None:
    """Empty the folder; files that cannot be removed stay."""
    for left in Path(folder).iterdir():
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
