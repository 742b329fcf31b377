"""SIF, Apptainer's image file: locates the squashfs in it.

Layout from its reference code, github.com/apptainer/sif (pkg/sif): a header of 128 bytes, a table
of descriptors of 585 bytes each, then the data; little-endian, packed.
"""

import struct

from flowos._dataclasses import dataclass

MAGIC = b"SIF_MAGIC\0"
MAGIC_OFFSET = 32
HEADER_BYTES = 128
DESCRIPTOR_BYTES = 585
MAX_DESCRIPTORS = 4096

_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?IIIqqqqqqq128s384s")
_PARTITION = struct.Struct("<ii3s")

_DATA_PARTITION, _DATA_GENERIC_JSON = 0x4004, 0x4006
_FS_SQUASH, _FS_ENCRYPTED = 1, (5, 6)
_PART_SYSTEM, _PART_PRIMARY = 1, 2
_ARCHITECTURES = {
    b"01": "386",
    b"02": "amd64",
    b"03": "arm",
    b"04": "arm64",
    b"05": "ppc64",
    b"06": "ppc64le",
    b"11": "s390x",
    b"12": "riscv64",
}


@dataclass(frozen=True, slots=True)
class Extent:
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """squashfs: the root file system. oci_config: configuration of its OCI source image."""

    squashfs: Extent
    architecture: str
    oci_config: Extent | None = None


def read_header(head: bytes) -> Extent:
    """Location of the descriptors. Raises ValueError if it is no SIF, or damaged."""
    if len(head) < HEADER_BYTES or head[MAGIC_OFFSET : MAGIC_OFFSET + len(MAGIC)] != MAGIC:
        raise ValueError("it is no SIF")
    total, offset = _HEADER.unpack_from(head)[8:10]
    if not 0 < total <= MAX_DESCRIPTORS or offset < HEADER_BYTES:
        raise ValueError("its SIF header is damaged")
    return Extent(offset, total * DESCRIPTOR_BYTES)


def read_descriptors(table: bytes, file_bytes: int) -> Contents:
    """Raises ValueError if it has no usable squashfs: none, encrypted, or truncated."""
    partitions: list[tuple[bool, Extent, bytes]] = []
    config = None
    for at in range(0, len(table) - DESCRIPTOR_BYTES + 1, DESCRIPTOR_BYTES):
        kind, used, *_, extra = fields = _DESCRIPTOR.unpack_from(table, at)
        extent, name = Extent(fields[5], fields[6]), fields[12].rstrip(b"\0")
        if used and kind == _DATA_PARTITION:
            primary = _PARTITION.unpack_from(extra)[1] == _PART_PRIMARY
            partitions.append((primary, extent, extra))
        elif used and kind == _DATA_GENERIC_JSON and name == b"oci-config.json":
            config = _within(extent, file_bytes)
    for _, extent, extra in sorted(partitions, key=lambda found: not found[0]):
        if _is_system(extra):
            squashfs = _within(extent, file_bytes)
            architecture = _ARCHITECTURES.get(_PARTITION.unpack_from(extra)[2].rstrip(b"\0"), "")
            return Contents(squashfs=squashfs, architecture=architecture, oci_config=config)
    raise ValueError("its SIF holds no root file system")


def _is_system(extra: bytes) -> bool:
    file_system, part, _ = _PARTITION.unpack_from(extra)
    if part not in (_PART_SYSTEM, _PART_PRIMARY):
        return False
    if file_system in _FS_ENCRYPTED:
        raise ValueError("its root file system is encrypted: decrypt it first with apptainer")
    if file_system != _FS_SQUASH:
        raise ValueError(f"its root file system is no squashfs (SIF file system {file_system})")
    return True


def _within(extent: Extent, file_bytes: int) -> Extent:
    end = extent.offset + extent.size_bytes
    if not HEADER_BYTES <= extent.offset < end <= file_bytes:
        raise ValueError(f"it is truncated: {file_bytes} bytes, where its SIF header says {end}")
    return extent
