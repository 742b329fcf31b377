"""Small bitstreams in the formats of real ones."""

import struct

SYNC = b"\xff" * 32 + bytes.fromhex("000000bb11220044ffffffffffffffffaa99556620000000")


def xilinx_bit(part: str, data: bytes) -> bytes:
    def text(key: bytes, value: str) -> bytes:
        return key + struct.pack(">H", len(value) + 1) + value.encode() + b"\0"

    head = bytes.fromhex("00090ff00ff00ff00ff0000001") + text(b"a", "top;UserID=0XFFFFFFFF")
    made = text(b"c", "2026/11/27") + text(b"d", "12:00:00")
    return head + text(b"b", part) + made + b"e" + struct.pack(">I", len(data)) + data


def ecp5(idcode: int, data: bytes) -> bytes:
    """A comment, the preamble, no CRC, and the part; compressed, as openFPGALoader insists."""
    commands = bytes.fromhex("ffffffff 3b000000 e2000000") + struct.pack(">I", idcode)
    return (
        b"\xff\0Part: LFE5U-25F-6CABGA256\0\xff"
        + bytes.fromhex("ffffbdb3")
        + commands
        + bytes.fromhex("46000000 b8000000")
        + data
    )


def ice40(width: int, height: int) -> bytes:
    sizes = struct.pack(">BHBH", 0x62, width - 1, 0x72, height)
    begins = b"\xff\0\0\xff\x7e\xaa\x99\x7e\x51\0\x01\x05\x92\0\x20"
    return begins + sizes + b"\x82\0\0\x11\0\x01\x01" + bytes(16)


def xclbin(platform: str) -> bytes:
    return b"xclbin2\0".ljust(352, b"\0") + platform.encode().ljust(64, b"\0") + bytes(64)
