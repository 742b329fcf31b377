"""Layers and archives in files: checked against their digests, decompressed once."""

import bz2
import gzip
import hashlib
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flowos._dataclasses import dataclass
from flowos.operations._images._scratch import check_room
from flowos.operations._images._tools import call, need
from flowos.operations._images._tree import Window

_CHUNK_BYTES = 1 << 20
_USUAL_RATIO = 2.5
"""How much larger a layer usually is when decompressed; only to warn before the disk is full."""

_OPENERS: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
_ZSTD = b"\x28\xb5\x2f\xfd"
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


@dataclass(frozen=True, slots=True)
class Part:
    """A range of bytes in a file."""

    file: Path
    offset: int
    size_bytes: int

    def read(self, max_bytes: int = 1 << 26) -> bytes:
        """Read all of a small part. Raises ValueError if it is larger than `max_bytes`."""
        if self.size_bytes > max_bytes:
            raise ValueError(
                f"a JSON description of {self.size_bytes} bytes is too large (at most {max_bytes})"
            )
        return self.head(self.size_bytes)

    def head(self, count: int) -> bytes:
        with self.file.open("rb") as raw:
            return Window(raw, self.offset, self.size_bytes).read(count)


def whole(file: Path) -> Part:
    return Part(file, 0, file.stat().st_size)


def digest_of(part: Part, algorithm: str = "sha256") -> str:
    counted = hashlib.new(algorithm)
    with part.file.open("rb") as raw:
        window = Window(raw, part.offset, part.size_bytes)
        while data := window.read(_CHUNK_BYTES):
            counted.update(data)
    return f"{algorithm}:{counted.hexdigest()}"


def check_digest(part: Part, digest: str, what: str) -> None:
    """Raises ValueError, with both digests, if they differ. '' is not checked."""
    have = digest_of(part, digest.partition(":")[0]) if digest else ""
    if have != digest:
        raise ValueError(f"{what} is damaged or another one: its digest is {have}, not {digest}")


def is_compressed(part: Part) -> bool:
    head = part.head(8)
    return head.startswith(_ZSTD) or any(head.startswith(magic) for magic, _ in _OPENERS)


def plain(part: Part, scratch: Path) -> Part:
    """The part itself, or decompressed into a file of `scratch`. Raises ValueError if damaged."""
    head = part.head(8)
    opener = next((o for magic, o in _OPENERS if head.startswith(magic)), None)
    if opener is None and not head.startswith(_ZSTD):
        return part
    check_room(scratch, int(part.size_bytes * _USUAL_RATIO), f"decompressing {part.file.name}")
    to = _fresh(scratch)
    if opener is None:
        return _zstd(part, to, scratch)
    try:
        with (
            part.file.open("rb") as raw,
            opener(Window(raw, part.offset, part.size_bytes)) as inside,
            to.open("wb") as out,
        ):
            while data := inside.read(_CHUNK_BYTES):
                out.write(data)
    except _DAMAGED as error:
        raise ValueError(f"it is damaged or truncated ({error})") from error
    return whole(to)


def cut_out(part: Part, scratch: Path) -> Path:
    """Copy a part to a file of its own."""
    to = _fresh(scratch)
    with part.file.open("rb") as raw, to.open("wb") as out:
        window = Window(raw, part.offset, part.size_bytes)
        while data := window.read(_CHUNK_BYTES):
            out.write(data)
    return to


def _zstd(part: Part, to: Path, scratch: Path) -> Part:
    need("zstd", "zstd", "decompress it with")
    compressed = cut_out(part, scratch)
    ran = call(("zstd", "-d", "-q", "-f", "-o", str(to), "--", str(compressed)))
    compressed.unlink()
    if ran.code != 0:
        raise ValueError(f"it is damaged or truncated ({ran.stderr.strip()[-200:]})")
    return whole(to)


def _fresh(scratch: Path) -> Path:
    fd, name = tempfile.mkstemp(prefix="part-", dir=scratch)
    os.close(fd)
    return Path(name)
