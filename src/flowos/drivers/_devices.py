"""What drives a device: steps for the engine to take, and readers of what they answer."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Protocol

from flowos._dataclasses import dataclass
from flowos.model import Argv, Bitstream, DeviceError, DeviceKind, Fpga, NodeDevice

MISSING, NOT_ALLOWED, TOO_LATE = 127, 126, 124
"""Codes of an answer: no such program or file, no right to use it, no answer in time."""


@dataclass(frozen=True)
class ToolStep:
    """A small program; the answer is its exit code and what it printed to both streams."""

    argv: Argv
    seconds: float = 30.0


@dataclass(frozen=True)
class FilesStep:
    """Files that match; the answer has a line `PATH=TEXT` for each, with its first line."""

    folder: PurePath
    pattern: str


@dataclass(frozen=True)
class WriteStep:
    """Writes a text to a file that is there."""

    path: PurePath
    text: str


@dataclass(frozen=True)
class CopyStep:
    source: PurePath
    target: PurePath


@dataclass(frozen=True)
class ScanStep:
    """Clocks over a Xilinx Virtual Cable; the answer is what came out, the first bit lowest."""

    address: str
    count: int
    tms: int
    tdi: int
    seconds: float


DeviceStep = ToolStep | FilesStep | WriteStep | CopyStep | ScanStep


@dataclass(frozen=True)
class StepAnswer:
    """code: 0 where it was done; below 0 the signal that ended a program."""

    code: int
    text: str = ""
    bits: int = 0


StepAnswers = Sequence[StepAnswer]


@dataclass(frozen=True)
class DeviceWork:
    """Steps, taken in order until one fails, and the device as they show it.

    read: raises DeviceError if they failed.
    """

    steps: tuple[DeviceStep, ...]
    read: Callable[[StepAnswers], NodeDevice]


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """What a node says. answers: to the driver's `looks`. gpus: as CUDA_VISIBLE_DEVICES calls those
    that we may use. cdi: names of devices for containers. fpgas: of flowos.toml."""

    answers: StepAnswers = ()
    cores: int = 1
    gpus: tuple[str, ...] = ()
    cdi: tuple[str, ...] = ()
    fpgas: tuple[Fpga, ...] = ()


class DeviceDriver(Protocol):
    """Pure, as all drivers. All but `find` are for one program at a time, which holds the device.

    looks: steps that find out what there is, and disturb no device that another program uses.
    acquire: sees that it is there and may be used, and what it is. verify: that it is configured,
    as far as the device shows it. release: nothing of this program stays on it; none of our drivers
    has a step there, as their tools hold nothing between two calls, and a bitstream stays for the
    next program. One gives back there what outlives the program: a reservation or a session that
    `acquire` began, a clock or a mode that it set.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> DeviceKind: ...
    @property
    def looks(self) -> tuple[DeviceStep, ...]: ...

    def find(self, facts: DeviceFacts) -> tuple[NodeDevice, ...]: ...

    def acquire(self, device: NodeDevice) -> DeviceWork: ...

    def configure(self, device: NodeDevice, bitstream: Bitstream, file: PurePath) -> DeviceWork:
        """Raises DeviceError if it takes none, or not this one."""
        ...

    def verify(self, device: NodeDevice) -> DeviceWork: ...

    def reset(self, device: NodeDevice) -> DeviceWork:
        """Raises DeviceError if it has no reset."""
        ...

    def release(self, device: NodeDevice) -> DeviceWork: ...


class AsItIs:
    """A device with nothing to configure; only what it does otherwise is in its driver."""

    def acquire(self, device: NodeDevice) -> DeviceWork:
        return nothing(device)

    def configure(self, device: NodeDevice, bitstream: Bitstream, file: PurePath) -> DeviceWork:  # noqa: ARG002
        raise DeviceError(f"{device.name}: it takes no bitstream; FPGAs do: flowos device list")

    def verify(self, device: NodeDevice) -> DeviceWork:
        return self.acquire(device)

    def reset(self, device: NodeDevice) -> DeviceWork:
        raise DeviceError(f"{device.name}: driver {device.driver} has no reset for it")

    def release(self, device: NodeDevice) -> DeviceWork:
        return nothing(device)


def nothing(device: NodeDevice) -> DeviceWork:
    return DeviceWork((), lambda _: device)


def faulty(device: NodeDevice, why: str) -> DeviceError:
    """The device is at fault, and is taken out of use."""
    error = DeviceError(f"{device.name}: {why}")
    error.faulty = True
    return error


def refuse_failed_tool(device: NodeDevice, answer: StepAnswer, tool: str, remedy: str) -> None:
    """Raises DeviceError if a tool could not be started or did not end in time."""
    if answer.code == MISSING:
        raise DeviceError(f"{device.name}: there is no {tool} here; {remedy}")
    if answer.code == NOT_ALLOWED:
        raise DeviceError(f"{device.name}: {tool} may not be started: {answer.text}")
    if answer.code == TOO_LATE:
        raise faulty(device, f"no answer within {device.limit_seconds:g} s, {tool} was ended")
