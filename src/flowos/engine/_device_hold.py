"""Devices that a slice has for itself until it is freed."""

from collections.abc import Callable
from pathlib import Path

from flowos._dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceHold:
    """why: what is missing is not there. close: the slice is freed; twice is once."""

    why: str = ""
    close: Callable[[], None] = lambda: None


NO_DEVICES = DeviceHold()


@dataclass(frozen=True, slots=True)
class WantedBoard:
    """A board for a task. port: that its owner named, or "". file: makes its bitstream."""

    label: str
    port: str
    file: Callable[[], Path]


@dataclass(frozen=True, slots=True)
class BoardHold(DeviceHold):
    """Boards with their bitstreams. ports: of each that was requested. notes: what was loaded.

    is_wrong: what was given for a bitstream is, so that no board would do.
    """

    ports: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_wrong: bool = False
