"""Bitstreams: which part one is for, read from the file itself, and whether it fits a device.

Formats: Xilinx's .bit (keyed fields before the data), Lattice's ECP5 as prjtrellis documents it,
iCE40 as Project IceStorm does, and XRT's xclbin by the structure in its xclbin.h.
"""

import hashlib
import struct

from flowos.model import Bitstream, DeviceError, NodeDevice

_XILINX = b"\x00\x09\x0f\xf0\x0f\xf0\x0f\xf0\x0f\xf0\x00\x00\x01"
_SYNC = (b"\xaa\x99\x55\x66", b"\x66\x55\x99\xaa")
_ECP5 = b"\xff\xff\xbd\xb3"
_ICE40 = b"\x7e\xaa\x99\x7e"
_XCLBIN = b"xclbin2\0"
_PLATFORM_AT, _PLATFORM_BYTES = 352, 64
_HEAD_BYTES = 1 << 16
_ICE40_PARTS = {
    (182, 80): "384",
    (332, 144): "1k",
    (872, 272): "8k",
    (692, 336): "5k",
    (692, 176): "u4k",
    (656, 176): "lm4k",
}
"""By width and height of a bank of configuration bits."""
ECP5_PARTS = {
    0x21111043: "LFE5U-12",
    0x41111043: "LFE5U-25",
    0x41112043: "LFE5U-45",
    0x41113043: "LFE5U-85",
    0x01111043: "LFE5UM-25",
    0x01112043: "LFE5UM-45",
    0x01113043: "LFE5UM-85",
    0x81111043: "LFE5UM5G-25",
    0x81112043: "LFE5UM5G-45",
    0x81113043: "LFE5UM5G-85",
}
REVISION = 0xF0000000
"""The bits of an IDCODE that say the revision of the silicon; Lattice has parts differ in them."""


def read_bitstream(data: bytes, name: str) -> Bitstream:
    """Raises DeviceError if it is none. name: of the file, for the complaint."""
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    head = data[:_HEAD_BYTES]
    if data.startswith(_XILINX):
        return Bitstream(digest=digest, form="xilinx .bit", part=_xilinx_part(data, name))
    if data.startswith(_XCLBIN):
        return Bitstream(digest=digest, form="xclbin", part=_platform(data, name))
    if _ICE40 in head:
        return Bitstream(digest=digest, form="ice40", part=f"ice40 {_ice40_part(head, name)}")
    if _ECP5 in head:
        idcode = _ecp5_idcode(head, name)
        part = ECP5_PARTS.get(idcode, f"IDCODE {idcode:#010x}")
        return Bitstream(digest=digest, form="ecp5", part=part, idcode=idcode)
    if any(sync in head for sync in _SYNC):
        return Bitstream(digest=digest, form="xilinx raw")
    raise DeviceError(f"{name}: it is no bitstream of Xilinx, ECP5 or iCE40, and no xclbin")


def bitstream_incompatibility(bitstream: Bitstream, device: NodeDevice) -> str:
    """Why it cannot be loaded into this device; "" if it can, or a part is not known."""
    if bitstream.idcode is not None and device.idcode is not None:
        # openFPGALoader shows IDCODEs without the revision
        shown = 0xFFFFFFFF if device.idcode & REVISION else ~REVISION
        fits = not (bitstream.idcode ^ device.idcode) & shown
    else:
        fits = same_part(bitstream.part, device.part)
    return "" if fits else f"the bitstream is for {bitstream.part}, the device is {device.part}"


def same_part(one: str, other: str) -> bool:
    """A package and a speed may follow, as in 7a35tcpg236; one that is not known may be any."""
    a, b = _plain(one), _plain(other)
    return a.startswith(b) or b.startswith(a)


def _plain(part: str) -> str:
    """As the vendor's tools write it, and as others do."""
    return part.lower().removeprefix("xc").replace(":", "_").replace(".", "_")


def _xilinx_part(data: bytes, name: str) -> str:
    at, part = len(_XILINX), ""
    for key in b"abcd":
        length = int.from_bytes(data[at + 1 : at + 3], "big")
        if data[at : at + 1] != bytes([key]) or at + 3 + length > len(data):
            raise DeviceError(f"{name}: it begins as a .bit file, and its header is cut off")
        text = data[at + 3 : at + 3 + length].rstrip(b"\0").decode("ascii", "replace")
        part = text if key == ord("b") else part
        at += 3 + length
    if data[at : at + 1] != b"e" or len(data) < at + 5:
        raise DeviceError(f"{name}: it begins as a .bit file, and has no data")
    promised, has = int.from_bytes(data[at + 1 : at + 5], "big"), len(data) - at - 5
    if has < promised:
        raise DeviceError(f"{name}: it is cut off: {has} bytes of {promised}")
    return part if part.startswith("xc") else f"xc{part}"


def _platform(data: bytes, name: str) -> str:
    if len(data) < _PLATFORM_AT + _PLATFORM_BYTES:
        raise DeviceError(f"{name}: it begins as an xclbin, and is cut off")
    (raw,) = struct.unpack_from(f"{_PLATFORM_BYTES}s", data, _PLATFORM_AT)
    return str(raw.split(b"\0")[0].decode("ascii", "replace"))


def _ice40_part(head: bytes, name: str) -> str:
    """From the size of its first bank, which stands before the bits."""
    at, width, height = head.index(_ICE40) + len(_ICE40), 0, 0
    while at < len(head):
        command, length = head[at] >> 4, head[at] & 15
        value = int.from_bytes(head[at + 1 : at + 1 + length], "big")
        if command == 0 and value == 1:
            break
        width = value + 1 if command == 6 else width
        height = value if command == 7 else height
        at += 1 + length
    if (width, height) not in _ICE40_PARTS:
        raise DeviceError(f"{name}: it begins as a bitstream of iCE40, of no part that is known")
    return _ICE40_PARTS[width, height]


def _ecp5_idcode(head: bytes, name: str) -> int:
    """That which the part compares with its own: the command 0xE2 after the preamble."""
    at = head.index(_ECP5) + len(_ECP5)
    lengths = {0xFF: 0, 0x3B: 3, 0x46: 3, 0x22: 7, 0x02: 11}
    while at < len(head) and head[at] in lengths:
        at += 1 + lengths[head[at]]
    if head[at : at + 1] != b"\xe2" or len(head) < at + 8:
        raise DeviceError(f"{name}: it begins as a bitstream of ECP5, and names no part")
    return int.from_bytes(head[at + 4 : at + 8], "big")
