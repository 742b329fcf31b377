"""Sources of images, each read to the same form: a tree of files and the image's configuration."""

import hashlib
import struct
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from posixpath import normpath

from flowos._dataclasses import dataclass, replace
from flowos.drivers.images import oci, sif, singularity, skopeo, squashfs
from flowos.drivers.images.tree import Content, File, Folder, TreeEntry, found, merged, one_layer
from flowos.engine import here
from flowos.model import EnvironmentRefused, ImageConfig, OnProgress, Pairs, UsageError
from flowos.operations._images._layers import (
    Part,
    check_digest,
    cut_out,
    digest_of,
    is_compressed,
    plain,
    whole,
)
from flowos.operations._images._tools import call_watched, need, version
from flowos.operations._images._tree import read_folder, read_tar

_HEAD_BYTES = 512
NO_CONFIG = ImageConfig()
_MAX_SCRIPT_BYTES = 1 << 20
_SHELLS = ("bin/sh", "bin/busybox", "usr/bin/env", "lib/ld-linux.so.2")
_PROGRAM_FOLDERS = ("bin", "usr/bin", "sbin", "usr/sbin", "usr/local/bin", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An opened source. digest: of the source itself. made_with: the programs that were used."""

    tree: Folder
    digest: str
    config: ImageConfig = NO_CONFIG
    architecture: str = ""
    made_with: Pairs = ()


Kind = str
Opener = Callable[[Path, Path, str], Opened]
"""(source, scratch, architecture) -> the opened source. Raises ValueError if damaged."""


def kind_of(source: Path) -> Kind:
    """folder, oci-layout, squashfs, sif or archive. Raises EnvironmentRefused for anything else."""
    if source.is_dir():
        return "oci-layout" if (source / "oci-layout").is_file() else "folder"
    if not source.exists():
        raise EnvironmentRefused(f"there is no {source}; a registry's image is docker://HOST/NAME")
    if not source.is_file():
        raise EnvironmentRefused(f"{source} is neither a file nor a folder")
    head = whole(source).head(_HEAD_BYTES)
    if head.startswith(b"hsqs"):
        return "squashfs"
    if head[sif.MAGIC_OFFSET :].startswith(sif.MAGIC):
        return "sif"
    if head[257:262] == b"ustar" or is_compressed(whole(source)) or _is_old_tar(head):
        return "archive"
    raise EnvironmentRefused(
        f"{source} is no archive and no image: it is neither a tar (plain or compressed) nor a "
        "squashfs nor a SIF"
    )


def open_source(source: Path, kind: Kind, scratch: Path, architecture: str) -> Opened:
    """Open a source.

    Raises EnvironmentRefused if it is damaged, of another architecture or not readable.
    """
    try:
        return OPENERS[kind](source, scratch, architecture)
    except ValueError as error:
        raise EnvironmentRefused(f"{source}: {error}") from error


def open_folder(source: Path, scratch: Path, _architecture: str) -> Opened:
    """Open a root file system in a folder, without changing it."""
    ours = source.is_relative_to(scratch)
    tree = read_folder(source, ours=ours)
    return Opened(tree=tree, digest="" if ours else here().image_at(source).digest)


def open_archive(source: Path, scratch: Path, architecture: str) -> Opened:
    """Open a tar: an archive of OCI or Docker if it has their index, else a root file system."""
    outer = plain(whole(source), scratch)
    members = _members(outer)
    if "oci-layout" in members:
        return open_layout(members, scratch, architecture)
    if "manifest.json" in members:
        return _open_docker(members, scratch)
    if "repositories" in members and any(name.endswith("/layer.tar") for name in members):
        raise ValueError("a Docker archive of before 2015: save it anew")
    entries = read_tar(outer.file, outer.offset, outer.size_bytes, _folder(scratch))
    if not entries:
        raise ValueError("an empty archive")
    return Opened(tree=one_layer(entries), digest=digest_of(whole(source)))


def resolve_reference(word: str) -> skopeo.Reference:
    """Raises UsageError if it is no reference."""
    try:
        return skopeo.read_reference(word)
    except ValueError as error:
        raise UsageError(f"{word!r:.200}: {error}") from error


def open_registry(reference: str, work: Path, architecture: str, on_progress: OnProgress) -> Opened:
    """Open an image of a registry.

    Raises EnvironmentRefused if it does not exist, or cannot be reached, read or verified.
    """
    need("skopeo", skopeo.PACKAGE, "fetch an image with")
    asked = resolve_reference(reference)
    to = work / "fetched"
    argv = skopeo.fetch(asked, to, architecture=architecture)
    ran = call_watched(argv, on_progress, f"fetching {asked}", scratch=work)
    if ran.code != 0:
        raise EnvironmentRefused(f"{asked}: {skopeo.complaint(ran.stderr)}")
    manifest = whole(to / "manifest.json")

    def blob(digest: str) -> Part:
        return _part({path.name: whole(path) for path in to.iterdir()}, digest.partition(":")[2])

    opened = open_manifest(manifest.read(), digest_of(manifest), blob, work)
    tool = version(skopeo.version(), skopeo.read_version)
    return replace(opened, made_with=(*opened.made_with, tool))


def open_layout_folder(source: Path, scratch: Path, architecture: str) -> Opened:
    files = (path for path in source.rglob("*") if path.is_file() and not path.is_symlink())
    parts = {path.relative_to(source).as_posix(): whole(path) for path in files}
    return open_layout(parts, scratch, architecture)


def open_layout(parts: Mapping[str, Part], scratch: Path, architecture: str) -> Opened:
    """Open an OCI image layout: index.json, and blobs by their digest."""

    def blob(digest: str) -> Part:
        return _part(parts, "blobs/" + digest.replace(":", "/"))

    described = oci.chosen(_part(parts, "index.json").read(), architecture)
    while oci.is_index(described):
        inner = blob(described.digest)
        check_digest(inner, described.digest, "an index")
        described = oci.chosen(inner.read(), architecture)
    manifest = blob(described.digest)
    check_digest(manifest, described.digest, "its manifest")
    return open_manifest(manifest.read(), described.digest, blob, scratch)


def open_manifest(text: bytes, digest: str, blob: Callable[[str], Part], scratch: Path) -> Opened:
    manifest = oci.read_manifest(text)
    config = blob(manifest.config.digest)
    check_digest(config, manifest.config.digest, "its configuration")
    layers = []
    for layer in manifest.layers:
        part = blob(layer.digest)
        check_digest(part, layer.digest, "a layer")
        layers.append(part)
    return _layered(config.read(), layers, digest, scratch)


def open_squashfs(source: Path, scratch: Path, _architecture: str) -> Opened:
    need("unsquashfs", squashfs.PACKAGE, "read a squashfs with")
    to = scratch / "unpacked"
    here().unpack_squashfs(source, to)
    tool = version(squashfs.version(), squashfs.read_version)
    digest = digest_of(whole(source))
    return Opened(tree=read_folder(to, ours=True), digest=digest, made_with=(tool,))


def open_sif(source: Path, scratch: Path, architecture: str) -> Opened:
    """Open the root file system of a SIF; its signature is not checked, apptainer does that."""
    file = whole(source)
    table = sif.read_header(file.head(sif.HEADER_BYTES))
    described = Part(source, table.offset, table.size_bytes).head(table.size_bytes)
    contents = sif.read_descriptors(described, file.size_bytes)
    where = contents.squashfs
    inner = cut_out(Part(source, where.offset, where.size_bytes), scratch)
    opened = open_squashfs(inner, scratch, architecture)
    if contents.oci_config:
        at = contents.oci_config
        config = oci.read_config(Part(source, at.offset, at.size_bytes).read()).image
    else:
        config = config_by_scripts(opened.tree)
    return Opened(
        tree=opened.tree,
        digest=digest_of(file),
        config=config,
        architecture=contents.architecture,
        made_with=opened.made_with,
    )


def config_by_scripts(tree: Folder) -> ImageConfig:
    """The configuration by the scripts that Apptainer and Singularity write into an image."""
    scripts = found(tree, singularity.SCRIPTS)
    names = sorted(scripts.entries) if isinstance(scripts, Folder) else []
    files = [
        found(tree, f"{singularity.SCRIPTS}/{name}")
        for name in names
        if singularity.sets_variables(name)
    ]
    texts = [_text(file.content) for file in files if isinstance(file, File)]
    runs = isinstance(found(tree, singularity.RUNSCRIPT), File)
    return ImageConfig(
        entrypoint=("/bin/sh", singularity.RUNSCRIPT) if runs else (),
        variables=singularity.variables(texts),
    )


def _text(content: Content) -> str:
    at = Part(Path(content.file), content.offset, content.size_bytes)
    return at.read(_MAX_SCRIPT_BYTES).decode(errors="replace")


OPENERS: Mapping[Kind, Opener] = {
    "folder": open_folder,
    "oci-layout": open_layout_folder,
    "squashfs": open_squashfs,
    "sif": open_sif,
    "archive": open_archive,
}


def elf_machine(tree: Folder) -> int:
    """The processor that its shell, else another of its programs, is compiled for (ELF e_machine);
    0 if it has none."""
    shells = (found(tree, path) for path in _SHELLS)
    files = (node for node in chain(shells, _programs(tree)) if isinstance(node, File))
    return next(filter(None, map(_elf_machine, files)), 0)


def _programs(tree: Folder) -> Iterator[File]:
    for path in _PROGRAM_FOLDERS:
        folder = found(tree, path)
        for name in sorted(folder.entries) if isinstance(folder, Folder) else ():
            node = found(tree, f"{path}/{name}")
            if isinstance(node, File) and node.mode & 0o111:
                yield node


def _elf_machine(file: File) -> int:
    content = file.content
    if not content.file:
        return 0
    head = Part(Path(content.file), content.offset, content.size_bytes).head(20)
    is_elf = head[:4] == b"\x7fELF" and len(head) == 20
    return int(struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)[0]) if is_elf else 0


def _open_docker(members: Mapping[str, Part], scratch: Path) -> Opened:
    image = oci.read_docker_manifest(_part(members, "manifest.json").read())
    config = _part(members, image.config).read()
    layers = [_part(members, name) for name in image.layers]
    return _layered(config, layers, "sha256:" + hashlib.sha256(config).hexdigest(), scratch)


def _layered(text: bytes, layers: list[Part], digest: str, scratch: Path) -> Opened:
    """Check each uncompressed layer against the configuration, which the digest covers."""
    config = oci.read_config(text)
    if len(config.diff_ids) != len(layers):
        raise ValueError(f"it has {len(layers)} layers, its configuration {len(config.diff_ids)}")

    def entries(part: Part, diff_id: str) -> Iterable[TreeEntry]:
        inner = plain(part, scratch)
        check_digest(inner, diff_id, "a layer")
        return read_tar(inner.file, inner.offset, inner.size_bytes, _folder(scratch))

    pairs = zip(layers, config.diff_ids, strict=True)
    tree = merged(entries(part, diff_id) for part, diff_id in pairs)
    return Opened(tree=tree, digest=digest, config=config.image, architecture=config.architecture)


def _members(outer: Part) -> dict[str, Part]:
    """The files of an uncompressed tar, links of old Docker archives followed."""
    members: dict[str, Part] = {}
    links: dict[str, str] = {}
    try:
        with outer.file.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:") as archive:
            for member in archive:
                name = normpath(member.name.lstrip("/"))
                if member.isreg():
                    members[name] = Part(outer.file, member.offset_data, member.size)
                elif member.issym():
                    links[name] = normpath(f"{name}/../{member.linkname}")
    except (tarfile.TarError, RecursionError) as error:
        raise ValueError(f"it is no tar, damaged or truncated ({error})") from error
    for name, target in links.items():
        if target in members:
            members.setdefault(name, members[target])
    return members


def _part(parts: Mapping[str, Part], name: str) -> Part:
    if name not in parts:
        raise ValueError(f"it is incomplete: {name or 'a name'} is missing in it")
    return parts[name]


def _is_old_tar(head: bytes) -> bool:
    """Is it a tar of before POSIX? It has no magic, but a checksum."""
    with suppress(tarfile.TarError):
        return bool(tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape").name)
    return False


def _folder(scratch: Path) -> Path:
    folder = scratch / "sparse"
    folder.mkdir(exist_ok=True)
    return folder
