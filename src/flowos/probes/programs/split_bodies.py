"""Bodies on one device or split over several, and how long their accelerations take.

Imported by nbody_gpu.py, whose words are right then: PyTorch takes seconds to import.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from gpu_common import (
    MAX_SAMPLES,
    MIN_SAMPLES,
    Device,
    cannot,
    energy_readings,
    reading,
    relative_error,
    torch,
)

OPERATIONS = 20
SOFTENING = 0.01
TOLERANCE = {"f32": 1e-4, "f64": 1e-12}
HOST_ROWS = 64

Accelerate = Callable[[list[Any], list[Any], float], None]


def accelerate_on_host(bodies: list[Any], found: list[Any], softening: float) -> None:
    """As the kernel, by PyTorch."""
    x, y, z, mass = bodies
    for first in range(0, len(found[0]), HOST_ROWS):
        rows = slice(first, first + HOST_ROWS)
        d = [part[None, :] - part[rows, None] for part in (x, y, z)]
        weight = mass * (d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + softening).rsqrt() ** 3
        for axis, each in enumerate(d):
            found[axis][rows] = (weight * each).sum(1)


def kernel_for(device: Device) -> Accelerate:
    if not device.is_gpu:
        return accelerate_on_host
    try:
        from nbody_kernel import accelerate_first
    except ImportError as failed:
        cannot(f"Triton cannot be imported: {failed}", "pip install triton")
    return accelerate_first


class SplitBodies:
    """x, y, z and mass of all bodies on each device, and the accelerations of its own part.

    Its own part comes first there, then those of the devices after it, in turn: the kernel begins
    with the first body. Positions of the others are unknown until they are gathered.
    """

    def __init__(self, devices: list[Device], kind: str, count: int) -> None:
        dtype = torch.float64 if kind == "f64" else torch.float32
        self.devices, self.part = devices, count // len(devices)
        self.accelerate = kernel_for(devices[0])
        whole = [torch.rand(count, dtype=dtype) for _ in range(4)]
        self.held: list[list[Any]] = []
        self.found: list[list[Any]] = []
        for number, device in enumerate(devices):
            bodies = [each.roll(-number * self.part).to(device.name) for each in whole]
            for position in bodies[:3]:
                position[self.part :] = float("nan")
            self.held.append(bodies)
            own = bodies[0][: self.part]
            self.found.append([torch.full_like(own, float("nan")) for _ in range(3)])

    def step(self) -> None:
        self.gather()
        for device, bodies, found in zip(self.devices, self.held, self.found, strict=True):
            with torch.cuda.device(device.name) if device.is_gpu else nullcontext():
                self.accelerate(bodies, found, SOFTENING**2)

    def gather(self) -> None:
        """The positions of each part, to all other devices."""
        devices = len(self.devices)
        for mine, bodies in enumerate(self.held):
            for turn in range(1, devices):
                other, at = self.held[(mine + turn) % devices], turn * self.part
                for axis in range(3):
                    there = bodies[axis][at : at + self.part]
                    there.copy_(other[axis][: self.part], non_blocking=True)

    def error(self) -> float:
        """The largest relative error of a part, of some of its bodies."""
        return max(map(check, self.held, self.found))

    def times(self, seconds: float) -> list[float]:
        """Seconds of a step, several times over. It was called before."""
        if len(self.devices) == 1:
            return self.devices[0].times(self.step, seconds)
        once = self._once()
        count = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / max(once, 1e-9))))
        found = [self._once() for _ in range(count)]
        for device in self.devices:
            device.doubt_if_slowed()
            self.devices[0].suspicious |= device.suspicious
        return found

    def _once(self) -> float:
        self._wait()
        began = time.perf_counter()
        self.step()
        self._wait()
        return time.perf_counter() - began

    def _wait(self) -> None:
        for device in self.devices:
            device.wait()


def check(bodies: list[Any], found: list[Any]) -> float:
    """The relative error of some bodies' acceleration, against a sum in f64."""
    x, y, z, mass = (part.double() for part in bodies)
    count = len(found[0])
    some = slice(0, count, max(1, count // 16))
    d = [part[None, :] - part[some, None] for part in (x, y, z)]
    weight = mass / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + SOFTENING**2) ** 1.5
    true = torch.stack([(weight * each).sum(1) for each in d])
    return relative_error(torch.stack([each[some] for each in found]), true)


def measured(
    devices: list[Device], kind: str, count: int, seconds: float
) -> Iterator[dict[str, Any]]:
    bodies = SplitBodies(devices, kind, count)
    bodies.step()
    error = bodies.error()
    if not error < TOLERANCE[kind]:
        sys.exit(f"nbody_gpu: accelerations of {kind} are off by {error:.2g}")
    operations = OPERATIONS * float(count) ** 2
    flops = [operations / once for once in bodies.times(seconds)]
    yield reading(devices[0], "flops", "flop/s", flops, type=kind)
    yield from energy_readings(devices, bodies.step, ("flops", "flop/s", operations), type=kind)


def all_measured(
    names: list[str], kinds: list[str], count: int, seconds: float
) -> list[dict[str, Any]]:
    """seconds: for all types together."""
    devices = [Device(name) for name in names]
    torch.manual_seed(1)
    each = seconds / len(kinds)
    return [row for kind in kinds for row in measured(devices, kind, count, each)]
