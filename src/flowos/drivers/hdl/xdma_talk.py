"""What a program and a card say to one another over XDMA; `xdma_bridge.v` is the other side.

All goes in blocks of 64 bytes, so that no word of a stream is cut. To the card: a head, which says
how many beats come and are expected, then the beats of the stream. Back: those that the module
gave, zeros for what it did not give, then a tail, which says what became of it. Both have a number
of the call, as the tail of a call that was cut short may still come.
"""

import struct

from flowos._dataclasses import dataclass
from flowos.drivers.hdl.uart_talk import design_number
from flowos.model import DeviceError, HdlDesign

__flowos_frames__ = True
BLOCK = 64
MAGIC = int.from_bytes(b"floxdma1", "little")
_HEAD = struct.Struct("<7QI2B2x")
_TAIL = struct.Struct("<2QI3Bx3Q16x")
_MAX_CYCLES = (1 << 48) - 1
_WELL, _SHORT, _LONG, _NO_END, _OTHER = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class XdmaCall:
    """One call of a module. where: the card, for the person. number: of this call alone.

    takes, gives: beats of its streams. limit_cycles: those of the module, but for the time in which
    it waits for the program.
    """

    where: str
    design: HdlDesign
    number: int
    takes: int
    gives: int
    limit_cycles: int

    @property
    def take_bytes(self) -> int:
        return self.takes * self.design.takes[0].bits // 8

    @property
    def give_bytes(self) -> int:
        return self.gives * self.design.gives[0].bits // 8

    @property
    def head(self) -> bytes:
        blocks = (_blocks(self.take_bytes), _blocks(self.give_bytes))
        limit = min(self.limit_cycles, _MAX_CYCLES)
        number = design_number(self.design)
        beats = (self.takes, self.gives)
        return _HEAD.pack(MAGIC, self.number, *beats, *blocks, limit, number, *_widths(self.design))

    @property
    def sends(self) -> int:
        """Bytes, with the head."""
        return BLOCK * (1 + _blocks(self.take_bytes))

    @property
    def expects(self) -> int:
        """Bytes, with the tail."""
        return BLOCK * (1 + _blocks(self.give_bytes))

    def is_ours(self, tail: bytes) -> bool:
        """Whether the last block that came is the tail of this call."""
        return len(tail) == BLOCK and _TAIL.unpack(tail)[:2] == (MAGIC, self.number)

    def check(self, tail: bytes) -> None:
        """Raises DeviceError for another module, or one that did not end its stream rightly."""
        _, _, _, _, _, status, taken, given, cycles = _TAIL.unpack(tail)
        (take,), (give,) = self.design.takes, self.design.gives
        where = f"{self.where}: module {self.design.top}"
        whys = {
            _SHORT: f"{where} ended stream {give.name!r} after {given} beats (tlast), before its "
            "output was full",
            _LONG: f"{where} gave no tlast with beat {given} of stream {give.name!r}, the last of "
            "its output",
            _NO_END: f"{where} gave no end within {cycles} cycles (limit_cycles): it took {taken} "
            f"beats of {take.name!r}, gave {given} beats of {give.name!r}",
            _OTHER: f"{self.where}: the card has another module than this {self.design.top}: load "
            "the bitstream that Vivado made of it",
        }
        if status != _WELL:
            other = f"{self.where}: the card has another version of our bridge"
            raise DeviceError(whys.get(status, other))


def _widths(design: HdlDesign) -> tuple[int, int]:
    """Of a beat of each stream, in bytes."""
    (take,), (give,) = design.takes, design.gives
    return take.bits // 8, give.bits // 8


def _blocks(size: int) -> int:
    return -(-size // BLOCK)
