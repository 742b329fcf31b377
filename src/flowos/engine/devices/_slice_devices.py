"""FPGAs for the slices of this program: no other program has them meanwhile.

Slices of one program share what it holds, by the node's ledger, and all is given back with the last
of them: a task of one may run on what another one asked for.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

from flowos.engine._device_hold import NO_DEVICES, DeviceHold
from flowos.engine._ledger import ResourceLedger
from flowos.engine.devices._held_device import HeldDevice
from flowos.model import DeviceError, DeviceNumbers, NodeDevice

FPGA = "fpga"


class SliceDevices:
    """Of one node. Methods may be called by any thread."""

    def __init__(self) -> None:
        self.known: tuple[NodeDevice, ...] = ()
        self._held: dict[str, HeldDevice] = {}
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
            whys = []
            for device in self.known:
                if len(self._held) >= count:
                    break
                if device.name not in self._held:
                    try:
                        self._held[device.name] = HeldDevice(device)
                    except DeviceError as error:
                        whys.append(str(error))
            return DeviceHold("; ".join(whys), _once(lambda: self._leave(ledger)))

    def _leave(self, ledger: ResourceLedger) -> None:
        with self._lock:
            self._slices -= 1
            if not self._slices:
                ledger.retire(FPGA, self._held)
                for held in self._held.values():
                    held.release()
                self._held.clear()


def _once(act: Callable[[], None]) -> Callable[[], None]:
    left = [act]

    def close() -> None:
        if left:
            left.pop()()

    return close
