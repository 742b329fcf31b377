"""A module of Verilog on a board, behind a serial line or the FIFO of an FT232H."""

import time
from typing import Any, Literal

from flowos._dataclasses import dataclass
from flowos.drivers.hdl.boards import BOARDS
from flowos.drivers.hdl.uart_talk import UartTalk
from flowos.engine.bodies._beats import pack, unpack
from flowos.engine.bodies._ftdi_line import FtdiLine
from flowos.engine.bodies._masks import refuse_masked
from flowos.engine.bodies._one_owner import turn_at
from flowos.engine.bodies._outputs import as_outputs, contiguous, empty_outputs
from flowos.engine.bodies._serial_line import SerialLine
from flowos.model import (
    CYCLES_A_BEAT,
    MIN_CYCLES,
    DeviceError,
    EngineMissing,
    HdlDesign,
    NativePorts,
)

__flowos_frames__ = True
_MIN_SECONDS = 2.0
_SLOW_CLOCK_HZ = 12e6


@dataclass(frozen=True, slots=True, kw_only=True)
class UartModule:
    """Each call resets the module, sends the beats of its stream, and reads those that it gives.

    port: "" until a slice gives it a board. bitstream: a file that was made by hand, or "".
    missing: why a slice has no board for it; each call raises EngineMissing then.

    A board that says nothing for as long as its limit of cycles takes, and two seconds, is lost.
    """

    design: HdlDesign
    ports: NativePorts
    port: str
    limit_cycles: int | None
    bitstream: str = ""
    missing: str = ""
    link: Literal["uart", "ftdi"] = "uart"

    @property
    def board_known(self) -> bool:
        """Whether there is a bitstream for a board of it."""
        return bool(self.bitstream or self.design.board)

    def __call__(self, *values: Any) -> Any:
        if self.missing:
            raise EngineMissing(self.missing)
        refuse_masked(self.ports, values)
        outputs = empty_outputs(self.ports, values)
        sizes = self.ports.sizes(values)
        (take,), (give,) = self.design.takes, self.design.gives
        beats = give.beats(sizes)
        if beats:
            sent = bytearray(take.beats(sizes) * take.bits // 8)
            pack(take, contiguous(values), sent)
            seconds = self._patience(take.beats(sizes) + beats)
            talk = UartTalk(self.port, self.design, bytes(sent), beats * give.bits // 8)
            with turn_at(self.port), self._line() as line:
                _hold(talk, line, self.port, seconds)
            unpack(give, talk.output, outputs)
        return as_outputs(self.ports, outputs)

    def _line(self) -> SerialLine | FtdiLine:
        if self.link == "ftdi":
            return FtdiLine(self.port)
        return SerialLine(self.port, self.design.baud)

    def _patience(self, beats: int) -> float:
        limit = self.limit_cycles or MIN_CYCLES + CYCLES_A_BEAT * beats
        board = BOARDS.get(self.design.board)
        return _MIN_SECONDS + limit / (board.clock_hz if board else _SLOW_CLOCK_HZ)


def _hold(talk: UartTalk, line: SerialLine | FtdiLine, port: str, seconds: float) -> None:
    """A line that is never silent, and says nothing that is of use, is none of a board."""
    progress, until = talk.progress, time.monotonic() + seconds
    while not talk.done:
        try:
            talk.received(line.exchange(talk.to_send, seconds))
            if talk.progress != progress:
                progress, until = talk.progress, time.monotonic() + seconds
            elif time.monotonic() > until:
                raise TimeoutError
        except TimeoutError:
            raise DeviceError(
                f"{port}: the board said nothing for {seconds:.1f} s: {talk.progress}"
            ) from None
