"""Which devices this machine has, and their state."""

from collections.abc import Iterator, Sequence

from flowos._dataclasses import replace
from flowos.drivers import DeviceFacts, ToolStep, device_driver_named
from flowos.engine.devices._device_file import DeviceFile
from flowos.engine.devices._held_device import HeldDevice
from flowos.engine.devices._steps import take
from flowos.model import DeviceError, DeviceState, NodeDevice


def find_devices(
    facts: DeviceFacts, drivers: Sequence[str], *, ask: bool = True
) -> tuple[NodeDevice, ...]:
    """What these drivers find. facts: all but the answers, which are asked for here.

    ask: tools too; else only files are read, which takes no time.
    """
    found: dict[str, NodeDevice] = {}
    for device in _found(facts, drivers, ask=ask):
        found.setdefault(device.name, device)
    return tuple(found.values())


def state_of(device: NodeDevice) -> DeviceState:
    """An FPGA that no program uses is asked for its part, and taken out of use if it fails."""
    file = DeviceFile(device)
    record = file.record()
    if device.kind == "fpga" and not (record.owner or record.out or device.unusable):
        try:
            with HeldDevice(device) as held:
                device = held.device
        except DeviceError as error:
            device = replace(device, unusable=str(error).removeprefix(f"{device.name}: "))
        record = file.record()
    return DeviceState(device=device, record=record)


def _found(facts: DeviceFacts, drivers: Sequence[str], *, ask: bool) -> Iterator[NodeDevice]:
    for name in drivers:
        driver = device_driver_named(name)
        answers = tuple(take(s) for s in driver.looks if ask or not isinstance(s, ToolStep))
        yield from driver.find(replace(facts, answers=answers))
