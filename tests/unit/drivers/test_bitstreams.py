"""Which part a bitstream is for, and what is none."""

import hashlib
from dataclasses import replace

import pytest

from flowos.drivers import bitstream_incompatibility, read_bitstream
from flowos.model import DeviceError, NodeDevice
from tests.bitstreams import ecp5, ice40, xclbin, xilinx_bit

DATA = bytes(range(256))
ARTY = NodeDevice(name="arty", kind="fpga", driver="openfpgaloader", at="h:1", part="xc7a35")


@pytest.mark.parametrize(
    ("data", "form", "part", "idcode"),
    [
        (xilinx_bit("7a35tcpg236", DATA), "xilinx .bit", "xc7a35tcpg236", None),
        (xilinx_bit("xcku095-ffva1156", DATA), "xilinx .bit", "xcku095-ffva1156", None),
        (ecp5(0x41111043, DATA), "ecp5", "LFE5U-25", 0x41111043),
        (ecp5(0x12345043, DATA), "ecp5", "IDCODE 0x12345043", 0x12345043),
        (ice40(872, 272), "ice40", "ice40 8k", None),
        (ice40(332, 144), "ice40", "ice40 1k", None),
        (xclbin("xilinx_u250_gen3x16_base_4"), "xclbin", "xilinx_u250_gen3x16_base_4", None),
        (b"\xff" * 32 + b"\xaa\x99\x55\x66", "xilinx raw", "", None),
        (b"\xff" * 32 + b"\x66\x55\x99\xaa", "xilinx raw", "", None),
    ],
)
def test_a_bitstream_says_what_it_is_for(
    data: bytes, form: str, part: str, idcode: int | None
) -> None:
    found = read_bitstream(data, "x")
    assert (found.form, found.part, found.idcode) == (form, part, idcode)
    assert found.digest == "sha256:" + hashlib.sha256(data).hexdigest()


WHOLE = xilinx_bit("7a35tcpg236", DATA)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "it is no bitstream of Xilinx, ECP5 or iCE40, and no xclbin"),
        (b"root:x:0:0:", "it is no bitstream"),
        (WHOLE[:20], "its header is cut off"),
        (WHOLE.replace(b"c\0\x0b", b"z\0\x0b"), "its header is cut off"),
        (WHOLE[: -len(DATA) - 3], "has no data"),
        (WHOLE[:-1], "it is cut off: 255 bytes of 256"),
        (xclbin("a")[:100], "begins as an xclbin, and is cut off"),
        (ice40(12, 34), "of no part that is known"),
        (ice40(872, 272)[:8], "of no part that is known"),
        (ecp5(0x41111043, DATA)[: -len(DATA) - 10], "names no part"),
        (b"\xff\xff\xbd\xb3\x99", "names no part"),
    ],
)
def test_what_is_no_bitstream_says_so(data: bytes, complaint: str) -> None:
    with pytest.raises(DeviceError, match="^x: .*" + complaint):
        read_bitstream(data, "x")


@pytest.mark.parametrize(
    ("data", "device", "fits"),
    [
        (WHOLE, ARTY, True),
        (WHOLE, replace(ARTY, part="xc7a100"), False),
        (WHOLE, replace(ARTY, part=""), True),
        (b"\xaa\x99\x55\x66", ARTY, True),
        (ecp5(0x41111043, DATA), ARTY, False),
        (ecp5(0x41111043, DATA), replace(ARTY, idcode=0x41111043), True),
        (ecp5(0x41111043, DATA), replace(ARTY, idcode=0x81111043), False),
        (ecp5(0x41111043, DATA), replace(ARTY, idcode=0x01111043), True),
        (ecp5(0x41111043, DATA), replace(ARTY, idcode=0x01112043), False),
        (xclbin("xilinx_u250:base.4"), replace(ARTY, part="xilinx_u250_base_4"), True),
        (xclbin("xilinx_u250:base.4"), replace(ARTY, part="xilinx_u50_base_4"), False),
    ],
)
def test_it_fits_the_part_it_is_for(data: bytes, device: NodeDevice, fits: bool) -> None:
    complaint = bitstream_incompatibility(read_bitstream(data, "x"), device)
    assert (complaint == "") == fits
    assert fits or (device.part in complaint and complaint.startswith("the bitstream is for "))
