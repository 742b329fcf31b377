"""What torch_device.py measures, once it has read its words; PyTorch takes seconds to load."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from gpu_common import (
    MAX_SAMPLES,
    MIN_SAMPLES,
    Device,
    TimedCall,
    cannot,
    energy_readings,
    reading,
    relative_error,
    torch,
)

DTYPES = {"f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
STREAM_KERNELS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
"""Arrays that each kernel reads and writes."""
TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "tf32": 3e-3, "f16": 3e-3, "bf16": 1e-2, "fp8": 1e-2}
"""Of the relative error in the Frobenius norm, against f64 of the same inputs."""
FP8_MULTIPLE = 16


class LeftOutError(Exception):
    """A part of the sweep that this device or PyTorch does not have."""


def wrong(what: str) -> None:
    sys.exit(f"torch_device: {what}")


# --- matrix products ---------------------------------------------------------------------------


def normal(device: Device, *shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float32, device=device.name)


def product(device: Device, kind: str, n: int) -> tuple[TimedCall, Any, Any]:
    """The call, and its inputs. Raises LeftOutError for a type that is not to be had."""
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    if kind == "fp8":
        return fp8_product(device, n)
    a, b = (normal(device, n, n).to(DTYPES.get(kind, torch.float32)) for _ in range(2))
    out = torch.empty_like(a)
    return (lambda: torch.matmul(a, b, out=out)), a, b


def fp8_product(device: Device, n: int) -> tuple[TimedCall, Any, Any]:
    from torch.nn import functional

    if not device.is_gpu or not hasattr(functional, "scaled_mm"):
        raise LeftOutError("fp8: it needs a GPU and PyTorch 2.10 or newer")
    if n % FP8_MULTIPLE:
        raise LeftOutError(f"fp8: n is a multiple of {FP8_MULTIPLE}")
    a, b = (normal(device, n, n).to(torch.float8_e4m3fn) for _ in range(2))
    b = b.t()  # the library wants it column by column
    one, each = torch.ones((), device=device.name), functional.ScalingType.TensorWise

    def call() -> Any:
        return functional.scaled_mm(
            a, b, one, each, one, each, output_dtype=torch.bfloat16, use_fast_accum=True
        )

    return call, a, b


def check_product(kind: str, n: int, call: TimedCall, a: Any, b: Any) -> None:
    """Compare some rows and columns with the product of the same inputs in f64."""
    found = call()
    step = max(1, n // 24)
    rows, columns = slice(0, n, step), slice(step // 2, n, step)
    true = a[rows].double() @ b[:, columns].double()
    error = relative_error(found[rows, columns], true)
    if not error < TOLERANCE[kind]:
        wrong(f"a product of {kind}, n = {n}, is off by {error:.2g}, more than {TOLERANCE[kind]:g}")


def gemm(device: Device, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """2 n^3 operations; for each type the sizes that fit into the time and the memory."""
    sizes = [int(word) for word in options.sizes.split(",")]
    kinds = options.types.split(",")
    each = options.seconds / len(kinds) / len(sizes)
    for kind in kinds:
        slowest, last = 0.0, None
        for n in sizes:
            if slowest * n**3 > 3 * each:
                break
            try:
                call, a, b = product(device, kind, n)
                check_product(kind, n, call, a, b)
                times = device.times(call, each)
            except (LeftOutError, torch.cuda.OutOfMemoryError, NotImplementedError):
                continue
            except RuntimeError as error:
                if kind != "fp8":  # a GPU before Ada has no fp8, and says so by this
                    raise
                print(f"torch_device: {str(error).splitlines()[0]}", file=sys.stderr)
                break
            slowest = min(times) / n**3
            flops = [2.0 * n**3 / seconds for seconds in times]
            yield reading(device, "flops", "flop/s", flops, type=kind, n=n)
            last = call, n
        if last:
            call, n = last
            yield from energy_readings(
                [device], call, ("flops", "flop/s", 2.0 * n**3), type=kind, n=n
            )


# --- memory --------------------------------------------------------------------------------------


def stream(device: Device, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """STREAM's four kernels on arrays of f64, checked as STREAM checks them."""
    length = options.bytes // 8
    try:
        a, b, c = (torch.full((length,), x, device=device.name).double() for x in (1.0, 2.0, 0.0))
    except (torch.cuda.OutOfMemoryError, MemoryError):
        cannot(f"three arrays of {options.bytes} bytes do not fit into its memory")
    q = 3.0
    kernels: dict[str, TimedCall] = {
        "copy": lambda: c.copy_(a),
        "scale": lambda: torch.mul(c, q, out=b),
        "add": lambda: torch.add(a, b, out=c),
        "triad": lambda: torch.add(b, c, alpha=q, out=a),
    }
    for call in kernels.values():
        call()
    for name, array, true in (("a", a, 15.0), ("b", b, 3.0), ("c", c, 4.0)):
        if bool((array != true).any()):
            wrong(f"array {name} of STREAM is not {true}")
    for name, call in kernels.items():
        times = device.times(call, options.seconds / len(kernels))
        moved = STREAM_KERNELS[name] * 8.0 * length
        rates = [moved / seconds for seconds in times]
        yield reading(device, "bandwidth", "byte/s", rates, kernel=name)
        yield from energy_readings([device], call, ("bandwidth", "byte/s", moved), kernel=name)


def copy(device: Device, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Copies between host and device, of pages that are locked and of pages that are not."""
    if not device.is_gpu:
        cannot("a copy between host and device needs a GPU")
    sizes = [int(word) for word in options.sizes.split(",")]
    ways = [(to, pages) for to in ("device", "host", "both") for pages in ("pinned", "pageable")]
    ways.remove(("both", "pageable"))  # such a copy waits for its end: they cannot overlap
    each = options.seconds / len(sizes) / len(ways)
    for size in sizes:
        host = torch.randint(0, 255, (size,), dtype=torch.uint8)
        there = host.to(device.name)
        for to, pages in ways:
            near = torch.empty_like(host).pin_memory() if pages == "pinned" else host.clone()
            call = copying(to, host.pin_memory() if pages == "pinned" else host, near, there)
            call()
            torch.cuda.synchronize()
            if to != "device" and not torch.equal(near, host):
                wrong(f"{size} bytes came back from the device as others")
            times = plain_times(device, call, each)
            moved = (2 if to == "both" else 1) * size
            rates = [moved / seconds for seconds in times]
            yield reading(device, "bandwidth", "byte/s", rates, to=to, pages=pages, bytes=size)


def copying(to: str, host: Any, near: Any, there: Any) -> TimedCall:
    """host: what is copied to the device. near: what a copy from the device is written to."""
    other = torch.empty_like(there)
    aside = torch.cuda.Stream() if to == "both" else None

    def both() -> None:
        main = torch.cuda.current_stream()
        assert aside is not None
        aside.wait_stream(main)
        with torch.cuda.stream(aside):
            near.copy_(there, non_blocking=True)
        other.copy_(host, non_blocking=True)
        main.wait_stream(aside)

    calls: dict[str, TimedCall] = {
        "device": lambda: other.copy_(host, non_blocking=True),
        "host": lambda: near.copy_(there, non_blocking=True),
        "both": both,
    }
    return calls[to]


def plain_times(device: Device, call: TimedCall, seconds: float) -> list[float]:
    """As `times`, one call after the other: a copy is not to be hidden in a graph."""
    once = device.once(call)
    count = max(MIN_SAMPLES, min(MAX_SAMPLES, int(seconds / max(once, 1e-6))))
    return [device.once(call) for _ in range(count)]


# --- DeepBench ---------------------------------------------------------------------------------


def deepbench(device: Device, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Two of DeepBench's operations, forward: a product, and the first layer of ResNet-50."""
    kinds = options.types.split(",")
    each = options.seconds / len(kinds) / 2
    for kind in kinds:
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        torch.backends.cudnn.allow_tf32 = kind == "tf32"
        torch.backends.cudnn.benchmark = True
        dtype = DTYPES.get(kind, torch.float32)
        for name, make in (("gemm", layer_product), ("convolution", first_convolution)):
            with torch.inference_mode():
                call, check, operations = make(device, dtype)
                error = relative_error(*check())
                if not error < TOLERANCE[kind]:
                    wrong(f"a {name} of {kind} is off by {error:.2g}")
                times = device.times(call, each)
                rate, levels = ("flops", "flop/s", operations), {"operation": name, "type": kind}
                energy = list(energy_readings([device], call, rate, **levels))
            flops = [operations / seconds for seconds in times]
            yield reading(device, "flops", "flop/s", flops, **levels)
            yield from energy


def layer_product(device: Device, dtype: Any) -> tuple[TimedCall, TimedCall, float]:
    m, n, k = 5124, 9124, 2560
    a, b = normal(device, m, k).to(dtype), normal(device, k, n).to(dtype)
    out = torch.empty(m, n, dtype=dtype, device=device.name)

    def call() -> Any:
        return torch.matmul(a, b, out=out)

    def check() -> tuple[Any, Any]:
        call()
        return out[:16], a[:16].double() @ b.double()

    return call, check, 2.0 * m * n * k


def first_convolution(device: Device, dtype: Any) -> tuple[TimedCall, TimedCall, float]:
    """16 images of 224 x 224 x 3, 64 filters of 7 x 7 at every second point."""
    batch, height, channels, filters, edge, stride, pad = 16, 224, 3, 64, 7, 2, 3
    out = (height + 2 * pad - edge) // stride + 1
    images = normal(device, batch, channels, height, height).to(dtype)
    weights = normal(device, filters, channels, edge, edge).to(dtype)

    def convolved(images: Any, weights: Any) -> Any:
        return torch.nn.functional.conv2d(images, weights, stride=stride, padding=pad)

    def check() -> tuple[Any, Any]:
        return convolved(images, weights)[:1], convolved(images[:1].double(), weights.double())

    operations = 2.0 * batch * filters * out * out * channels * edge * edge
    return (lambda: convolved(images, weights)), check, operations


# --- all together ----------------------------------------------------------------------------

MEASURES = {"gemm": gemm, "stream": stream, "copy": copy, "deepbench": deepbench}


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    device = Device(options.device)
    torch.manual_seed(1)
    readings = list(MEASURES[options.measure](device, options))
    if not readings:
        cannot("nothing of it could be measured within its time")
    return readings
