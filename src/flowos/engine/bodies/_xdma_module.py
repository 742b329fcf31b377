"""A module of Verilog on a card, behind Xilinx's XDMA."""

import mmap
import os
from contextlib import suppress
from typing import Any, ClassVar

from flowos._dataclasses import dataclass
from flowos.drivers.hdl.xdma_talk import BLOCK, XdmaCall
from flowos.engine.bodies._beats import pack, unpack
from flowos.engine.bodies._masks import refuse_masked
from flowos.engine.bodies._one_owner import turn_at
from flowos.engine.bodies._outputs import as_outputs, contiguous, empty_outputs
from flowos.engine.bodies._xdma_streams import XdmaStreams
from flowos.model import CYCLES_A_BEAT, MIN_CYCLES, DeviceError, HdlDesign, NativePorts

__flowos_frames__ = True
_MIN_SECONDS = 2.0
_SLOW_CLOCK_HZ = 62.5e6


@dataclass(frozen=True, slots=True, kw_only=True)
class XdmaModule:
    """Each call resets the module, sends the beats of its stream, and reads those that it gives.

    port: such as /dev/xdma0.
    """

    design: HdlDesign
    ports: NativePorts
    port: str
    limit_cycles: int | None
    link: ClassVar[str] = "xdma"

    def __call__(self, *values: Any) -> Any:
        refuse_masked(self.ports, values)
        outputs = empty_outputs(self.ports, values)
        sizes = self.ports.sizes(values)
        (take,), (give,) = self.design.takes, self.design.gives
        call = self._call(take.beats(sizes), give.beats(sizes))
        if call.gives:
            data, answer = _pages(call.sends), _pages(call.expects)
            data[:BLOCK] = call.head
            pack(take, contiguous(values), data[BLOCK : BLOCK + call.take_bytes])
            _exchange(call, self.port, data, answer)
            unpack(give, answer[: call.give_bytes], outputs)
        return as_outputs(self.ports, outputs)

    def _call(self, takes: int, gives: int) -> XdmaCall:
        limit = self.limit_cycles or MIN_CYCLES + CYCLES_A_BEAT * (takes + gives)
        return XdmaCall(
            where=self.port,
            design=self.design,
            number=int.from_bytes(os.urandom(8), "little"),
            takes=takes,
            gives=gives,
            limit_cycles=limit,
        )


def _exchange(call: XdmaCall, port: str, data: memoryview, answer: memoryview) -> None:
    seconds = _MIN_SECONDS + call.limit_cycles / _SLOW_CLOCK_HZ
    with turn_at(f"{port}_h2c_0"), XdmaStreams(port) as streams:
        streams.exchange(data, answer, seconds)
        tail = bytes(answer[-BLOCK:])
        if not call.is_ours(tail):
            streams.read_away()
            raise DeviceError(
                f"{port}: what came is no answer to this call, but of one that was cut short, or "
                "the card has no flowos_card; what was left is read away"
            )
    call.check(tail)


def _pages(size: int) -> memoryview:
    """Memory that begins with a page, so that no word of a stream is in two descriptors."""
    pages = mmap.mmap(-1, size)
    with suppress(OSError):  # not all kernels have them
        pages.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(pages)
