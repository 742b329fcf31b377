"""All-pairs gravity on a GPU, as a kernel of Triton, which PyTorch brings along.

usage: python nbody_gpu.py --device cuda:0 --bodies N --types f32,f64 --seconds S

a_i = sum over j of m_j (x_j - x_i) / (|x_j - x_i|^2 + eps^2)^1.5, which is counted as 20 operations
a pair, as Nyland, Harris and Prins do (GPU Gems 3, chapter 31). Some bodies are checked in f64.
Prints the JSON that probes read; exit 77 with {"cannot", "remedy"} where it cannot be measured, 1
if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from gpu_common import Device, cannot, reading, relative_error, torch

try:
    import triton
    import triton.language as tl
except ImportError as failed:
    cannot(f"Triton cannot be imported: {failed}", "pip install triton")

OPERATIONS = 20
SOFTENING = 0.01
TOLERANCE = {"f32": 1e-4, "f64": 1e-12}
TARGETS, SOURCES, WARPS = 64, 32, 4
"""Bodies of one block of the kernel, those it takes at once, and its warps: the best of a dozen on
an H200."""


@triton.jit  # type: ignore[untyped-decorator]
def accelerate(  # type: ignore[no-untyped-def] # noqa: PLR0913
    x,
    y,
    z,
    mass,
    ax,
    ay,
    az,
    count,
    softening: tl.constexpr,
    targets: tl.constexpr,
    sources: tl.constexpr,
):
    """One block of targets against all sources; the count is a multiple of both."""
    here = tl.program_id(0) * targets + tl.arange(0, targets)
    xi, yi, zi = tl.load(x + here)[:, None], tl.load(y + here)[:, None], tl.load(z + here)[:, None]
    sx = tl.zeros((targets, sources), dtype=xi.dtype)
    sy = tl.zeros((targets, sources), dtype=xi.dtype)
    sz = tl.zeros((targets, sources), dtype=xi.dtype)
    for first in range(0, count, sources):
        there = first + tl.arange(0, sources)
        dx = tl.load(x + there)[None, :] - xi
        dy = tl.load(y + there)[None, :] - yi
        dz = tl.load(z + there)[None, :] - zi
        square = dx * dx + dy * dy + dz * dz + softening
        inverse = tl.rsqrt(square)
        weight = tl.load(mass + there)[None, :] * inverse * inverse * inverse
        sx += weight * dx
        sy += weight * dy
        sz += weight * dz
    tl.store(ax + here, tl.sum(sx, axis=1))
    tl.store(ay + here, tl.sum(sy, axis=1))
    tl.store(az + here, tl.sum(sz, axis=1))


def check(bodies: list[Any], found: list[Any]) -> float:
    """The relative error of some bodies' acceleration, against a sum in f64."""
    x, y, z, mass = (part.double() for part in bodies)
    some = slice(0, len(x), max(1, len(x) // 16))
    d = [part[None, :] - part[some, None] for part in (x, y, z)]
    weight = mass / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + SOFTENING**2) ** 1.5
    true = torch.stack([(weight * each).sum(1) for each in d])
    return relative_error(torch.stack([each[some] for each in found]), true)


def measured(device: Device, kind: str, count: int, seconds: float) -> dict[str, Any]:
    dtype = torch.float64 if kind == "f64" else torch.float32
    bodies = [torch.rand(count, dtype=dtype, device=device.name) for _ in range(4)]
    found = [torch.full_like(bodies[0], float("nan")) for _ in range(3)]

    def call() -> None:
        accelerate[(count // TARGETS,)](
            *bodies, *found, count, SOFTENING**2, TARGETS, SOURCES, num_warps=WARPS
        )

    call()
    error = check(bodies, found)
    if not error < TOLERANCE[kind]:
        sys.exit(f"nbody_gpu: accelerations of {kind} are off by {error:.2g}")
    flops = [OPERATIONS * float(count) ** 2 / once for once in device.times(call, seconds)]
    return reading(device, "flops", "flop/s", flops, type=kind)


def main() -> None:
    parser = argparse.ArgumentParser(description="N-body on a GPU.")
    parser.add_argument("--device", required=True)
    parser.add_argument("--bodies", type=int, required=True)
    parser.add_argument("--types", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    if options.bodies % TARGETS or options.bodies % SOURCES:
        sys.exit(f"nbody_gpu: --bodies {options.bodies}: give a multiple of {TARGETS}")
    device = Device(options.device)
    torch.manual_seed(1)
    kinds = options.types.split(",")
    each = options.seconds / len(kinds)
    readings = [measured(device, kind, options.bodies, each) for kind in kinds]
    sys.stdout.write(json.dumps({"readings": readings}))


if __name__ == "__main__":
    main()
