"""What probes of GPUs share: devices, the program through PyTorch, and peaks of data sheets."""

from typing import ClassVar, Protocol

from flowos.model import (
    Case,
    Chart,
    CudaDevice,
    Effort,
    Facts,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Unmeasured,
)
from flowos.probes._base import Probe, Program, read_answer

HOST = "cpu"
"""The level of axis `device` for processors."""

NO_GPU = Unmeasured(
    reason="no GPU with NVIDIA's driver was found",
    remedy="install the driver; in a container let it see the GPU",
)
NO_TORCH = Unmeasured(
    reason="no Python here has PyTorch, through which GPUs are measured",
    remedy="pip install torch, in a build for CUDA",
)
START_SECONDS = 6.0
"""PyTorch is imported, and CUDA begun."""

Capability = tuple[int, int]

CUDA_CORES: dict[Capability, dict[str, int]] = {
    (7, 0): {"f64": 32, "f32": 64},
    (7, 5): {"f64": 2, "f32": 64},
    (8, 0): {"f64": 32, "f32": 64},
    (8, 6): {"f64": 2, "f32": 128},
    (8, 9): {"f64": 2, "f32": 128},
    (9, 0): {"f64": 64, "f32": 128},
    (10, 0): {"f64": 64, "f32": 128},
    (12, 0): {"f64": 2, "f32": 128},
}
"""Fused multiply-adds per clock of a multiprocessor: CUDA C++ Programming Guide, section
"Arithmetic Instructions"."""

TENSOR_CORES: dict[Capability, dict[str, int]] = {
    (7, 0): {"f16": 512},
    (7, 5): {"f16": 512},
    (8, 0): {"f64": 64, "tf32": 512, "f16": 1024, "bf16": 1024},
    (9, 0): {"f64": 128, "tf32": 1024, "f16": 2048, "bf16": 2048, "fp8": 4096},
    (10, 0): {"f64": 64, "tf32": 2048, "f16": 4096, "bf16": 4096, "fp8": 8192},
}
"""The same of dense matrices, FP32 accumulation: NVIDIA's white papers on the V100, T4, A100, H100
and B200, over 2 x clock x multiprocessors. Parts for consumers, which differ, are left out."""


class TorchProbe(Probe, Protocol):
    """A probe whose program is programs/torch_device.py: a case per device.

    Axis `device` is the GPU's number, as CUDA counts, or "cpu": that is measured, as a check and to
    compare, where there is no GPU and the probe is asked for by name.
    """

    measure: ClassVar[str]
    """The program's name for it."""
    on_host: ClassVar[bool] = True
    gpu_alone: ClassVar[bool] = True
    """Has what the processors do meanwhile no part in it?"""

    def details(self, device: CudaDevice | None, effort: Effort) -> Pairs:
        """Options of the program, "seconds" among them; device: None for the host."""
        ...

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        named = self.on_host and self.name in request.probes
        devices: tuple[CudaDevice | None, ...] = facts.cuda or ((None,) if named else ())
        if not devices:
            return NO_GPU if self.name in request.probes else ()
        python = facts.tool("torch")
        if python is None:
            return NO_TORCH
        known = (("python", str(python.path)), ("torch", python.version))
        return tuple(
            Case(
                self.name,
                levels=(("device", str(device.number) if device else HOST),),
                details=(*known, *self.details(device, request.effort)),
            )
            for device in devices
        )

    def seconds(self, case: Case) -> float:
        return START_SECONDS + 1.5 * float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        device = case.level("device")
        return Program(
            argv=(
                case.detail("python"),
                self.measure,
                *("--device", device if device == HOST else f"cuda:{device}"),
                *(word for name, value in case.details[2:] for word in (f"--{name}", value)),
            ),
            script="torch_device.py",
            on_gpu=device != HOST and self.gpu_alone,
            limit_seconds=120 + 10 * float(case.detail("seconds")),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return read_answer(outcome, "torch_device")


def energy_charts(
    title: str, metric: str, unit: str, x: str, facets: tuple[str, ...] = (), about: str = ""
) -> tuple[Chart, Chart]:
    """What a joule does, and the power; of a program whose `energy_readings` say both.

    unit: of the first. about: what is said of it, too.
    """
    of_gpu = "The energy of the whole GPU, by its own meter (NVML)"
    energy, power = (
        Chart(
            title=f"{title} {for_what}",
            kind="bars",
            x=x,
            metrics=(name,),
            series=("device",),
            facets=facets,
            x_label=x,
            y_label=label,
            ceilings=False,
            about=f"{of_gpu}{about}.",
        )
        for for_what, name, label in (
            ("for its energy", f"{metric}_per_joule", unit),
            ("and its power", "power", "W"),
        )
    )
    return energy, power


def device_of(case: Case, facts: Facts) -> CudaDevice | None:
    number = case.level("device")
    return next((device for device in facts.cuda if str(device.number) == number), None)


def nominal_gpu_flops(case: Case, unit: str, facts: Facts) -> tuple[str, float] | None:
    """clock x multiprocessors x 2 x width, of tensor cores where a type has them; else None."""
    device, kind = device_of(case, facts), case.level("type")
    if unit != "flop/s" or device is None:
        return None
    tensor = TENSOR_CORES.get(device.capability, {}).get(kind)
    width = tensor or CUDA_CORES.get(device.capability, {}).get(kind)
    if not width or not device.clock_hz:
        return None
    cores = "tensor cores" if tensor else "CUDA cores"
    count = device.multiprocessors
    name = f"{device.clock_hz / 1e9:.3f} GHz x {count} SMs x {2 * width} flop/clock, {cores}"
    return name, device.clock_hz * count * 2 * width


def nominal_gpu_memory(case: Case, unit: str, facts: Facts) -> tuple[str, float] | None:
    """Memory clock x bus width x 2 transfers per clock (GDDR, HBM); None if one is unknown."""
    device = device_of(case, facts)
    if unit != "byte/s" or device is None:
        return None
    rate = 2 * device.memory_clock_hz * device.bus_bits / 8
    name = f"{device.memory_clock_hz / 1e9:.3f} GHz x 2 x {device.bus_bits} bits"
    return (name, rate) if rate else None
