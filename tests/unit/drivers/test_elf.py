"""What a program of Linux is linked with."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from flowos.drivers import needed_libraries

STRINGS = b"\0libmpi.so.40\0libc.so.6\0"


def elf(order: str, *, dynamic: bool = True, loaded: bool = True) -> bytes:
    """A program of two segments, and its table of libraries."""
    kinds = (1 if loaded else 4, 2 if dynamic else 4)
    head = b"\x7fELF\x02" + (b"\1" if order == "<" else b"\2") + bytes(26)
    head += struct.pack(f"{order}QQIHHH", 64, 0, 0, 64, 56, 2) + bytes(6)
    table, strings = 64 + 2 * 56, 64 + 2 * 56 + 4 * 16
    address = 0x4000
    size = strings + len(STRINGS)
    load = struct.pack(f"{order}IIQQQQQQ", kinds[0], 0, 0, address, address, size, size, 1)
    found = struct.pack(f"{order}IIQQQQQQ", kinds[1], 0, table, 0, 0, 64, 64, 1)
    entries = ((1, 1), (5, address + strings), (1, 14), (0, 0))
    return head + load + found + b"".join(struct.pack(f"{order}QQ", *e) for e in entries) + STRINGS


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_libraries_that_it_asks_for_are_named_in_order(order: str) -> None:
    assert needed_libraries(elf(order)) == ("libmpi.so.40", "libc.so.6")


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b"#!/bin/sh\n",
        b"\x7fELF\x01\x01" + elf("<")[6:],
        b"\x7fELF\x02\x03" + elf("<")[6:],
        elf("<", dynamic=False),
        elf("<", loaded=False),
        elf("<")[:70],
        elf("<")[:200],
    ],
)
def test_of_what_is_no_such_program_nothing_is_said(program: bytes) -> None:
    assert needed_libraries(program) == ()


@pytest.mark.skipif(sys.maxsize < 1 << 32, reason="its programs are of 32 bits")
def test_a_real_program_says_what_ldd_does() -> None:
    program = Path("/bin/ls").resolve()
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    found = needed_libraries(program.read_bytes())
    assert found
    assert set(found) <= {line.split()[0] for line in listed.splitlines()}
