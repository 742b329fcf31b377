"""Small images of every kind, written by hand, for tests of `flowos image`."""

import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]

Member = tuple[str, bytes | str | None]
"""Name and text; a str is a symbolic link's target, None a folder."""

SMALL: tuple[Member, ...] = (
    ("bin", None),
    ("bin/hello", b"hello\n"),
    ("bin/hi", "hello"),
    ("etc", None),
    ("etc/motd", b"welcome\n"),
)


def tar(members: Sequence[Member | tarfile.TarInfo], *, mode: int = 0o755) -> bytes:
    """An uncompressed tar. A TarInfo is put in as it is."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            name, text = member
            info = tarfile.TarInfo(name)
            info.mode = mode
            if text is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(text, str):
                info.type, info.linkname = tarfile.SYMTYPE, text
            else:
                info.size = len(text)
            archive.addfile(info, io.BytesIO(text if isinstance(text, bytes) else b""))
    return out.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def with_long_names(count: int) -> bytes:
    """A tar whose member has a chain of long names before it."""
    info = special("././@LongLink", tarfile.GNUTYPE_LONGNAME)
    info.size = 2
    one = info.tobuf(tarfile.GNU_FORMAT) + b"x\0".ljust(512, b"\0")
    return one * count + tar([("x", b"x")])


def digest(text: bytes) -> str:
    return "sha256:" + hashlib.sha256(text).hexdigest()


def config_of(layers: Sequence[bytes], architecture: str = MACHINE) -> bytes:
    inner = {"Env": ["WHO=world"], "Entrypoint": ["/bin/hello"], "WorkingDir": "/etc"}
    rootfs = {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}
    raw = {"architecture": architecture, "os": "linux", "config": inner, "rootfs": rootfs}
    return json.dumps(raw | {"history": [{"created_by": "x"} for _ in layers]}).encode()


def oci_parts(
    layers: Sequence[bytes], *, architecture: str = MACHINE, compress: bool = True
) -> dict[str, bytes]:
    """The files of an OCI layout."""
    config = config_of(layers, architecture)
    stored = [gzip.compress(layer, mtime=0) if compress else layer for layer in layers]
    kind = "application/vnd.oci.image."
    ending = "+gzip" if compress else ""

    def described(text: bytes, media: str) -> dict[str, object]:
        return {"mediaType": kind + media, "digest": digest(text), "size": len(text)}

    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{kind}manifest.v1+json",
            "config": described(config, "config.v1+json"),
            "layers": [described(each, f"layer.v1.tar{ending}") for each in stored],
        }
    ).encode()
    named = {"annotations": {"org.opencontainers.image.ref.name": "x"}}
    index = {"schemaVersion": 2, "manifests": [described(manifest, "manifest.v1+json") | named]}
    blobs = {f"blobs/sha256/{digest(b)[7:]}": b for b in (config, manifest, *stored)}
    layout = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    return layout | {"index.json": json.dumps(index).encode()} | blobs


def docker_parts(layers: Sequence[bytes]) -> dict[str, bytes]:
    """The files of a `docker save`."""
    config = config_of(layers)
    names = [f"{digest(layer)[7:]}/layer.tar" for layer in layers]
    name = f"{digest(config)[7:]}.json"
    manifest = [{"Config": name, "RepoTags": ["x:1"], "Layers": names}]
    return {
        name: config,
        "manifest.json": json.dumps(manifest).encode(),
        **dict(zip(names, layers, strict=True)),
    }


def written_tar(parts: dict[str, bytes], to: Path) -> Path:
    to.write_bytes(tar(list(parts.items())))
    return to


def written_folder(parts: dict[str, bytes], to: Path) -> Path:
    for name, text in parts.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(text)
    return to


def written_root(to: Path, members: Sequence[Member] = SMALL) -> Path:
    for name, text in members:
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        elif isinstance(text, str):
            path.symlink_to(text)
        else:
            path.write_bytes(text)
            path.chmod(0o755)
    return to


def squashed(root: Path, to: Path) -> Path:
    words = ("-noappend", "-no-xattrs", "-no-progress", "-quiet", "-all-root", "-comp", "gzip")
    subprocess.run(["mksquashfs", root, to, *words], check=True, capture_output=True)
    return to


def overwritten(file: Path) -> Path:
    """Its middle is other bytes: what was compressed there cannot be read any more."""
    text = bytearray(file.read_bytes())
    length = len(text) // 3
    text[length : 2 * length] = b"X" * length
    file.write_bytes(text)
    return file


def sif(squashfs: bytes, *, oci_config: bytes = b"", architecture: bytes = b"02") -> bytes:
    """As github.com/apptainer/sif writes it: header, descriptors, data at 32768."""
    at = 32768
    objects = [(0x4004, b"rootfs", struct.pack("<ii3s", 1, 2, architecture + b"\0"), squashfs)]
    if oci_config:
        objects.append((0x4006, b"oci-config.json", b"", oci_config))
    table, data = b"", b""
    for number, (kind, name, extra, text) in enumerate(objects, 1):
        head = (kind, 1, number, 1, 0, at + len(data), len(text), len(text), 0, 0, 0, 0)
        table += struct.pack("<i?III7q", *head) + name.ljust(128, b"\0") + extra.ljust(384, b"\0")
        data += text
    counts = (0, 0, 48 - len(objects), len(objects), 128, len(table), at, len(data))
    header = b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + architecture + b"\0"
    header += bytes(16) + struct.pack("<8q", *counts)
    return (header + table).ljust(at, b"\0") + data


def in_image(image: Path, path: str) -> bytes:
    words = ["unsquashfs", "-cat", str(image), path]
    return subprocess.run(words, check=True, capture_output=True).stdout


def names_in(image: Path) -> dict[str, str]:
    """Path -> mode, and the link's target; owners are checked to be root."""
    words = ["unsquashfs", "-d", "", "-llnumeric", str(image)]
    listed = subprocess.run(words, check=True, capture_output=True).stdout
    seen = {}
    for line in os.fsdecode(listed).split("\n"):
        if len(words := line.split(maxsplit=5)) < 6:
            continue
        mode, owner, _, _, _, name = words
        assert owner == "0/0"
        path, _, target = name.partition(" -> ")
        seen[path.lstrip("/")] = f"{mode} -> {target}" if target else mode
    return seen


def has(program: str) -> bool:
    return shutil.which(program) is not None
