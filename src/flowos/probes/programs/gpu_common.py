"""What programs that measure a GPU share: its clock, its meter, how they answer.

Imported by its siblings, which have PyTorch. A GPU is timed by events in its own stream, several
calls in one CUDA graph where one call is short, so that the time to launch them is not measured.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

try:
    import torch as torch
except (ImportError, OSError) as failed:  # or a library of it is not there
    sys.stdout.write(json.dumps({"cannot": f"PyTorch cannot be imported: {failed}"}))
    sys.stdout.flush()
    sys.exit(77)

CANNOT_MEASURE_HERE = 77
BATCH_SECONDS = 1e-3
"""Calls of a GPU that are shorter are timed together until they take so long."""
MIN_SAMPLES, MAX_SAMPLES, MAX_IN_BATCH = 3, 50, 200
ENERGY_SECONDS = 0.5
"""How long is worked for a reading of the energy; the meter counts every tenth of a second."""

SLOWED = {
    0x8: "its hardware slowed it down",
    0x20: "it was too hot (software)",
    0x40: "it was too hot (hardware)",
    0x80: "its power supply slowed it down",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons; a power limit is none: it is how GPUs are run."""
BUSY_PERCENT = 5

TimedCall = Callable[[], Any]


def cannot(reason: str, remedy: str = "") -> NoReturn:
    sys.stdout.write(json.dumps({"cannot": reason, "remedy": remedy}))
    sys.stdout.flush()
    sys.exit(CANNOT_MEASURE_HERE)


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Meter:
    """What NVML says of a GPU: energy, work of others, what slowed it down. Without NVML nothing.

    Source: NVML API reference. The energy counter is there since Volta.
    """

    def __init__(self, device: str) -> None:
        self._handle = ctypes.c_void_p()
        try:
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            self._nvml: Any = ctypes.CDLL("libnvidia-ml.so.1")
            failed = self._nvml.nvmlInit_v2() or self._nvml.nvmlDeviceGetHandleByUUID(
                uuid.encode(), ctypes.byref(self._handle)
            )
        except (OSError, AttributeError, RuntimeError):
            failed = 1
        self._there = not failed

    def _asked(self, name: str, answer: Any) -> Any:
        """The answer filled in; None if NVML has none."""
        ask = getattr(self._nvml, name, None) if self._there else None
        return None if ask is None or ask(self._handle, ctypes.byref(answer)) else answer

    def joules(self) -> float | None:
        """Energy since the driver was loaded."""
        found = self._asked("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong())
        return None if found is None else found.value / 1e3

    def is_busy(self) -> str:
        """A complaint if others work on it now, before we do."""
        found = self._asked("nvmlDeviceGetUtilizationRates", _Utilization())
        if found is None or found.gpu <= BUSY_PERCENT:
            return ""
        return f"the GPU was {found.gpu}% busy before it was measured"

    def slowed(self) -> str:
        """A complaint if something but its power limit slows it down now."""
        found = self._asked("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong())
        bits = found.value if found is not None else 0
        return "; ".join(f"the GPU: {said}" for bit, said in SLOWED.items() if bits & bit)


class Device:
    """A device of PyTorch: its clock and meter. suspicious: why its numbers may be wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_gpu = name != "cpu"
        self.suspicious: dict[str, None] = {}
        self.meter: Meter | None = None
        if not self.is_gpu:
            return
        if not torch.cuda.is_available():
            cannot("this PyTorch has no CUDA", "pip install torch, in a build for CUDA")
        self.meter = Meter(name)
        self._doubt(self.meter.is_busy())
        torch.cuda.set_device(name)

    def _doubt(self, complaint: str) -> None:
        if complaint:
            self.suspicious[complaint] = None

    def times(self, call: TimedCall, seconds: float) -> list[float]:
        """The seconds of one call, several times over, for about so long. It was called before."""
        once = self.once(call)
        calls = self._calls_at_once(once)
        act = self._graph(call, calls) if calls > 1 else call
        if self.is_gpu:
            once = self.once(act) / calls  # it was idle, and its clock low
        count = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / max(once * calls, 1e-9))))
        found = [self.once(act) / calls for _ in range(count)]
        self.doubt_if_slowed()
        return found

    def doubt_if_slowed(self) -> None:
        """To be called at the end of what was timed."""
        if self.meter:
            self._doubt(self.meter.slowed())

    def wait(self) -> None:
        """Until it has done all that it was given."""
        if self.is_gpu:
            torch.cuda.synchronize(self.name)

    def _calls_at_once(self, once: float) -> int:
        if not self.is_gpu or once >= BATCH_SECONDS:
            return 1
        return min(MAX_IN_BATCH, int(BATCH_SECONDS / max(once, 1e-7)) + 1)

    def once(self, act: TimedCall) -> float:
        """The seconds of one call."""
        if not self.is_gpu:
            began = time.perf_counter()
            act()
            return time.perf_counter() - began
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        act()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def _graph(self, call: TimedCall, calls: int) -> TimedCall:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        return graph.replay  # type: ignore[no-any-return]


class Energy(NamedTuple):
    """joules: of one call. watts: the mean power meanwhile."""

    joules: float
    watts: float


def energy_of(devices: Sequence[Device], call: TimedCall) -> Energy | None:
    """From half a second of calls; None if no meter counts the energy of one of the devices."""
    if _joules(devices) is None:
        return None
    count = max(1, round(ENERGY_SECONDS / max(devices[0].once(call), 1e-6)))
    before, began = _joules(devices), time.perf_counter()
    for _ in range(count):
        call()
    for device in devices:
        device.wait()
    seconds, after = time.perf_counter() - began, _joules(devices)
    if before is None or after is None or after <= before:
        return None
    return Energy((after - before) / count, (after - before) / seconds)


def _joules(devices: Sequence[Device]) -> float | None:
    found = [device.meter.joules() if device.meter else None for device in devices]
    counted = [joules for joules in found if joules is not None]
    return sum(counted) if len(counted) == len(found) else None


def energy_readings(
    devices: Sequence[Device], call: TimedCall, rate: tuple[str, str, float], **levels: object
) -> Iterator[dict[str, Any]]:
    """What a joule does, and the power, where meters count the energy.

    rate: its metric and unit, such as flop/s, and how much of it one call does.
    """
    metric, unit, work = rate
    if energy := energy_of(devices, call):
        per_joule = [work / energy.joules]
        yield reading(
            devices[0], f"{metric}_per_joule", unit.replace("/s", "/J"), per_joule, **levels
        )
        yield reading(devices[0], "power", "W", [energy.watts], **levels)


def reading(
    device: Device, metric: str, unit: str, values: list[float], **levels: object
) -> dict[str, Any]:
    notes = {"torch": torch.__version__}
    if device.suspicious:
        notes["suspicious"] = "; ".join(device.suspicious)
    named = {name: str(level) for name, level in levels.items()}
    return {"metric": metric, "unit": unit, "values": values, "levels": named, "notes": notes}


def relative_error(found: Any, true: Any) -> float:
    return float((found.double() - true).norm() / true.norm())
