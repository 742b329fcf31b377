"""The FIFO of an FT232H on USB, by libftdi: opened for this program alone, bytes both ways."""

import ctypes
import hashlib
import os
from contextlib import ExitStack

from flowos._user_folders import cache_folder
from flowos.engine.bodies._one_owner import have_alone
from flowos.model import DeviceError, EngineMissing

__flowos_frames__ = True
_LIBRARY = "libftdi1.so.2"
_CHANNEL_A, _ALL_PINS = 1, 0xFF
_RESET, _SYNCHRONOUS = 0x00, 0x40
_RTS_CTS = 0x100
_LATENCY_MS = 1
_MAX_MS = (1 << 31) - 1
_WRITE_BYTES, _READ_BYTES = 1 << 12, 1 << 16
_TIMEOUT = -7
_WHY = {
    -3: "there is no such device; is it plugged in?",
    -4: "there is no right to open it: a rule of udev gives it, "
    'ATTRS{idVendor}=="0403", GROUP="users", MODE="0660"',
    -5: "another program has it open",
}
"""By what ftdi_usb_open_string returns."""


class _Context(ctypes.Structure):
    """The first fields of an ftdi_context, which its header makes public."""

    _fields_ = (
        ("usb_ctx", ctypes.c_void_p),
        ("usb_dev", ctypes.c_void_p),
        ("usb_read_timeout", ctypes.c_int),
        ("usb_write_timeout", ctypes.c_int),
    )


class FtdiLine:
    """Use it in a `with`. port: as libftdi names a device, such as i:0x0403:0x6014.

    Raises DeviceError if it cannot be opened, or another program has it, and EngineMissing if there
    is no libftdi.
    """

    def __init__(self, port: str) -> None:
        self._port = port
        self._library = _library()
        self._buffer = ctypes.create_string_buffer(_READ_BYTES)
        with ExitStack() as undo:
            self._lock(undo)
            self._context = self._library.ftdi_new()
            if not self._context:
                raise DeviceError(f"{port}: libftdi has no memory")
            undo.callback(self._library.ftdi_free, self._context)
            self._open(undo)
            self._undo = undo.pop_all()

    def __enter__(self) -> "FtdiLine":
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def exchange(self, data: bytearray, seconds: float) -> bytes:
        """Writes of `data` what can be, which is then gone from it, and reads what has come.

        Raises TimeoutError if nothing can be written for so long, DeviceError if it was lost.
        """
        if data:
            self._context.contents.usb_write_timeout = min(int(1000 * seconds), _MAX_MS)
            some = bytes(data[:_WRITE_BYTES])
            del data[: self._count(self._library.ftdi_write_data, some, len(some))]
        count = self._count(self._library.ftdi_read_data, self._buffer, _READ_BYTES)
        return ctypes.string_at(self._buffer, count)

    def _lock(self, undo: ExitStack) -> None:
        """By a file of this user: USB refuses the others."""
        folder = cache_folder() / "ports"
        name = hashlib.sha256(self._port.encode()).hexdigest()[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DeviceError(
                f"{self._port}: no lock can be written to {folder} ({error.strerror}): name "
                "another cache folder in XDG_CACHE_HOME"
            ) from None
        undo.callback(os.close, fd)
        have_alone(fd, self._port)

    def _open(self, undo: ExitStack) -> None:
        library, context = self._library, self._context
        self._do(library.ftdi_set_interface, _CHANNEL_A)
        code = library.ftdi_usb_open_string(context, self._port.encode())
        if code < 0:
            raise DeviceError(f"{self._port}: {_WHY.get(code) or self._said()}")
        undo.callback(library.ftdi_usb_close, context)
        self._do(library.ftdi_set_latency_timer, _LATENCY_MS)
        self._do(library.ftdi_set_bitmode, _ALL_PINS, _RESET)
        self._do(library.ftdi_set_bitmode, _ALL_PINS, _SYNCHRONOUS)
        self._do(library.ftdi_setflowctrl, _RTS_CTS)
        self._do(library.ftdi_read_data_set_chunksize, _READ_BYTES)
        self._do(library.ftdi_tcioflush)

    def _do(self, function: "ctypes._NamedFuncPointer", *arguments: int) -> None:
        if function(self._context, *arguments) < 0:
            raise DeviceError(f"{self._port}: {self._said()}")

    def _count(self, function: "ctypes._NamedFuncPointer", data: object, size: int) -> int:
        count: int = function(self._context, data, size)
        if count == _TIMEOUT:
            raise TimeoutError
        if count < 0:
            raise DeviceError(f"{self._port}: {self._said()}; is it still plugged in?")
        return count

    def _said(self) -> str:
        words: bytes = self._library.ftdi_get_error_string(self._context) or b"libftdi failed"
        return words.decode(errors="replace")


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise EngineMissing("there is no libftdi: apt-get install libftdi1-2") from None
    context, number = ctypes.POINTER(_Context), ctypes.c_int
    takes: dict[str, tuple[type, ...]] = {
        "ftdi_set_interface": (number,),
        "ftdi_usb_open_string": (ctypes.c_char_p,),
        "ftdi_set_latency_timer": (ctypes.c_ubyte,),
        "ftdi_set_bitmode": (ctypes.c_ubyte, ctypes.c_ubyte),
        "ftdi_setflowctrl": (number,),
        "ftdi_read_data_set_chunksize": (ctypes.c_uint,),
        "ftdi_tcioflush": (),
        "ftdi_write_data": (ctypes.c_char_p, number),
        "ftdi_read_data": (ctypes.c_char_p, number),
        "ftdi_usb_close": (),
        "ftdi_free": (),
        "ftdi_get_error_string": (),
    }
    for name, types in takes.items():
        getattr(library, name).argtypes = (context, *types)
    library.ftdi_new.restype = context
    library.ftdi_new.argtypes = ()
    library.ftdi_free.restype = None
    library.ftdi_get_error_string.restype = ctypes.c_char_p
    return library
