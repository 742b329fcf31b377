"""What programs that measure a GPU share: its clock, its meter, how they answer.

Imported by its siblings, which have PyTorch. A GPU is timed by events in its own stream, several
calls in one CUDA graph where one call is short, so that the time to launch them is not measured.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

try:
    import torch as torch
except ImportError as failed:
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
        if self.is_gpu:
            self._doubt(self.meter.slowed())
        return found

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

    def joules(self, call: TimedCall) -> float | None:
        """The energy of one call, from half a second of them; None if no meter counts it."""
        if not self.is_gpu or self.meter.joules() is None:
            return None
        count = max(1, round(ENERGY_SECONDS / max(self.once(call), 1e-6)))
        before = self.meter.joules()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        after = self.meter.joules()
        if before is None or after is None or after <= before:
            return None
        return (after - before) / count


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
