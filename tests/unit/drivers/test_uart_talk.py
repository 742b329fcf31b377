"""What goes over a serial line: frames that survive all bytes, and a talk that ends or says why."""

from binascii import crc_hqx
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowos as fo
from flowos.drivers.hdl.uart_talk import (
    DATA,
    END,
    FAULT,
    LAST,
    RESET,
    TAKEN,
    UartTalk,
    design_number,
    frame,
)
from flowos.model import DeviceError, HdlDesign, native_ports, streams_of

WORDS = fo.array(fo.uint16, ("n",))
TAKES, GIVES = streams_of(
    "f", native_ports("f", {"a": WORDS}, {"b": WORDS}), {"s": "a"}, {"m": "b"}
)
DESIGN = HdlDesign(files=(("", "module f;"),), top="f", takes=TAKES, gives=GIVES, baud=1)
HOLDS_BYTES = 1024
HELLO = bytes([1, 2, 2, 10]) + design_number(DESIGN).to_bytes(4, "little")


def frames_in(line: bytes) -> Iterator[tuple[bytes, int]]:
    """(payload, kind) of each sound one."""
    for each in filter(None, line.split(END)):
        body = each.replace(b"\xdb\xdc", END).replace(b"\xdb\xdd", b"\xdb")
        if len(body) > 2 and crc_hqx(body, 0xFFFF) == 0:
            yield body[:-3], body[-3]


def talk(sends: bytes = b"abcd", expects: int = 4) -> UartTalk:
    return UartTalk("/dev/x", DESIGN, sends, expects)


def greeted(**options: Any) -> UartTalk:
    one = talk(**options)
    one.received(b"rest of another run" + frame(b"", DATA) + frame(HELLO, RESET))
    return one


@given(st.lists(st.tuples(st.binary(max_size=40), st.sampled_from([DATA, LAST]))))
def test_frames_are_what_they_were(frames: list[tuple[bytes, int]]) -> None:
    line = b"".join(frame(*each) for each in frames)
    assert list(frames_in(line)) == frames
    assert line.count(END) == 2 * len(frames)


@given(st.binary(min_size=1, max_size=20), st.integers(0, 1 << 20))
def test_a_flipped_bit_is_no_frame_of_that_content(payload: bytes, where: int) -> None:
    line = bytearray(frame(payload, DATA))
    line[where % len(line)] ^= 1 << (where % 8)
    assert (payload, DATA) not in [*frames_in(bytes(line))] or where % len(line) in (
        0,
        len(line) - 1,
    )


def test_a_talk_begins_with_a_reset_and_ends_with_the_last_beat() -> None:
    one = talk()
    assert list(frames_in(bytes(one.to_send))) == [(b"", RESET)]
    one = greeted()
    assert list(frames_in(bytes(one.to_send)))[1:] == [(b"abcd", LAST)]
    answer = frame(b"AB", DATA) + frame((4).to_bytes(2, "little"), TAKEN) + frame(b"CD", LAST)
    for byte in answer:
        assert not one.done
        one.received(bytes([byte]))
    assert (bytes(one.output), one.done) == (b"ABCD", True)


def test_no_more_is_sent_than_a_board_can_hold() -> None:
    sends = bytes(n % 251 for n in range(70_000))
    one, taken, seen = greeted(sends=sends), 0, b""
    while seen != sends:
        found = list(frames_in(bytes(one.to_send)))
        one.to_send.clear()
        seen += b"".join(payload for payload, kind in found if kind != RESET)
        assert len(seen) - taken <= HOLDS_BYTES
        assert found[-1][1] == (LAST if seen == sends else DATA)
        taken = len(seen)
        one.received(frame((taken % 65536).to_bytes(2, "little"), TAKEN))
    assert one.progress == "it took 70000 of 70000 bytes, and gave 0 of 4"


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (frame(b"AB", LAST), "module f ended stream 'm' after 1 beats (tlast), before its output"),
        (frame(b"ABCD", DATA), "module f gave no tlast with beat 2 of stream 'm'"),
        (frame(b"ABCDEF", LAST), "module f gave no tlast with beat 2 of stream 'm'"),
        (END + b"AB" + END, "a damaged frame came (CRC); it took 0 of 4 bytes, and gave 0 of 4"),
        (frame(b"\1", FAULT), "it received a damaged frame (CRC); a lower baud= may help"),
        (frame(b"\2", FAULT), "it was sent too much"),
        (frame(b"\3", FAULT), "it failed"),
    ],
)
def test_what_goes_wrong_is_said(frames: bytes, said: str) -> None:
    one = greeted()
    with pytest.raises(DeviceError) as caught:
        one.received(frames)
    assert str(caught.value).startswith(f"/dev/x: {said}")


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        (bytes([2]) + HELLO[1:], "another version of our bridge"),
        (HELLO[:-1], "another version of our bridge"),
        (HELLO[:1] + bytes([4]) + HELLO[2:], "another module than this f: load the file of"),
        (HELLO[:4] + b"abcd", "another module than this f"),
    ],
)
def test_a_board_with_another_module_is_refused(hello: bytes, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        talk().received(frame(hello, RESET))


def test_only_a_serial_line_has_a_lower_baud() -> None:
    one = UartTalk("/dev/x", replace(DESIGN, baud=0), b"abcd", 4)
    one.received(frame(HELLO, RESET))
    with pytest.raises(DeviceError, match=r"it received a damaged frame \(CRC\)$"):
        one.received(frame(b"\1", FAULT))


def test_a_board_need_not_say_which_module_it_has() -> None:
    one = talk(sends=b"")
    assert one.progress == "it does not say what it is"
    one.received(frame(HELLO[:4] + bytes(4), RESET) + frame(b"", 0x7A))
    assert one.progress == "it took 0 of 0 bytes, and gave 0 of 4"
