"""Which of several devices a bitstream goes to: one that has it already needs no seconds."""

from collections.abc import Sequence

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePicture:
    """A device as it is now. refused: why it cannot take the bitstream. loaded: digest of what it
    is configured with, "" of one that is not; loaded_at: when, in seconds since 1970."""

    name: str
    refused: str = ""
    loaded: str = ""
    loaded_at: float = 0.0


def choose_device(devices: Sequence[DevicePicture], digest: str) -> tuple[str, str]:
    """Name of the device, and why; "" and why none can.

    To configure one costs seconds, and what it had is lost to the next program that wants that. So
    one with this bitstream is best, then one without any, then that whose bitstream is the oldest.
    """
    able = [device for device in devices if not device.refused]
    if not able:
        whys = [f"{device.name}: {device.refused}" for device in devices]
        return "", "; ".join(whys) or "there is no FPGA: name one in flowos.toml, [fpgas.NAME]"
    warm = next((device for device in able if device.loaded == digest), None)
    if warm is not None:
        return warm.name, "it has this bitstream already"
    best = min(able, key=lambda device: (device.loaded != "", device.loaded_at))
    if len(able) == 1:
        return best.name, "it is the only one that can"
    return best.name, "it was configured longest ago" if best.loaded else "it is not configured"
