"""Records of a journal: results to bytes and back."""

import struct
import zlib
from collections.abc import Callable

from flowos._dataclasses import dataclass

MARK = b"\xf5foR"
"""Of a record of this version: another one has another."""
_FRAME = struct.Struct("<4sII")  # mark, crc32 of length and payload, length of the payload
_ABOUT = struct.Struct("<32s8sdQ?HH")  # key, code, time, bytes elsewhere, large, references, label
_MAX_PAYLOAD = 1 << 22
CODE_BYTES = 8
_MAX_LABEL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """A record. body: a pickle, or nothing where `large`: it is the first of `references` then.

    code: the part of the key that is the same for all calls of the task, in CODE_BYTES.
    references: digests of what is kept in `values`. size_bytes: of these.
    """

    key: bytes
    code: bytes = bytes(CODE_BYTES)
    label: str
    when: float
    body: bytes = b""
    large: bool = False
    references: tuple[bytes, ...] = ()
    size_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """In the journal and elsewhere."""
        return _FRAME.size + _ABOUT.size + len(self.label) + len(self.body) + self.size_bytes


def frame_of(kept: KeptResult) -> bytes:
    label = kept.label.encode()[:_MAX_LABEL]
    counts = len(kept.references), len(label)
    about = _ABOUT.pack(kept.key, kept.code, kept.when, kept.size_bytes, kept.large, *counts)
    body = b"" if kept.large else kept.body
    payload = b"".join((about, *kept.references, label, body))
    return _FRAME.pack(MARK, zlib.crc32(payload, len(payload)), len(payload)) + payload


def result_of(payload: bytes) -> KeptResult:
    key, code, when, size, large, count, length = _ABOUT.unpack_from(payload)
    at = _ABOUT.size
    references = tuple(payload[at + 32 * i : at + 32 * (i + 1)] for i in range(count))
    at += 32 * count
    return KeptResult(
        key=key,
        code=code,
        label=payload[at : at + length].decode(errors="replace"),
        when=when,
        body=payload[at + length :],
        large=large,
        references=references,
        size_bytes=size,
    )


def payload_of(read: Callable[[int, int], bytes], at: int) -> bytes | None:
    """Of the record there; None where none is whole. read: so many bytes at a place.

    A mark comes first and the length counts in the checksum: zeros are no record.
    """
    head = read(_FRAME.size, at)
    if len(head) < _FRAME.size:
        return None
    mark, checksum, length = _FRAME.unpack(head)
    if mark != MARK or not _ABOUT.size <= length <= _MAX_PAYLOAD:
        return None
    payload = read(length, at + _FRAME.size)
    whole = len(payload) == length and zlib.crc32(payload, length) == checksum
    return payload if whole else None


def outline_of(payload: bytes) -> tuple[bytes, int, int, tuple[bytes, bytes]]:
    """The key, the length of the record, how many bytes are elsewhere; the label and the code."""
    key, code, _, size, _, count, length = _ABOUT.unpack_from(payload)
    at = _ABOUT.size + 32 * count
    return key, _FRAME.size + len(payload), size, (payload[at : at + length], code)
