"""A module of Verilog on a board, behind a serial line."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flowos.drivers.hdl.boards import BOARDS
from flowos.drivers.hdl.uart_talk import UartTalk
from flowos.engine.bodies._masks import refuse_masked
from flowos.engine.bodies._outputs import as_outputs, contiguous, empty_outputs
from flowos.engine.bodies._serial_line import SerialLine
from flowos.model import (
    CYCLES_A_BEAT,
    MIN_CYCLES,
    DeviceError,
    EngineMissing,
    HdlDesign,
    HdlStream,
    NativePorts,
)

__flowos_frames__ = True
_MIN_SECONDS = 2.0
_SLOW_CLOCK_HZ = 12e6
_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Tasks of a program take turns at a port, however long each is."""


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
            sent = _packed(take, contiguous(values), take.beats(sizes))
            seconds = self._patience(take.beats(sizes) + beats)
            talk = UartTalk(self.port, self.design, sent, beats * give.bits // 8)
            _hold(talk, self.port, self.design.baud, seconds)
            _unpack(give, bytes(talk.output), outputs)
        return as_outputs(self.ports, outputs)

    def _patience(self, beats: int) -> float:
        limit = self.limit_cycles or MIN_CYCLES + CYCLES_A_BEAT * beats
        board = BOARDS.get(self.design.board)
        return _MIN_SECONDS + limit / (board.clock_hz if board else _SLOW_CLOCK_HZ)


def _hold(talk: UartTalk, port: str, baud: int, seconds: float) -> None:
    """A line that is never silent, and says nothing that is of use, is none of a board."""
    with _turns[os.path.realpath(port)], SerialLine(port, baud) as line:
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


def _beat(stream: HdlStream) -> Any:
    import numpy as np

    names = [(f"lane{n}", np.dtype(d).newbyteorder("<")) for n, d in enumerate(stream.dtypes)]
    return np.dtype(names)


def _packed(stream: HdlStream, values: Sequence[Any], beats: int) -> bytes:
    """All beats. A scalar is the same in each."""
    import numpy as np

    packed = np.empty(beats, _beat(stream))
    for lane, number in enumerate(stream.lanes):
        packed[f"lane{lane}"] = np.ravel(values[number])
    return packed.tobytes()


def _unpack(stream: HdlStream, data: bytes, outputs: Sequence[Any]) -> None:
    import numpy as np

    beats = np.frombuffer(data, _beat(stream))
    for lane, number in enumerate(stream.lanes):
        outputs[number].reshape(-1)[:] = beats[f"lane{lane}"]
