"""All-pairs gravity as a kernel of Triton, which PyTorch brings along for GPUs.

Imported by split_bodies.py where it measures a GPU.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

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


def accelerate_first(bodies: list[Any], found: list[Any], softening: float) -> None:
    """The accelerations of as many bodies, from the first on, as `found` has room for."""
    blocks = len(found[0]) // TARGETS
    accelerate[(blocks,)](
        *bodies, *found, len(bodies[0]), softening, TARGETS, SOURCES, num_warps=WARPS
    )
