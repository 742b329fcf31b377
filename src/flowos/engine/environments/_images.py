"""What lies at a path: the form of an image, its digest, what it says of how it wants to be run."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from flowos.drivers.images import CONFIG
from flowos.drivers.images.own_config import read_own_config
from flowos.engine.environments._digest import (
    Identity,
    file_digest,
    file_identity,
    tree_digest,
    tree_identity,
)
from flowos.engine.environments._disk_cache import cached, keep
from flowos.engine.environments._squashfs import read_in_squashfs
from flowos.model import EnvironmentRefused, Form, Image, ImageConfig, from_plain, to_plain

_KIND = "image-digests"
_HEAD_BYTES = 96
_SQUASHFS_USED = slice(40, 48)  # where, in its superblock, a squashfs says how long it is
_SIF_MAGIC = slice(32, 41)


def image_at(path: Path, *, digest: bool = True) -> Image:
    """The image at a path, read whole where it was not read before. EnvironmentRefused.

    digest: without it little is read, and of a folder not each file's state.
    """
    path = path.absolute()
    try:
        form = _form(path)
        if form == "folder" and not digest:
            return _read(path, form, digest)
        identity = tree_identity(path) if form == "folder" else file_identity(path)
        known = _known(path, identity)
        if known is not None and (known.digest or not digest):
            return known
        image = _read(path, form, digest)
    except OSError as error:
        raise EnvironmentRefused(f"image {path}: {_why_unreadable(error, path)}") from error
    except ValueError as error:
        raise EnvironmentRefused(f"image {path}: {error}") from error
    if identity.settled:
        keep(_KIND, _key(path), {"identity": identity.words, "image": to_plain(image)})
    return image


def _key(path: Path) -> str:
    """Each machine has its own: what nodes share has another device number on each."""
    return f"{os.uname().nodename} {path}"


def _known(path: Path, identity: Identity) -> Image | None:
    """Earlier versions kept it by the path alone."""
    for key in (_key(path), str(path)):
        record = cached(_KIND, key)
        if isinstance(record, dict) and record.get("identity") == identity.words:
            with suppress(ValueError):  # kept by another version of us
                return from_plain(Image, record.get("image"))
    return None


def _read(path: Path, form: Form, digest: bool) -> Image:
    read = tree_digest if form == "folder" else file_digest
    found = read(path) if digest else ""
    return Image(form=form, digest=found, source=path, config=_config(path, form))


def _why_unreadable(error: OSError, image: Path) -> str:
    if error.filename is None or Path(os.fsdecode(error.filename)) == image:
        return f"{error.strerror}"
    return f"cannot be read whole: {os.fsdecode(error.filename)}: {error.strerror}"


def _form(path: Path) -> Form:
    """By what it is, never by its name."""
    if path.is_dir():
        return "folder"
    if not stat.S_ISREG(path.stat().st_mode):
        raise EnvironmentRefused(f"image {path}: neither a file nor a folder")
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head[:4] == b"hsqs":
        _refuse_cut_off(path, head)
        return "squashfs"
    if head[_SIF_MAGIC] == b"SIF_MAGIC":
        return "sif"
    _refuse_unknown(path)
    return "oci-archive"


def _refuse_cut_off(path: Path, head: bytes) -> None:
    have = path.stat().st_size
    wants = int.from_bytes(head[_SQUASHFS_USED], "little")
    if len(head) < _HEAD_BYTES or have < wants:
        raise EnvironmentRefused(
            f"image {path}: a squashfs that is cut off: {have} of {wants} bytes; copy it again"
        )


def _refuse_unknown(path: Path) -> None:
    import tarfile  # loads what most starts never need

    try:
        with tarfile.open(path) as archive:
            names = {name.removeprefix("./") for name in archive.getnames()}
            if not names:  # zeros alone are a tar too
                raise tarfile.TarError("an empty archive")
    except (tarfile.TarError, EOFError, RecursionError) as error:
        raise EnvironmentRefused(
            f"image {path}: neither a folder nor a squashfs, SIF or OCI archive"
        ) from error
    if "oci-layout" not in names:
        kind = "a Docker archive" if "manifest.json" in names else "an archive, but no OCI image"
        raise EnvironmentRefused(
            f"image {path}: {kind}; 'flowos image import' makes an image of it"
        )


def _config(path: Path, form: Form) -> ImageConfig:
    text = _config_text(path, form)
    return read_own_config(text) if text else ImageConfig()


def _config_text(path: Path, form: Form) -> bytes:
    """Links are not followed: an image has no business with what lies outside of it."""
    if form == "squashfs":
        return read_in_squashfs(path, CONFIG)
    if form != "folder" or (path / CONFIG).parent.is_symlink():
        return b""
    try:
        fd = os.open(path / CONFIG, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        return file.read()
