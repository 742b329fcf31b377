"""A board of the test's own: the TAP of an FPGA behind a Xilinx Virtual Cable on loopback.

It keeps the bits that it is configured with, and can fail as boards do.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal["", "no DONE", "link lost", "no answer"]

_NEXT = {  # by TMS; IEEE 1149.1
    "reset": ("idle", "reset"),
    "idle": ("idle", "select DR"),
    **{
        f"select {of}": (f"capture {of}", more)
        for of, more in (("DR", "select IR"), ("IR", "reset"))
    },
    **{
        f"{state} {of}": (f"{low} {of}", high if high == "select DR" else f"{high} {of}")
        for of in ("DR", "IR")
        for state, low, high in (
            ("capture", "shift", "exit1"),
            ("shift", "shift", "exit1"),
            ("exit1", "pause", "update"),
            ("pause", "pause", "exit2"),
            ("exit2", "shift", "update"),
        )
    },
    "update DR": ("idle", "select DR"),
    "update IR": ("idle", "select DR"),
}
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True)
class Part:
    """Instructions of a family, and where its status says DONE."""

    idcode: int
    ir_bits: int
    read_id: int
    configure: int
    clear: int
    done_bit: int
    read_status: int | None = None  # None: the status is what capturing an instruction shows
    enable: int | None = None
    disable: int | None = None


ARTIX7 = Part(0x0362D093, 6, read_id=0x09, configure=0x05, clear=0x0B, done_bit=5)
ECP5 = Part(
    0x41111043,
    8,
    read_id=0xE0,
    configure=0x7A,
    clear=0x0E,
    done_bit=8,
    read_status=0x3C,
    enable=0xC6,
    disable=0x26,
)


@dataclass
class Board:
    """Configured with more than 64 bits it is DONE, unless a fault is its own."""

    part: Part
    fault: Fault = ""
    port: int = 0
    loads: int = 0
    _state: str = "reset"
    _ir: int = -1
    _bits: int = 0  # of the register that is shifted
    _register: int = 0
    _stream: int = 0
    _length: int = 0
    _status: int = 0
    _connections: list[socket.socket] = field(default_factory=list)

    @property
    def received(self) -> bytes:
        """What it was configured with last; the first bit of a byte is its highest."""
        whole = self._stream.to_bytes((self._length + 7) // 8, "little")
        return whole.translate(_REVERSED)

    @property
    def done(self) -> bool:
        return bool(self._status >> self.part.done_bit & 1)

    def lose_power(self) -> None:
        """It comes back without its configuration."""
        self._status = 0

    def mend(self) -> None:
        self.fault = ""
        self._stream = self._length = 0

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            self._connections.append(connection)
            with connection, suppress(ConnectionError, _LinkLostError):
                self._answer(connection)

    def close(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: socket.socket) -> None:
        wire = connection.makefile("rb")
        while True:
            # a client that sends in two parts would wait 40 ms for us to acknowledge the first
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            if not (command := wire.read(2)):
                return
            command += wire.read(4 if command == b"sh" else 6 if command == b"ge" else 5)
            if command.startswith(b"getinfo"):
                connection.sendall(b"xvcServer_v1.0:2048\n")
                continue
            number = wire.read(4)
            if command.startswith(b"settck"):
                connection.sendall(number)
                continue
            bits = int.from_bytes(number, "little")
            size = (bits + 7) // 8
            tms, tdi = (int.from_bytes(wire.read(size), "little") for _ in range(2))
            tdo = self.shift(bits, tms, tdi).to_bytes(size, "little")
            if self.fault == "no answer" and self._length > 64:
                wire.read(1)
            connection.sendall(tdo)

    def shift(self, bits: int, tms: int, tdi: int) -> int:
        """So many clocks; what comes out."""
        at = tdo = 0
        while at < bits:
            left, here = tms >> at, 1
            if self._state in ("idle", "shift DR") and not left & 1:  # many clocks in one state
                here = (left & -left).bit_length() - 1 if left else bits - at
                here = min(here, bits - at)
            chunk = tdi >> at & (1 << here) - 1
            tdo |= self._clock(here, left & 1, chunk) << at
            at += here
        return tdo

    def _clock(self, count: int, tms: int, tdi: int) -> int:
        out = 0
        if self._state.startswith("shift"):
            joined = self._register | tdi << self._bits
            out, self._register = joined & (1 << count) - 1, joined >> count
            if self._state == "shift DR" and self._ir == self.part.configure:
                self._stream |= tdi << self._length
                self._length += count
                if self.fault == "link lost" and self._length > 4096:
                    raise _LinkLostError
        self._state = _NEXT[self._state][tms]
        getattr(self, "_" + self._state.replace(" ", "_").lower(), lambda: None)()
        return out

    def _reset(self) -> None:
        self._ir = self.part.read_id

    def _capture_dr(self) -> None:
        part = self.part
        known = {part.read_id: (32, part.idcode), part.read_status: (32, self._status)}
        self._bits, self._register = known.get(self._ir, (1, 0))

    def _capture_ir(self) -> None:
        shown = self._status | 1 << 4 if self.part.read_status is None else 0
        self._bits, self._register = self.part.ir_bits, shown & ~3 | 1

    def _update_ir(self) -> None:
        part, self._ir = self.part, self._register
        if self._ir == part.clear:
            self._status &= ~(1 << part.done_bit)
        elif self._ir == part.configure:
            self._stream = self._length = 0
        elif self._ir == part.enable:
            self._status |= 1 << 9
        elif self._ir == part.disable:
            self._status &= ~(1 << 9)
            self._start()
        elif part.disable is None and self._ir == 0x0C:  # JSTART
            self._start()

    def _start(self) -> None:
        self.loads += 1
        if self._length > 64 and self.fault != "no DONE":
            self._status |= 1 << self.part.done_bit


class _LinkLostError(Exception):
    pass


@contextmanager
def board(part: Part, fault: Fault = "") -> Iterator[Board]:
    """It answers while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = Board(part, fault, port=listener.getsockname()[1])
    serving = threading.Thread(target=made.serve, args=(listener,), daemon=True)
    serving.start()
    try:
        yield made
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        made.close()
        serving.join()
