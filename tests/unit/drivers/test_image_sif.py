"""SIF headers, written here by the layout of github.com/apptainer/sif, pkg/sif."""

import struct

import pytest

from flowos.drivers.images import sif

PARTITION, JSON, SIGNATURE = 0x4004, 0x4006, 0x4005


def header(total: int, offset: int = 4096) -> bytes:
    launch = b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0")
    numbers = (0, 0, 48 - total, total, offset, 585 * total, 32768, 0)
    return launch + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16) + struct.pack("<8q", *numbers)


def descriptor(
    kind: int,
    at: int = 32768,
    size: int = 100,
    *,
    used: bool = True,
    name: bytes = b"",
    extra: bytes = b"",
) -> bytes:
    head = struct.pack("<i?III7q", kind, used, 1, 1, 0, at, size, size + 4096, 0, 0, 0, 0)
    return head + name.ljust(128, b"\0") + extra.ljust(384, b"\0")


def partition(file_system: int = 1, part: int = 2, architecture: bytes = b"02\0") -> bytes:
    return struct.pack("<ii3s", file_system, part, architecture)


def test_the_sizes_are_those_of_the_format() -> None:
    assert len(header(1)) == sif.HEADER_BYTES
    assert len(descriptor(PARTITION)) == sif.DESCRIPTOR_BYTES


def test_the_header_says_where_the_descriptors_lie() -> None:
    assert sif.read_header(header(3)) == sif.Extent(4096, 3 * 585)
    assert sif.read_header(header(1, offset=128)) == sif.Extent(128, 585)
    assert sif.read_header(header(4096)) == sif.Extent(4096, 4096 * 585)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"short", "it is no SIF"),
        (bytes(128), "it is no SIF"),
        (header(0), "its SIF header is damaged"),
        (header(1_000_000), "its SIF header is damaged"),
        (header(4097), "its SIF header is damaged"),
        (header(1, offset=127), "its SIF header is damaged"),
    ],
)
def test_a_header_that_cannot_be_right_is_refused(head: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        sif.read_header(head)


def test_the_primary_partition_is_taken_with_the_configuration_it_came_with() -> None:
    table = (
        descriptor(SIGNATURE, 90000)
        + descriptor(PARTITION, used=False, extra=partition())
        + descriptor(PARTITION, 40000, 5, extra=partition(part=1))
        + descriptor(JSON, 50000, 7, name=b"oci-config.json")
        + descriptor(JSON, 90000, 7, name=b"other.json")
        + descriptor(JSON, 90000, 7, used=False, name=b"oci-config.json")
        + descriptor(PARTITION, 41000, 6, extra=partition(architecture=b"04\0"))
        + descriptor(PARTITION, 42000, 6, extra=partition(part=3))
    )
    assert sif.read_descriptors(table, 60000) == sif.Contents(
        squashfs=sif.Extent(41000, 6), architecture="arm64", oci_config=sif.Extent(50000, 7)
    )


def test_a_partition_may_end_with_the_file_and_no_later() -> None:
    first = descriptor(PARTITION, 128, 1, extra=partition(part=1))
    assert sif.read_descriptors(first, 129).squashfs == sif.Extent(128, 1)
    table = descriptor(PARTITION, 40000, 100, extra=partition())
    assert sif.read_descriptors(table, 40100).squashfs == sif.Extent(40000, 100)
    with pytest.raises(ValueError, match=r"truncated: 40099 bytes, .* says 40100"):
        sif.read_descriptors(table, 40099)


def test_a_descriptor_that_is_cut_off_is_none() -> None:
    with pytest.raises(ValueError, match="holds no root file system"):
        sif.read_descriptors(descriptor(PARTITION, extra=partition())[:-1], 40000)


def test_an_unknown_architecture_is_not_guessed() -> None:
    table = descriptor(PARTITION, extra=partition(architecture=b"77\0"))
    assert sif.read_descriptors(table, 40000).architecture == ""


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (b"", "holds no root file system"),
        (descriptor(PARTITION, extra=partition(part=4)), "holds no root file system"),
        (descriptor(PARTITION, extra=partition(file_system=5)), "is encrypted"),
        (descriptor(PARTITION, extra=partition(file_system=2)), r"no squashfs \(SIF file system 2"),
        (descriptor(PARTITION, extra=partition()), "truncated: 32800 bytes, .* says 32868"),
        (descriptor(PARTITION, -5, extra=partition()), "truncated"),
        (descriptor(PARTITION, 500, -5, extra=partition()), "truncated"),
        (descriptor(PARTITION, 500, 0, extra=partition()), "truncated"),
        (descriptor(PARTITION, 127, 9, extra=partition()), "truncated"),
        (descriptor(PARTITION, extra=partition(file_system=6)), "is encrypted"),
        (descriptor(JSON, 40000, name=b"oci-config.json"), "truncated"),
    ],
)
def test_a_sif_without_a_squashfs_to_run_is_refused(table: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        sif.read_descriptors(table, 32800)
