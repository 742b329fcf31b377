"""Kernels read from packages that are made here."""

import io
import lzma
import zlib

import pytest

from flowos.drivers.images import kernel
from flowos.drivers.images.kernel import (
    NEEDED,
    cpio,
    load_order,
    read_kernel_package,
    unpacked_image,
    unsigned,
)
from flowos.model import EnvironmentRefused
from tests.kernel_packages import FOLDERS, deb, module, parts

PVH = b"\x7fELF" + bytes(60) + b"\4\0\0\0\10\0\0\0\x12\0\0\0Xen\0" + b"code"


def big_image(payload: bytes, sectors: int = 3) -> bytes:
    """A bzImage (Documentation/x86/boot.rst), of which this is packed."""
    packed = payload + len(PVH).to_bytes(4, "little")
    head = bytearray((sectors + 1) * 512)
    head[0x1F1] = sectors
    head[0x202:0x206] = b"HdrS"
    head[0x248:0x250] = (8).to_bytes(4, "little") + len(packed).to_bytes(4, "little")
    return bytes(head) + bytes(8) + packed


def test_a_package_gives_the_kernel_and_its_modules_each_behind_what_it_needs() -> None:
    found = read_kernel_package(io.BytesIO(deb(parts())))
    assert (found.release, found.image) == ("6.1-x", b"plain")
    names = [name for name, _ in found.modules]
    assert sorted(names) == sorted(FOLDERS.keys() - {"virtio_console", "loop"})
    assert names.index("virtio") < names.index("virtio_pci")
    assert names.index("9pnet") < names.index("9p")
    assert dict(found.modules)["9p"] == module("9p")
    assert [name for name, _ in found.node_modules] == ["loop", "squashfs", "overlay"]


SIGNED = b"\0" * 8 + (5).to_bytes(4, "big") + b"~Module signature appended~\n"
"""Behind a signature of 5 bytes."""


@pytest.mark.parametrize(
    ("content", "without"),
    [
        (b"module" + b"PKCS7" + SIGNED, b"module"),
        (b"module", b"module"),
        (b"PKCS7" + SIGNED, b"PKCS7" + SIGNED),
        (SIGNED, SIGNED),
        (b"", b""),
    ],
)
def test_a_module_is_had_without_its_signature(content: bytes, without: bytes) -> None:
    assert unsigned(content) == without


def test_a_kernel_that_wants_signatures_says_so_in_its_configuration() -> None:
    assert not read_kernel_package(io.BytesIO(deb(parts()))).wants_signed
    for line, wants in (
        ("# CONFIG_MODULE_SIG_FORCE is not set", False),
        ("CONFIG_LOCK_DOWN_KERNEL_FORCE_NONE=y", False),
        ("CONFIG_MODULE_SIG_FORCE=y", True),
        ("CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y", True),
        ("CONFIG_LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY=y", True),
    ):
        config = {"./boot/config-6.1-x": f"CONFIG_MODULE_SIG=y\n{line}\nA=b\n".encode()}
        assert read_kernel_package(io.BytesIO(deb(parts() | config))).wants_signed == wants


@pytest.mark.parametrize("kind", ["gz", "bz2"])
def test_a_package_may_be_compressed_in_other_ways(kind: str) -> None:
    assert read_kernel_package(io.BytesIO(deb(parts(), kind))).release == "6.1-x"


def test_a_package_may_come_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_BLOCK_BYTES", 1)
    assert read_kernel_package(io.BytesIO(deb(parts(), "gz"))).release == "6.1-x"


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_damage_is_found_also_where_all_files_could_be_read(kind: str) -> None:
    whole = deb(parts(), kind) + b"another file" * 20_000
    assert read_kernel_package(io.BytesIO(whole)).release == "6.1-x"
    start, end = whole.index(b"`\n", whole.index(b"data.tar")) + 2, whole.index(b"another")
    for at in range(start + 12, end - 12):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        with pytest.raises(EnvironmentRefused):
            read_kernel_package(io.BytesIO(damaged))


@pytest.mark.parametrize(
    ("suffix", "pack"), [("xz", lzma.compress), ("gz", lambda c: zlib.compress(c, wbits=31))]
)
def test_modules_may_be_compressed(suffix: str, pack: object) -> None:
    assert callable(pack)
    files = {
        f"{name}.{suffix}" if name.endswith(".ko") else name: pack(content)
        if name.endswith(".ko")
        else content
        for name, content in parts().items()
    }
    assert dict(read_kernel_package(io.BytesIO(deb(files))).modules)["9p"] == module("9p")


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"PK", r"^no Debian package$"),
        (b"!<arch>\n", r"without data: it is cut off$"),
        (b"!<arch>\n" + b"x" * 60, r"without data: it is cut off$"),
        (deb({}), r"^no kernel in it: boot/vmlinuz-RELEASE is not there$"),
        (deb(parts(), "zst"), r"^it holds data.tar.zst, which cannot be read here"),
        (deb(parts())[:400], r"^its content cannot be read"),
    ],
)
def test_what_is_no_package_of_a_kernel_is_refused_in_one_line(raw: bytes, told: str) -> None:
    with pytest.raises(EnvironmentRefused, match=told) as refused:
        read_kernel_package(io.BytesIO(raw))
    assert "\n" not in str(refused.value)


def test_a_kernel_without_a_part_is_refused_by_its_name() -> None:
    files = parts()
    del files["./lib/modules/6.1-x/kernel/net/9p/9pnet.ko"]
    with pytest.raises(EnvironmentRefused, match=r"has no 9pnet, which 9pnet_virtio needs"):
        read_kernel_package(io.BytesIO(deb(files)))
    odd = {"./lib/modules/6.1-x/kernel/fs/9p/9p.ko.zst": b"x"}
    with pytest.raises(EnvironmentRefused, match=r"compressed by zstd \(fs/9p/9p.ko.zst\)"):
        read_kernel_package(io.BytesIO(deb(parts() | odd)))


def test_what_is_built_in_is_not_loaded() -> None:
    assert load_order({}, NEEDED) == ()
    odd = parts() | {"./lib/modules/6.1-x/modules.builtin": b"\xff\nvirtio_console.ko"}
    assert read_kernel_package(io.BytesIO(deb(odd))).release == "6.1-x"


def test_modules_that_need_each_other_are_loaded_once_each() -> None:
    found = {"a": b"\0depends=b\0", "b": b"\0depends=a\0"}
    assert load_order(found, (), ("a", "b")) == ("b", "a")


@pytest.mark.parametrize("pack", [lzma.compress, lambda c: zlib.compress(c, wbits=31)])
def test_an_image_that_can_be_started_unpacked_is_unpacked(pack: object) -> None:
    assert callable(pack)
    packed = big_image(pack(PVH))
    assert unpacked_image(packed) == PVH
    files = parts() | {"./boot/vmlinuz-6.1-x": packed}
    assert read_kernel_package(io.BytesIO(deb(files))).vmlinuz == packed
    assert unpacked_image(big_image(pack(PVH), sectors=0)[: 4096 * 4]) != PVH


@pytest.mark.parametrize(
    "image",
    [
        b"short",
        big_image(lzma.compress(b"\x7fELF without the note")),
        big_image(lzma.compress(b"Xen" + PVH)),
        big_image(b"(zstd)"),
        big_image(lzma.compress(PVH)[:-20]),
    ],
)
def test_any_other_image_stays_as_it_is(image: bytes) -> None:
    assert unpacked_image(image) == image


def test_an_archive_has_heads_of_110_characters_and_parts_of_4_bytes() -> None:
    """Documentation/driver-api/early-userspace/buffer-format.rst of Linux."""
    raw = cpio([("a", 0o040755, b""), ("a/file", 0o100644, b"12345")])
    assert raw.startswith(b"070701" + b"00000001" + b"000041ED")
    second = raw.index(b"070701", 6)
    assert (second, raw[second + 54 : second + 62]) == (112, b"00000005")
    assert raw[second + 94 : second + 102] == b"00000007"
    assert raw[second + 110 :].startswith(b"a/file\0\0\0\0" + b"12345\0\0\0" + b"070701")
    assert raw.rstrip(b"\0").endswith(b"TRAILER!!!")
    assert len(raw) % 4 == 0
