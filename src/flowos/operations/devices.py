"""`flowos device`: which devices this machine has, and FPGAs loaded, verified and reset."""

from collections.abc import Sequence
from pathlib import Path

from flowos._dataclasses import dataclass, replace
from flowos.drivers import ToolStep, bitstream_incompatibility, device_driver_named, read_bitstream
from flowos.engine import HeldDevice, here, owner_words, state_of
from flowos.model import (
    Argv,
    Bitstream,
    DeviceError,
    DeviceState,
    Fpga,
    NodeDevice,
    UnknownDevice,
    did_you_mean,
)
from flowos.operations.settings_file import load_settings
from flowos.plan import DevicePicture, choose_device

_MAX_BYTES = 1 << 28
"""The largest FPGAs take 200 MB."""
_KNOWN_DRIVERS = ("openfpgaloader", "fpga-manager")
_FPGA_DRIVERS = ("openfpgaloader", "fpga-manager", "xrt")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBitstream:
    """did: "loaded", "had it already" or "would load". why: this device. commands: that are run."""

    device: NodeDevice
    bitstream: Bitstream
    did: str
    why: str
    commands: tuple[Argv, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDevice:
    """did: "verified", "reset", "would reset". loaded: digest of its bitstream, if it is known."""

    device: NodeDevice
    did: str
    loaded: str = ""
    commands: tuple[Argv, ...] = ()


def list_devices() -> tuple[DeviceState, ...]:
    """All, each asked if no program uses it. Raises FlowosError if settings or a tool are wrong."""
    return tuple(map(state_of, here().devices(_settings())))


def load(
    file: Path, name: str = "", *, again: bool = False, dry_run: bool = False
) -> LoadedBitstream:
    """Configure an FPGA, and see that it is. name: of the device; else the best one for it.

    again: also if it has the bitstream already. Raises DeviceError if no FPGA takes it.
    """
    bitstream = _bitstream(file)
    states = [state_of(each) for each in _fpgas(name)]
    pictures = [_picture(state, bitstream) for state in states]
    chosen, why = choose_device(pictures, bitstream.digest)
    if not chosen:
        raise DeviceError(why if name or not states else f"no FPGA can take {file}: {why}")
    device = next(state.device for state in states if state.device.name == chosen)
    driver = device_driver_named(device.driver)
    work = driver.configure(device, bitstream, file.absolute())
    done = LoadedBitstream(
        device=device,
        bitstream=bitstream,
        did="would load",
        why="you named it" if name else why,
        commands=_commands(work.steps),
    )
    if dry_run:
        return done
    with HeldDevice(device) as held:
        if complaint := bitstream_incompatibility(
            bitstream, held.device
        ):  # another board was put there
            raise DeviceError(f"{device.name}: {complaint}")
        anew = held.deploy(bitstream, file.absolute(), again=again)
    return replace(done, did="loaded" if anew else "had it already")


def verify(name: str) -> CheckedDevice:
    """That a device answers and, if it is an FPGA, is configured. Raises DeviceError if not."""
    device = _named(name)
    with HeldDevice(device) as held:
        seen = held.verify()
        return CheckedDevice(device=seen, did="verified", loaded=held.record.loaded)


def reset(name: str, *, dry_run: bool = False) -> CheckedDevice:
    """Reset a device; one that was taken out is in use again if it answers.

    Raises DeviceError if there is none of this name, a program holds it, or it does not answer.
    """
    device = _named(name)
    work = device_driver_named(device.driver).reset(device)
    if not dry_run:
        with HeldDevice(device, again=True) as held:
            held.reset()
            device = held.device
    did = "would reset" if dry_run else "reset"
    return CheckedDevice(device=device, did=did, commands=_commands(work.steps))


def _settings() -> tuple[Fpga, ...]:
    return load_settings().fpgas


def _fpgas(name: str) -> Sequence[NodeDevice]:
    """All, or the device of this name, whatever it is: its driver says whether it can be loaded."""
    return (_named(name),) if name else here().devices(_settings(), _FPGA_DRIVERS)


def _named(name: str) -> NodeDevice:
    """What is known without asking tools comes first: that takes no time."""
    known = here().devices(_settings(), _KNOWN_DRIVERS, ask=False)
    found = {device.name: device for device in known}
    if name not in found:
        found = {device.name: device for device in here().devices(_settings())}
    if name in found:
        return found[name]
    hint = did_you_mean(name, found) or f"; there are {', '.join(found)}"
    raise UnknownDevice(f"no device {name!r}{hint}")


def _bitstream(file: Path) -> Bitstream:
    try:
        if not file.is_file():
            raise DeviceError(f"{file}: " + ("it is no file" if file.exists() else "no such file"))
        if file.stat().st_size > _MAX_BYTES:
            raise DeviceError(f"{file}: it is no bitstream: none is larger than {_MAX_BYTES} bytes")
        return read_bitstream(file.read_bytes(), str(file))
    except OSError as error:
        raise DeviceError(f"{file}: cannot be read: {error.strerror}") from error


def _picture(state: DeviceState, bitstream: Bitstream) -> DevicePicture:
    device, record = state.device, state.record
    refused = ""
    if record.owner is not None:
        refused = f"in use by {owner_words(record.owner)}"
    elif record.out:
        refused = f"taken out of use: {record.out} (flowos device reset {device.name})"
    elif device.unusable:
        refused = device.unusable
    elif device.kind == "fpga":
        refused = bitstream_incompatibility(bitstream, device)
    loaded, at = record.loaded, record.loaded_at
    return DevicePicture(name=device.name, refused=refused, loaded=loaded, loaded_at=at)


def _commands(steps: Sequence[object]) -> tuple[Argv, ...]:
    return tuple(step.argv for step in steps if isinstance(step, ToolStep))
