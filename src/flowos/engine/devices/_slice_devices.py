"""FPGAs for the slices of this program: no other program has them meanwhile.

Slices of one program share what it holds, by the node's ledger, and all is given back with the last
of them: a task of one may run on what another one asked for.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from flowos.drivers import bitstream_incompatibility, read_bitstream
from flowos.engine._device_hold import NO_DEVICES, BoardHold, DeviceHold, WantedBoard
from flowos.engine._ledger import ResourceLedger
from flowos.engine.bodies._kept import CompileFailed
from flowos.engine.devices._device_file import DeviceFile
from flowos.engine.devices._held_device import HeldDevice
from flowos.model import Bitstream, DeviceError, DeviceNumbers, EngineMissing, NodeDevice
from flowos.plan import DevicePicture, choose_device

FPGA = "fpga"
_Image = tuple[Bitstream, Path]


class SliceDevices:
    """Of one node. Methods may be called by any thread."""

    def __init__(self) -> None:
        self.known: tuple[NodeDevice, ...] = ()
        self._held: dict[str, HeldDevice] = {}
        self._boards: dict[str, _Board] = {}
        self._slices = 0
        self._lock = threading.Lock()

    def know(self, devices: Sequence[NodeDevice]) -> None:
        """Which ones there are, by flowos.toml."""
        self.known = tuple(devices)

    def numbers(self) -> DeviceNumbers:
        """Those that this program holds now."""
        return ((FPGA, tuple(self._held)),) if self._held else ()

    def hold(self, needed: Mapping[str, int], ledger: ResourceLedger) -> DeviceHold:
        """As many as a slice needs for its largest task, as far as they are free."""
        count = needed.get(FPGA, 0)
        if not count or not self.known:
            return NO_DEVICES
        with self._lock:
            self._slices += 1
        close = _once(lambda: self._leave(ledger))
        try:
            whys = self._take(count)
        except BaseException:
            close()
            raise
        return DeviceHold("; ".join(whys), close)

    def _take(self, count: int) -> list[str]:
        """Hold so many at least, if they are to be had; why the others are not."""
        whys = []
        with self._lock:
            for device in self.known:
                if len(self._held) >= count:
                    break
                if device.name in self._held or device.name in self._boards:
                    continue
                try:
                    self._held[device.name] = HeldDevice(device)
                except DeviceError as error:
                    whys.append(str(error))
        return whys

    def hold_boards(self, wanted: Sequence[WantedBoard]) -> BoardHold:
        """Each loaded with the bitstream of its task, unless it has that already.

        All bitstreams are made before a board is taken: that may take minutes.
        """
        mine: list[_Board] = []
        close = _once(lambda: self._leave_boards(mine))
        try:
            images = []
            for want in wanted:
                images.append(self._image(want))
            found = []
            for want, image in zip(wanted, images, strict=True):
                found.append(self._board(want, image, mine) if image else (want.port, ""))
        except (DeviceError, EngineMissing, CompileFailed, OSError) as error:
            close()
            is_wrong = isinstance(error, (CompileFailed, OSError))
            return BoardHold(f"task {want.label!r}: {_words(error)}", is_wrong=is_wrong)
        except BaseException:
            close()
            raise
        ports, notes = [port for port, _ in found], [note for _, note in found if note]
        return BoardHold("", close, tuple(ports), tuple(notes))

    def _able(self, want: WantedBoard) -> list[NodeDevice]:
        return [d for d in self.known if d.port and want.port in ("", d.port)]

    def _image(self, want: WantedBoard) -> _Image | None:
        """None where the port is of none that is known.

        Raises DeviceError if no line leads to its board, OSError if the file cannot be read, and as
        `board_file` does.
        """
        if not self._able(want):
            if want.port:
                return None
            raise DeviceError(
                "which line leads to its board? give it port=, or one to an FPGA of flowos.toml: "
                "[fpgas.NAME] port = '/dev/ttyUSB1'"
            )
        file = want.file()
        return read_bitstream(file.read_bytes(), str(file)), file

    def _board(self, want: WantedBoard, image: _Image, mine: list["_Board"]) -> tuple[str, str]:
        """The port of the best of those that can, which is one of `mine` then, and a note.

        Raises DeviceError if none can.
        """
        whys: dict[str, str] = {}
        able = self._able(want)
        while True:
            chosen, _ = choose_device([self._picture(d, whys) for d in able], image[0].digest)
            if not chosen:
                raise DeviceError("; ".join(whys.values()))
            device = next(device for device in able if device.name == chosen)
            try:
                board = self._shared(device, image[0].digest, mine)
                try:
                    anew = board.load(*image)
                except DeviceError:
                    self._leave_boards([mine.pop()])
                    raise
            except DeviceError as error:
                whys[chosen] = str(error)
                continue
            did = "was loaded with" if anew else "had"
            note = f"task {want.label!r}: {chosen} {did} its bitstream {board.digest[:19]}"
            return device.port, note

    def _picture(self, device: NodeDevice, whys: Mapping[str, str]) -> DevicePicture:
        record = DeviceFile(device).record()
        return DevicePicture(
            name=device.name,
            refused=whys.get(device.name, ""),
            loaded=record.loaded,
            loaded_at=record.loaded_at,
        )

    def _shared(self, device: NodeDevice, digest: str, mine: list["_Board"]) -> "_Board":
        """One of `mine` from now on, loaded or not. Raises DeviceError if another has it."""
        with self._lock:
            board = self._boards.get(device.name)
            if device.name in self._held or (board and board.digest != digest):
                why = "in use by another task or slice of this program"
                raise DeviceError(f"{device.name}: {why}")
            board = board or self._boards.setdefault(device.name, _Board(device, digest))
            board.slices += 1
            mine.append(board)
            return board

    def _leave_boards(self, boards: Sequence["_Board"]) -> None:
        with self._lock:
            for board in boards:
                board.slices -= 1
                if not board.slices:
                    self._boards.pop(board.device.name).release()

    def _leave(self, ledger: ResourceLedger) -> None:
        with self._lock:
            self._slices -= 1
            if not self._slices:
                ledger.retire(FPGA, self._held)
                for held in self._held.values():
                    held.release()
                self._held.clear()


class _Board:
    """A device for tasks that have this bitstream; `slices` is guarded by the lock of all."""

    def __init__(self, device: NodeDevice, digest: str) -> None:
        self.device, self.digest, self.slices = device, digest, 0
        self._held: HeldDevice | None = None
        self._lock = threading.Lock()

    def load(self, bitstream: Bitstream, file: Path) -> bool:
        """Whether it had to be. Another slice that needs it waits. Raises DeviceError if not so."""
        with self._lock:
            if self._held:
                return False
            held = HeldDevice(self.device)
            try:
                if complaint := bitstream_incompatibility(bitstream, held.device):
                    raise DeviceError(f"{self.device.name}: {complaint}")
                anew = held.deploy(bitstream, file)
            except BaseException:
                held.release()
                raise
            self._held = held
            return anew

    def release(self) -> None:
        if self._held:
            self._held.release()


def _words(error: Exception) -> str:
    """In one line."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _once(act: Callable[[], None]) -> Callable[[], None]:
    left = [act]

    def close() -> None:
        if left:
            left.pop()()

    return close
