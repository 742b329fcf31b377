"""A Debian package of a Linux kernel, read: its image, and the modules that booting needs.

    ar archive: debian-binary, control.tar.*, data.tar.* with boot/vmlinuz-RELEASE and
    lib/modules/RELEASE/kernel/.../NAME.ko

The image is compressed, and unpacking it is half the time of a boot without hardware's help. So it
is unpacked here, once, where it can be started so (an ELF with the entry of Xen's PVH).

Tested with Debian 12's linux-image-6.1. Its cloud kernel lacks 9p.
"""

import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import IO

from flowos._dataclasses import dataclass
from flowos.model import EnvironmentRefused

NEEDED = ("virtio_pci", "virtio_console", "virtio_blk", "squashfs", "overlay", "9pnet_virtio", "9p")
"""Modules, or built in, without which no image can be booted; in the order of their loading."""

NODE_NEEDED = ("loop", "squashfs", "overlay")
"""The same of a node, which has its image in memory."""

_FOLDERS = (
    *("drivers/virtio/", "drivers/block/virtio_blk", "drivers/char/virtio_console", "lib/"),
    "drivers/block/loop.",
    *("fs/squashfs/", "fs/overlayfs/", "fs/9p/", "fs/netfs/", "fs/fscache/", "net/9p/"),
)
"""Where those lie, and what they need; the rest of the package is skipped."""

MAX_CPIO_BYTES = (1 << 32) - 1
"""Of a file in an archive for the kernel."""

_SIGNED, _SIGNATURE_HEAD_BYTES = b"~Module signature appended~\n", 12
"""What ends a signed module, and struct module_signature, before it."""
_FORCED = re.compile(
    rb"^CONFIG_(MODULE_SIG_FORCE|LOCK_DOWN_KERNEL_FORCE_(INTEGRITY|CONFIDENTIALITY))=y$",
    re.MULTILINE,
)

_AR, _AR_HEADER_BYTES = b"!<arch>\n", 60
_BLOCK_BYTES = 1 << 16
_PAYLOAD, _SETUP_SECTORS, _BOOT_MAGIC = 0x248, 0x1F1, slice(0x202, 0x206)
_PVH_NOTE = b"\4\0\0\0\4\0\0\0\x12\0\0\0Xen\0"
_PVH_NOTE_64 = b"\4\0\0\0\10\0\0\0\x12\0\0\0Xen\0"


@dataclass(frozen=True, kw_only=True)
class UnpackedKernel:
    """vmlinuz: the image as the package has it, for boot loaders.

    modules, node_modules: their files by name, in the order of their loading, for guests and nodes.
    wants_signed: it loads no other modules, whatever its parameters are.
    """

    release: str
    vmlinuz: bytes
    image: bytes
    modules: tuple[tuple[str, bytes], ...]
    node_modules: tuple[tuple[str, bytes], ...]
    wants_signed: bool = False


def read_kernel_package(file: IO[bytes]) -> UnpackedKernel:
    """Raises EnvironmentRefused for what is no package of a kernel, or of one without a part."""
    builtin = frozenset[str]()
    boot: dict[str, bytes] = {}
    found: dict[str, bytes] = {}
    try:
        for name, read in _files(file):
            if name.startswith(("boot/vmlinuz-", "boot/config-")):
                boot[name] = read()
            elif name.endswith("/modules.builtin"):
                builtin = frozenset(map(_module_name, read().decode(errors="replace").split()))
            elif (inside := _module_path(name)).startswith(_FOLDERS):
                found[_module_name(name)] = _unpacked_module(inside, read())
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise EnvironmentRefused(f"its content cannot be read: {error}") from error
    return _unpacked_kernel(boot, found, builtin)


def _unpacked_kernel(
    boot: Mapping[str, bytes], found: Mapping[str, bytes], builtin: Iterable[str]
) -> UnpackedKernel:
    images = [name for name in boot if name.startswith("boot/vmlinuz-") and boot[name]]
    if not images:
        raise EnvironmentRefused("no kernel in it: boot/vmlinuz-RELEASE is not there")
    image, release = boot[images[-1]], images[-1].removeprefix("boot/vmlinuz-")
    guests, nodes = (load_order(found, builtin, needed) for needed in (NEEDED, NODE_NEEDED))
    return UnpackedKernel(
        release=release,
        vmlinuz=image,
        image=unpacked_image(image),
        modules=tuple((name, found[name]) for name in guests),
        node_modules=tuple((name, found[name]) for name in nodes),
        wants_signed=bool(_FORCED.search(boot.get(f"boot/config-{release}", b""))),
    )


def unsigned(module: bytes) -> bytes:
    """Without its signature, whose check is most of loading it where instructions are computed.

    A kernel loads it so unless it was built, or its parameters are, to check (module_signature.h).
    """
    signed = module.removesuffix(_SIGNED)
    size = int.from_bytes(signed[-4:], "big") + _SIGNATURE_HEAD_BYTES
    return signed[:-size] if len(signed) < len(module) and size < len(signed) else module


def load_order(
    found: Mapping[str, bytes], builtin: Iterable[str], needed: Iterable[str] = NEEDED
) -> tuple[str, ...]:
    """Names of the modules to load, each after those that it needs."""
    order: list[str] = []
    seen = {*builtin}  # also those that need each other

    def add(name: str, needs: str) -> None:
        if name in seen:
            return
        if name not in found:
            raise EnvironmentRefused(
                f"its kernel has no {name}, which {needs} needs; Debian's cloud kernels have no 9p"
            )
        seen.add(name)
        for other in _depends(found[name]):
            add(other, name)
        order.append(name)

    for name in needed:
        add(name, "booting an image")
    return tuple(order)


def unpacked_image(image: bytes) -> bytes:
    """The ELF in a bzImage if QEMU can start it as it is, else the same (boot protocol 2.08)."""
    if image[_BOOT_MAGIC] != b"HdrS" or len(image) < _PAYLOAD + 8:
        return image
    sectors = image[_SETUP_SECTORS] or 4
    at = (sectors + 1) * 512 + int.from_bytes(image[_PAYLOAD : _PAYLOAD + 4], "little")
    size = int.from_bytes(image[_PAYLOAD + 4 : _PAYLOAD + 8], "little")
    try:
        elf = _unpacked(image[at : at + size - 4])  # the last 4 bytes are its length
    except (lzma.LZMAError, zlib.error, EOFError):
        return image
    starts = elf.startswith(b"\x7fELF") and (_PVH_NOTE in elf or _PVH_NOTE_64 in elf)
    return elf if starts else image


def cpio(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """An archive (newc) of folders, which have no content, and files: path, mode, content.

    The kernel unpacks several of them, one behind the other.
    """
    parts = []
    for number, (name, mode, content) in enumerate((*files, ("TRAILER!!!", 0, b"")), 1):
        parts += [cpio_head(name, mode, len(content), number), content, cpio_padding(len(content))]
    return b"".join(parts)


def cpio_head(name: str, mode: int, size: int, number: int) -> bytes:
    """What stands before the content of one of its files."""
    raw = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
    return head + cpio_padding(len(head))


def cpio_padding(size: int) -> bytes:
    """What stands behind it."""
    return bytes(-size % 4)


def _files(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Each file of the package, to be read before the next one is asked for."""
    with tarfile.open(fileobj=_data_of(file), mode="r|*") as data:
        for member in data:
            if member.isfile():

                def read(member: tarfile.TarInfo = member) -> bytes:
                    content = data.extractfile(member)
                    return content.read() if content else b""

                yield member.name.removeprefix("./"), read
        with suppress(EOFError):  # another file of the package may be behind the last one's end
            while data.fileobj.read(_BLOCK_BYTES):
                pass  # a checksum stands at the end


class _Gunzipped(io.RawIOBase):
    """Compares its checksum, which tarfile does not."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._inflate = file, zlib.decompressobj(wbits=31)

    def read(self, size: int = _BLOCK_BYTES) -> bytes:
        """Of this size at most; nothing at its end. Raises zlib.error if it is damaged."""
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._file.read(_BLOCK_BYTES)
            if not packed:
                raise zlib.error("it is cut off")
            if found := self._inflate.decompress(packed, size):
                return found
        return b""


def _data_of(file: IO[bytes]) -> "IO[bytes] | _Gunzipped":
    """The package's file where its data begin."""
    if file.read(len(_AR)) != _AR:
        raise EnvironmentRefused("no Debian package")
    while head := file.read(_AR_HEADER_BYTES):
        name, size = head[:16].decode(errors="replace").strip().rstrip("/"), head[48:58].strip()
        if not size.isdigit():
            break
        if name == "data.tar.gz":
            return _Gunzipped(file)
        if name in ("data.tar", "data.tar.xz", "data.tar.bz2"):
            return file
        if name.startswith("data.tar"):
            raise EnvironmentRefused(
                f"it holds {name}, which cannot be read here; dpkg-deb --raw-extract and "
                "dpkg-deb -Zxz --build make a package of it that can"
            )
        file.seek(int(size) + int(size) % 2, 1)
    raise EnvironmentRefused("a Debian package without data: it is cut off")


def _module_path(name: str) -> str:
    """Below lib/modules/RELEASE/kernel; "" for what is no module."""
    found = re.search(r"lib/modules/[^/]+/kernel/(.*\.ko(?:\.(?:xz|gz|zst))?)$", name)
    return found[1] if found else ""


def _module_name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("-", "_")


def _unpacked_module(name: str, content: bytes) -> bytes:
    if name.endswith(".zst"):
        raise EnvironmentRefused(f"its modules are compressed by zstd ({name}), which is not read")
    return content if name.endswith(".ko") else _unpacked(content)


def _depends(module: bytes) -> list[str]:
    """The modules that it names in its section .modinfo."""
    found = re.search(rb"\0depends=([\w,-]*)\0", module)
    names = found[1].decode().replace("-", "_").split(",") if found else []
    return [name for name in names if name]


def _unpacked(content: bytes) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        return zlib.decompress(content, wbits=31)
    return lzma.decompress(content)
