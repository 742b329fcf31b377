"""What a TAP says of itself in one scan: its IDCODE, and whether its FPGA is configured (DONE).

openFPGALoader of Debian 12 ends with 0 whether DONE came or not, so it is read here.
"""

from typing import NamedTuple

_XILINX, _LATTICE = 0x093, 0x043
_MAKER = 0xFFF


class TapStatus(NamedTuple):
    """done: None of a maker whose status is not known here."""

    idcode: int
    done: bool | None


class _Clocks:
    """TMS and TDI, clock by clock."""

    def __init__(self) -> None:
        self.count = self.tms = self.tdi = 0

    def add(self, tms: str, tdi: int = 0) -> None:
        at = self.count
        for place, bit in enumerate(tms):
            self.tms |= int(bit) << (at + place)
            self.tdi |= (tdi >> place & 1) << (at + place)
        self.count += len(tms)

    def shift(self, bits: int, value: int = 0) -> None:
        """Through the register that is selected, to Run-Test/Idle."""
        self.add("0" * (bits - 1) + "1", value)
        self.add("10")


_RESET, _TO_DR, _TO_IR = "111110", "100", "1100"
_ID_BITS, _IR_BITS = 32, 8
_BYPASS, _LATTICE_STATUS = 0xFF, 0x3C
_ID_AT = len(_RESET + _TO_DR)
_IR_AT = _ID_AT + _ID_BITS + 2 + len(_TO_IR)
_STATUS_AT = _IR_AT + _IR_BITS + 2 + len(_TO_DR)
_XILINX_DONE, _LATTICE_DONE = 5, 8


def is_lattice(idcode: int) -> bool:
    return idcode & _MAKER == _LATTICE


def status_scan(*, lattice: bool = False) -> tuple[int, int, int]:
    """How many clocks, TMS, TDI. One TAP is in the chain; what is configured goes on.

    After a reset the data register is IDCODE. Capturing an instruction shows the status of Xilinx;
    Lattice has a register for it. All ones is bypass in every TAP, however long its instructions.
    """
    clocks = _Clocks()
    clocks.add(_RESET + _TO_DR)
    clocks.shift(_ID_BITS)
    clocks.add(_TO_IR)
    clocks.shift(_IR_BITS, _LATTICE_STATUS if lattice else _BYPASS)
    clocks.add(_TO_DR)
    clocks.shift(_ID_BITS)
    clocks.add(_RESET)
    return clocks.count, clocks.tms, clocks.tdi


def read_status(bits: int, *, lattice: bool = False) -> TapStatus | None:
    """Of what came out; None if no TAP answered: then the wire is high or low all the time."""
    idcode = bits >> _ID_AT & (1 << _ID_BITS) - 1
    if idcode in (0, (1 << _ID_BITS) - 1):
        return None
    if lattice:
        return TapStatus(idcode, bool(bits >> (_STATUS_AT + _LATTICE_DONE) & 1))
    if idcode & _MAKER == _XILINX:
        return TapStatus(idcode, bool(bits >> (_IR_AT + _XILINX_DONE) & 1))
    return TapStatus(idcode, None)
