"""What a program of Linux is linked with, as its file says (System V ABI, chapter 5)."""

import struct
from collections.abc import Iterator

_ENTRY = 16
_LOAD, _DYNAMIC = 1, 2
_END, _NEEDED, _STRINGS = 0, 1, 5
_ORDERS = {1: "<", 2: ">"}
_MAX_NAME = 256


def needed_libraries(program: bytes) -> tuple[str, ...]:
    """The names of shared libraries that it asks for itself; () if it is no 64-bit ELF file."""
    order = _ORDERS.get(program[5]) if program[:5] == b"\x7fELF\x02" else None
    if order is None:
        return ()
    try:
        return tuple(_needed(program, order))
    except struct.error:  # it is cut off
        return ()


def _needed(program: bytes, order: str) -> Iterator[str]:
    segments = [*_segments(program, order)]
    tables = (at for kind, at, _, _ in segments if kind == _DYNAMIC)
    entries = [entry for at in tables for entry in _entries(program, order, at)]
    address = dict(entries).get(_STRINGS, 0)
    places = [
        start + address - first
        for kind, start, first, size in segments
        if kind == _LOAD and first <= address < first + size
    ]
    for tag, value in entries:
        if tag == _NEEDED and places:
            name = program[places[0] + value : places[0] + value + _MAX_NAME]
            yield name.partition(b"\0")[0].decode(errors="replace")


def _segments(program: bytes, order: str) -> Iterator[tuple[int, int, int, int]]:
    """Kind, place in the file, address, size in the file."""
    (first,) = struct.unpack_from(f"{order}Q", program, 32)
    size, count = struct.unpack_from(f"{order}HH", program, 54)
    for number in range(count):
        kind, _, at, address, _, length = struct.unpack_from(
            f"{order}IIQQQQ", program, first + number * size
        )
        yield kind, at, address, length


def _entries(program: bytes, order: str, at: int) -> Iterator[tuple[int, int]]:
    tag, value = struct.unpack_from(f"{order}QQ", program, at)
    while tag != _END:
        yield tag, value
        at += _ENTRY
        tag, value = struct.unpack_from(f"{order}QQ", program, at)
