"""What goes over XDMA: blocks whose head says how many, and a tail that ends a call or says why."""

import struct
from dataclasses import replace
from typing import Any

import pytest

import flowos as fo
from flowos.drivers.hdl.uart_talk import design_number
from flowos.drivers.hdl.xdma_talk import MAGIC, XdmaCall
from flowos.model import DeviceError, HdlDesign, native_ports, streams_of

WORDS = fo.array(fo.uint16, ("n",))
TAKES, GIVES = streams_of(
    "f", native_ports("f", {"a": WORDS, "b": WORDS}, {"c": WORDS}), {"s": ("a", "b")}, {"m": "c"}
)
DESIGN = HdlDesign(files=(("", "module f;"),), top="f", takes=TAKES, gives=GIVES)
CALL = XdmaCall(where="/dev/x0", design=DESIGN, number=77, takes=17, gives=32, limit_cycles=2**60)


def tail(number: int = 77, status: int = 0) -> bytes:
    ours = (design_number(DESIGN), 4, 2, status)
    return struct.pack("<2QI3Bx3Q16x", MAGIC, number, *ours, 17, 20, 999)


def test_a_head_says_how_many_beats_and_blocks_there_are() -> None:
    found: Any = struct.unpack("<7QI2B2x", CALL.head)
    assert found[:7] == (int.from_bytes(b"floxdma1", "little"), 77, 17, 32, 2, 1, 2**48 - 1)
    assert found[7:] == (design_number(DESIGN), 4, 2)
    assert (CALL.take_bytes, CALL.give_bytes) == (68, 64)
    assert (CALL.sends, CALL.expects) == (3 * 64, 2 * 64)
    empty = replace(CALL, takes=0, limit_cycles=5)
    assert (empty.sends, struct.unpack("<7QI2B2x", empty.head)[6]) == (64, 5)


def test_a_tail_is_of_one_call() -> None:
    assert CALL.is_ours(tail())
    assert not CALL.is_ours(tail(number=78))
    assert not CALL.is_ours(bytes(64))
    assert not CALL.is_ours(tail()[1:])
    CALL.check(tail())


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (1, "/dev/x0: module f ended stream 'm' after 20 beats (tlast), before its output was"),
        (2, "/dev/x0: module f gave no tlast with beat 20 of stream 'm', the last of its output"),
        (3, "/dev/x0: module f gave no end within 999 cycles (limit_cycles): it took 17 beats of "),
        (4, "/dev/x0: the card has another module than this f: load the bitstream"),
        (9, "/dev/x0: the card has another version of our bridge"),
    ],
)
def test_what_became_of_a_call_is_said(status: int, said: str) -> None:
    with pytest.raises(DeviceError) as caught:
        CALL.check(tail(status=status))
    assert str(caught.value).startswith(said)
