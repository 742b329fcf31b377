"""Debian packages of kernels, made here."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable

FOLDERS = {
    "loop": "drivers/block",
    "virtio_blk": "drivers/block",
    "virtio_console": "drivers/char",
    "9pnet": "net/9p",
}
FOLDERS |= {"squashfs": "fs/squashfs", "overlay": "fs/overlayfs", "9p": "fs/9p"}
FOLDERS |= {"loop": "drivers/block"}
FOLDERS |= {"9pnet_virtio": "net/9p", "virtio_pci": "drivers/virtio", "virtio": "drivers/virtio"}
_PACKED: dict[str, Callable[[bytes], bytes]] = {
    "xz": lzma.compress,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": bytes,
}
_NEEDS = {"9p": "9pnet", "9pnet_virtio": "9pnet,virtio", "virtio_pci": "virtio"}


def module(name: str) -> bytes:
    return b"\x7fELF..\0license=GPL\0depends=" + _NEEDS.get(name, "").encode() + b"\0name=x\0"


def parts() -> dict[str, bytes]:
    """Files of a package; virtio_console is built in."""
    found = {"./boot/vmlinuz-6.1-x": b"plain", "./usr/share/doc": b"text"}
    found["./lib/modules/6.1-x/modules.builtin"] = b"kernel/drivers/char/virtio-console.ko\n"
    for name, folder in FOLDERS.items():
        if name != "virtio_console":
            found[f"./lib/modules/6.1-x/kernel/{folder}/{name}.ko"] = module(name)
    return found


def deb(files: dict[str, bytes], kind: str = "xz") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("./lib/modules/6.1-x/build")
        link.type = tarfile.SYMTYPE
        tar.addfile(link)
    packed = _PACKED[kind](data.getvalue())
    members = {"debian-binary": b"2.0", "control.tar.xz": b"abc", f"data.tar.{kind}": packed}
    raw = b"!<arch>\n"
    for name, content in members.items():
        raw += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        raw += content + b"\n" * (len(content) % 2)
    return raw
