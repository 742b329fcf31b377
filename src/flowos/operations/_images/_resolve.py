"""Finds an image by its path, or by its name in the library."""

import os
from contextlib import suppress
from pathlib import Path

from flowos._user_folders import expanded
from flowos.drivers.images import CONFIG
from flowos.engine import here
from flowos.model import EnvironmentRefused, FlowosError, Image
from flowos.operations._images._names import found, names

_FILES = (".sqfs", ".squashfs", ".sif", ".tar", ".oci")
_ROOT_HAS = ("usr", "bin", "sbin", "etc", "lib", "dev", "proc", CONFIG)


def resolve_image(name: str, *, digest: bool = True) -> Image:
    """Raises EnvironmentRefused if there is none, or both a path and a name fit.

    digest: of what lies at a path; of an image in the library it is always known.
    """
    path = expanded(name)
    if path.exists():
        _check_path(name, path)
        return here().image_at(path, digest=digest)
    if "/" in name or name.endswith(_FILES):
        raise EnvironmentRefused(f"no such image: there is nothing at {path.absolute()}")
    return found(name)


def _check_path(name: str, path: Path) -> None:
    """Nothing that lies here by chance is entered."""
    if "/" not in name and not name.endswith(_FILES) and (digest := _in_library(name)):
        raise EnvironmentRefused(
            f"environment {name}: both an image of your library and ./{name}: write ./{name} for "
            f"what lies here, {digest[:19]} for the image, or rename one of them"
        )
    if path.is_dir() and not any(os.path.lexists(path / top) for top in _ROOT_HAS):
        raise EnvironmentRefused(
            f"image {path.absolute()}: this folder is no root file system: it has no /usr or /bin"
        )


def _in_library(name: str) -> str:
    """The digest of the image of this name; "" if there is none."""
    with suppress(FlowosError):  # what lies here needs no library
        return names().get(name, "")
    return ""
