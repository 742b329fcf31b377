"""Files as values: absolute paths of what exists. Standard library only: workers are sent this."""

from os import PathLike
from pathlib import Path


def present(path: str | PathLike[str]) -> Path | str:
    """The absolute path, or a complaint: nothing is there."""
    absolute = Path(path).absolute()
    return absolute if absolute.exists() else f"expected a file, nothing is at {absolute}"
