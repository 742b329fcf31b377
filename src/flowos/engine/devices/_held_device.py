"""A device that this program has for itself: acquired, configured, verified, reset, released."""

import time
from contextlib import suppress
from pathlib import Path

from flowos._dataclasses import replace
from flowos.drivers import DeviceDriver, DeviceWork, device_driver_named
from flowos.engine.devices._device_file import DeviceFile
from flowos.engine.devices._steps import do
from flowos.model import Bitstream, DeviceError, DeviceRecord, NodeDevice


class HeldDevice:
    """Use it in a `with`, or `release` it. What fails by its own fault is taken out of use.

    again: also if it was taken out. Raises DeviceError if another program has it, if it was taken
    out, or is not there.
    """

    def __init__(
        self, device: NodeDevice, driver: DeviceDriver | None = None, *, again: bool = False
    ) -> None:
        self._driver = driver or device_driver_named(device.driver)
        self._file = DeviceFile(device)
        self.device = device
        self.record = self._file.acquire()
        try:
            if self.record.out and not again:
                raise DeviceError(
                    f"{device.name}: taken out of use: {self.record.out}; "
                    f"once it is mended: flowos device reset {device.name}"
                )
            self.device = self._do(self._driver.acquire(device))
        except BaseException:
            self._file.release()
            raise

    def __enter__(self) -> "HeldDevice":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def deploy(self, bitstream: Bitstream, file: Path, *, again: bool = False) -> bool:
        """Configure and verify it; whether it had to be configured.

        again: also if it has this bitstream already. Raises DeviceError if one of its tools fails.
        """
        work = self._driver.configure(self.device, bitstream, file)
        if self.record.loaded == bitstream.digest and not again:
            with suppress(DeviceError):  # it lost its power meanwhile
                do(self._driver.verify(self.device))
                return False
        self._forget_bitstream()
        self._do(work)
        try:
            do(self._driver.verify(self.device))
        except DeviceError as error:  # its own fault, whatever else an FPGA without DONE may be
            self._take_out(error)
            raise
        self._note(loaded=bitstream.digest, loaded_at=time.time())
        return True

    def verify(self) -> NodeDevice:
        """That it answers and is configured, as far as it shows that. Raises DeviceError if not."""
        try:
            return self._do(self._driver.verify(self.device))
        except DeviceError:
            self._forget_bitstream()
            raise

    def reset(self) -> None:
        """It is in use again once it answers after that. Raises DeviceError if it does not."""
        work = self._driver.reset(self.device)
        self._forget_bitstream()
        self._do(work)
        self._do(self._driver.acquire(self.device))
        self._note(out="")

    def release(self) -> None:
        """Twice is once."""
        with suppress(DeviceError):
            do(self._driver.release(self.device))
        self._file.release()

    def _do(self, work: DeviceWork) -> NodeDevice:
        try:
            return do(work)
        except DeviceError as error:
            if error.faulty:
                self._take_out(error)
            raise

    def _take_out(self, error: DeviceError) -> None:
        self._note(out=str(error).removeprefix(f"{self.device.name}: "))

    def _forget_bitstream(self) -> None:
        self._note(loaded="", loaded_at=0.0)

    def _note(self, **changes: str | float) -> DeviceRecord:
        self.record = self._file.write(replace(self.record, **changes))  # type: ignore[arg-type]
        return self.record
