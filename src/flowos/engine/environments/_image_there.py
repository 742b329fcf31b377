"""Where an image lies on the node that is to enter it: where it is named, or a copy of it.

SCRATCH/flowos-UID/images/DIGEST   a copy on the node's own storage, made once
                          DIGEST.lock  held while it is made
"""

import hashlib
import os
from pathlib import Path

from flowos._dataclasses import replace
from flowos.engine.environments._images import image_at
from flowos.engine.launch._private_dirs import locked, own_folder
from flowos.model import EnvironmentRefused, Image

_CHUNK_BYTES = 1 << 20


class Unseen(Exception):  # noqa: N818 - reads as what it is
    """The node does not see the image where it is named."""


def image_there(image: Image, copy: str, scratch: str) -> tuple[Image, tuple[str, ...], bool]:
    """The image as this node is to enter it, notes for a person, and whether it was verified.

    copy: where it lies besides, or "". scratch: a folder of the node's own storage, or "". Raises
    Unseen if it is not there; EnvironmentRefused if it is another one.
    """
    source = Path(image.source)
    if not source.exists():
        if not copy:
            raise Unseen
        source = Path(copy)
    if not scratch or image.form == "folder":
        return replace(image, source=source), (), False
    staged, new = _staged(image, source, Path(scratch))
    note = f"image {image.source} is copied once to {staged}"
    return replace(image, source=staged), (note,) * new, True


def _staged(image: Image, source: Path, scratch: Path) -> tuple[Path, bool]:
    """The copy, and whether it is new."""
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        staged = own_folder(scratch, "images") / image.digest.rpartition(":")[2]
        with locked(staged.with_name(f"{staged.name}.lock"), os.O_RDWR | os.O_CREAT):
            if staged.exists() and image_at(staged).digest == image.digest:
                return staged, False
            _copy(image, source, staged)
            return staged, True
    except OSError as error:
        raise EnvironmentRefused(
            f"image {image.source}: cannot be copied to scratch folder {scratch}: {error.strerror}"
        ) from error


def _copy(image: Image, source: Path, to: Path) -> None:
    """Under a hidden name until it is whole, and the one that is expected."""
    temporary, digest = to.with_name(f".{to.name}"), hashlib.sha256()
    with source.open("rb", buffering=0) as reader, temporary.open("wb") as writer:
        while data := reader.read(_CHUNK_BYTES):
            digest.update(data)
            writer.write(data)
    if f"sha256:{digest.hexdigest()}" != image.digest:
        temporary.unlink()
        raise EnvironmentRefused(
            f"image {image.source}: it is another one than requested: its digest is "
            f"sha256:{digest.hexdigest()}, expected was {image.digest}"
        )
    temporary.rename(to)
