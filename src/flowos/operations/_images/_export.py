"""Exports images: as a squashfs, a folder, a tar or an OCI archive.

The same image always gives the same bytes.
"""

import gzip
import hashlib
import io
import shutil
import tarfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from flowos.drivers.images import oci
from flowos.engine import here
from flowos.model import EnvironmentRefused, UsageError
from flowos.operations._images._layers import digest_of, whole
from flowos.operations._images._scratch import scratch
from flowos.operations._images._sources import open_squashfs
from flowos.operations._images._tree import write_tar

FORMS = ("squashfs", "folder", "tar", "oci-archive")


_GZIPPED = (".tar.gz", ".tgz")
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    ".sqfs": ("squashfs",),
    ".squashfs": ("squashfs",),
    ".oci": ("oci-archive",),
    ".tar": ("tar", "oci-archive"),
    **dict.fromkeys(_GZIPPED, ("tar",)),
    **dict.fromkeys((".gz", ".xz", ".bz2", ".zst", ".zip", ".sif", ".img"), ()),
}
"""Suffix of a file name -> the forms that it may be of, the default first."""


def form_of(to: Path, asked: str = "") -> str:
    """The requested form, else that of the file name's suffix; a folder if the suffix is unknown.

    Raises UsageError if the suffix belongs to another form.
    """
    fits = next((forms for end, forms in _ENDINGS.items() if to.name.endswith(end)), None)
    if fits is None:
        return asked or "folder"
    form = asked or next(iter(fits), "")
    if form not in fits:
        known = " ".join(end for end, forms in _ENDINGS.items() if forms)
        raise UsageError(
            f"{to.name}: a file name with this ending is not {form or 'an image'}; known endings: "
            f"{known}; a name without one is a folder"
        )
    return form


def write_squashfs(image: Path, to: Path, _work: Path) -> None:
    shutil.copyfile(image, to)


def write_folder(image: Path, to: Path, _work: Path) -> None:
    try:
        here().unpack_squashfs(image, to)
    except ValueError as error:
        raise EnvironmentRefused(f"{image}: {error}") from error


def write_plain_tar(image: Path, to: Path, _work: Path) -> None:
    with scratch() as work:
        tree = open_squashfs(image, work, "").tree
        with to.open("wb") as raw, _compressed(raw, to) as out:
            write_tar(tree, out, lambda _: None)


def _compressed(out: BinaryIO, to: Path) -> AbstractContextManager[BinaryIO]:
    """Compressed if the suffix says so, with no name or time in the header."""
    if not to.name.endswith(_GZIPPED):
        return nullcontext(out)
    packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0)
    return cast("AbstractContextManager[BinaryIO]", packed)


def write_oci_archive(image: Path, to: Path, name: str, architecture: str, work: Path) -> None:
    """Write one layer, not compressed. name: what a builder or runtime that loads it calls it."""
    layer = work / "layer.tar"
    write_plain_tar(image, layer, work)
    layer_at = oci.Descriptor(digest_of(whole(layer)), size_bytes=layer.stat().st_size)
    config = oci.written_config(here().image_at(image).config, architecture, layer_at.digest)
    config_at = _described(config)
    manifest = oci.written_manifest(config_at, layer_at)
    manifest_at = _described(manifest)
    small = {
        "oci-layout": oci.LAYOUT,
        "index.json": oci.written_index(manifest_at, name),
        _blob(config_at): config,
        _blob(manifest_at): manifest,
    }
    try:
        _write_archive(to, small, _blob(layer_at), layer)
    finally:
        layer.unlink()


def _described(text: bytes) -> oci.Descriptor:
    return oci.Descriptor(f"sha256:{hashlib.sha256(text).hexdigest()}", size_bytes=len(text))


def _blob(descriptor: oci.Descriptor) -> str:
    return "blobs/" + descriptor.digest.replace(":", "/")


def _write_archive(to: Path, small: Mapping[str, bytes], layer_name: str, layer: Path) -> None:
    """Write folders before their files: skopeo and apptainer do not create missing ones."""
    with tarfile.open(to, "w", format=tarfile.GNU_FORMAT) as archive:
        for folder in reversed(PurePath(layer_name).parents[:-1]):
            made = tarfile.TarInfo(str(folder))
            made.type, made.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(made)
        for name, text in small.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        info = tarfile.TarInfo(layer_name)
        info.size = layer.stat().st_size
        with layer.open("rb") as raw:
            archive.addfile(info, raw)


WRITERS: Mapping[str, Callable[[Path, Path, Path], None]] = {
    "squashfs": write_squashfs,
    "folder": write_folder,
    "tar": write_plain_tar,
}
