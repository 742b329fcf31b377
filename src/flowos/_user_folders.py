"""Folders of the user, by the XDG Base Directory Specification."""

import os
from pathlib import Path

from flowos.model._errors import FlowosError

__flowos_frames__ = True


class HomeFolderError(FlowosError, OSError):
    """There is no home folder, as for a user without a name in a container."""


def data_folder() -> Path:
    """$XDG_DATA_HOME/flowos, or ~/.local/share/flowos; it need not exist.

    Raises HomeFolderError if there is no home folder.
    """
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/flowos, or ~/.cache/flowos; it need not exist. Raises as `data_folder`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """$XDG_CONFIG_HOME/flowos, or ~/.config/flowos; it need not exist. Raises as `data_folder`."""
    return _folder("XDG_CONFIG_HOME", ".config")


def expanded(path: str | Path) -> Path:
    """With ~ replaced; ~NAME of an unknown user stays, and is a path that does not exist."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - which never fails


def _folder(variable: str, within_home: str) -> Path:
    given = os.environ.get(variable, "")  # the specification: a relative one is to be ignored
    if given.startswith("/"):
        return Path(given) / "flowos"
    home = expanded("~")
    if not home.is_absolute():
        raise HomeFolderError(f"there is no home folder: set HOME, or {variable}")
    return home / within_home / "flowos"
