"""What a program and a board say to one another over a UART or FTDI's FIFO; `frames.v` is the other
side.

A frame is between two END bytes, as in SLIP (RFC 1055): payload, kind, CRC-16 of both. The program
begins with RESET, which the board answers with what it is and how much it holds. Then it sends the
beats of the stream as bytes, LAST with the last ones, never more ahead of what the board has taken
(TAKEN) than it holds. The board sends beats as they come.
"""

import hashlib
from binascii import crc_hqx

from flowos.model import DeviceError, HdlDesign

__flowos_frames__ = True
END, ESC = b"\xc0", b"\xdb"
_STUFFED = ((ESC, ESC + b"\xdd"), (END, ESC + b"\xdc"))
RESET, DATA, LAST, TAKEN, FAULT = b"RDLAE"
_VERSION = 1
_FRAMES_HELD = 8
_MAX_UNREAD = 1 << 16
_COUNTED = 1 << 16
_FAULTS = {1: "it received a damaged frame (CRC)", 2: "it was sent too much"}


def frame(payload: bytes, kind: int) -> bytes:
    """As it goes over the line."""
    body = payload + bytes([kind])
    body += crc_hqx(body, 0xFFFF).to_bytes(2, "big")
    for plain, stuffed in _STUFFED:
        body = body.replace(plain, stuffed)
    return END + body + END


def design_number(design: HdlDesign) -> int:
    """What a board has to say that it is; 0 is a board that does not say it."""
    content = ([text for _, text in design.files], design.headers, design.top)
    words = repr((*content, design.takes, design.gives))
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "little") or 1


class UartTalk:
    """One call of a module. where: the line, for the person. sends: all beats of its stream.

    expects: bytes of its output. `to_send` is what may be written now; `done` with the last beat.
    """

    def __init__(self, where: str, design: HdlDesign, sends: bytes, expects: int) -> None:
        self._where = where
        self._design = design
        self._number = design_number(design)
        self._sends, self._expects = memoryview(sends), expects
        self._sent = self._taken = self._holds = 0
        self._greeted = False
        self._unread = bytearray()
        self.to_send = bytearray(frame(b"", RESET))
        self.output = bytearray()
        self.done = False

    def received(self, data: bytes) -> None:
        """Raises DeviceError for what is damaged, of another design, or not what was expected."""
        self._unread += data
        *whole, rest = self._unread.split(END)
        self._unread = bytearray(rest[-_MAX_UNREAD:])  # of a line that is none of a board's
        for each in filter(None, whole):
            self._frame(_unstuffed(bytes(each)))
        self._send_more()

    @property
    def progress(self) -> str:
        """How far it came, for the person."""
        if not self._greeted:
            return "it does not say what it is"
        took, gave = self._taken, len(self.output)
        return f"it took {took} of {len(self._sends)} bytes, and gave {gave} of {self._expects}"

    def _frame(self, body: bytes) -> None:
        sound = len(body) > 2 and crc_hqx(body, 0xFFFF) == 0
        kind, payload = (body[-3], body[:-3]) if sound else (0, b"")
        if not self._greeted:
            if kind == RESET:
                self._greet(payload)
        elif not sound:
            raise DeviceError(f"{self._where}: a damaged frame came (CRC); {self.progress}")
        elif kind in (DATA, LAST):
            self._beats(payload, last=kind == LAST)
        elif kind == TAKEN:
            self._taken += (int.from_bytes(payload, "little") - self._taken) % _COUNTED
        elif kind == FAULT:
            hint = "; a lower baud= may help" if payload[0] == 1 and self._design.baud else ""
            raise DeviceError(f"{self._where}: {_FAULTS.get(payload[0], 'it failed')}{hint}")

    def _greet(self, payload: bytes) -> None:
        widths = bytes(stream.bits // 8 for (stream,) in (self._design.takes, self._design.gives))
        if payload[:1] != bytes([_VERSION]) or len(payload) != 8:
            raise DeviceError(f"{self._where}: the board has another version of our bridge")
        number = int.from_bytes(payload[4:], "little")
        if payload[1:3] != widths or number not in (0, self._number):
            raise DeviceError(
                f"{self._where}: the board has another module than this {self._design.top}: load "
                "the file of fo.bitstream"
            )
        self._greeted, self._holds = True, 1 << payload[3]

    def _beats(self, payload: bytes, *, last: bool) -> None:
        self.output += payload
        (stream,) = self._design.gives
        beats = len(self.output) * 8 // stream.bits
        where = f"{self._where}: module {self._design.top}"
        if last and len(self.output) < self._expects:
            raise DeviceError(
                f"{where} ended stream {stream.name!r} after {beats} beats (tlast), before its "
                "output was full"
            )
        if len(self.output) > self._expects or (len(self.output) == self._expects and not last):
            expected = self._expects * 8 // stream.bits
            raise DeviceError(
                f"{where} gave no tlast with beat {expected} of stream {stream.name!r}, the last "
                "of its output"
            )
        self.done = last

    def _send_more(self) -> None:
        while self._greeted and self._sent < len(self._sends):
            part = bytes(self._sends[self._sent : self._sent + self._holds // _FRAMES_HELD])
            if self._sent + len(part) - self._taken > self._holds:
                return
            self._sent += len(part)
            self.to_send += frame(part, LAST if self._sent == len(self._sends) else DATA)


def _unstuffed(body: bytes) -> bytes:
    for plain, stuffed in reversed(_STUFFED):
        body = body.replace(stuffed, plain)
    return body
