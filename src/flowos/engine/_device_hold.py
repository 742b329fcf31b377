"""Devices that a slice has for itself until it is freed."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceHold:
    """why: what is missing is not there. close: the slice is freed; twice is once."""

    why: str = ""
    close: Callable[[], None] = lambda: None


NO_DEVICES = DeviceHold()
