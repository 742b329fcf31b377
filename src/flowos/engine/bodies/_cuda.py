"""Defines tasks with bodies in CUDA."""

import os
import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from flowos.engine.bodies._call_sizes import names_of_sizes
from flowos.engine.bodies._cuda_kernel import CudaKernel
from flowos.engine.bodies._native_task import native_task
from flowos.engine.bodies._nvrtc import CUDA_TYPES
from flowos.engine.bodies._source import check_entry, source_code
from flowos.model import (
    Needs,
    Task,
    WiringError,
    WorkSize,
    brief_repr,
    group_sizes,
    native_ports,
    work_sizes,
)

_Size = int | str
_MOST_THREADS, _MOST_THIRD = 1024, 64


def cuda(  # noqa: PLR0913 - options of a task, all by keyword
    source: str | os.PathLike[str],
    kernel: str,
    *,
    grid: _Size | Sequence[_Size] | None = None,
    block: int | Sequence[int] = 256,
    size: _Size | Sequence[_Size] | None = None,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    flags: Sequence[str] = (),
    arch: str | None = None,
    name: str | None = None,
    needs: Needs | Sequence[Needs] | None = None,
    limit_seconds: float | None = None,
    retries: int = 0,
    requeue: bool = True,
    cache: bool | str | None = None,
) -> Task:
    """A task whose body is a kernel in CUDA C++.

    source: a path, or the code itself. kernel: its name. It is called with the inputs in order
    (int64 as long long, float32 as float and so on, an array as const T *), a long long for each
    named extent that is no input itself, by first appearance, and a T * for each output, also a
    scalar.
    grid: how many blocks there are, for one to three axes: integers and names of extents or integer
    inputs, as in ("n", 3), "n*4", or "n/256", which is rounded up. block: threads of a block, for
    each axis. size: instead of grid: how many threads there are at least, which `block` divides
    into blocks; those past the end have to return.
    inputs, outputs: see `cxx`.
    flags: of NVRTC. arch: as "sm_90", by default that of the GPU it runs on, which is the first
    that CUDA_VISIBLE_DEVICES leaves. Others: see `task`. name: the kernel by default.
    It is compiled at first use, and kept as those of `cxx`. Arrays stay on the GPU between tasks.
    Raises WiringError for a port or size that it cannot have, or a source that cannot be read.

    >>> vector = fo.array(fo.float32, ("n",))
    >>> code = '''extern "C" __global__ void twice(const float* x, long long n, float* y) {
    ...   long long i = blockIdx.x * blockDim.x + threadIdx.x;
    ...   if (i < n) y[i] = 2 * x[i]; }'''
    >>> fo.cuda(code, "twice", size="n", inputs={"x": vector}, outputs={"y": vector})
    <task twice(x: array(float32, ('n',))) -> y: array(float32, ('n',))>
    """
    title = name or str(kernel)
    where = f"cuda {title!r}"
    check_entry(where, kernel, "kernel")
    ports = native_ports(where, inputs, outputs, CUDA_TYPES)
    blocks, threads = _blocks(where, grid, size, block, names_of_sizes(ports))
    _check_arch(where, arch)
    code = source_code(where, source, "cuda", flags)
    body = CudaKernel(code, kernel, ports, blocks, threads, arch or "")
    return native_task(title, ports, body, "cuda", (needs, limit_seconds, retries, requeue, cache))


def _check_arch(where: str, arch: object) -> None:
    if arch is not None and not re.fullmatch(r"sm_\d+[af]?", str(arch)):
        raise WiringError(f"{where}: arch={brief_repr(arch)}; expected one such as 'sm_90'")


def _block(where: str, block: object, axes: int) -> tuple[int, ...]:
    """Raises WiringError for more threads than CUDA has in a block of any kernel."""
    threads = group_sizes(where, "block", block, axes)
    if prod(threads) > _MOST_THREADS:
        raise WiringError(f"{where}: block={block}; a block has {_MOST_THREADS} threads at most")
    if threads[2:] > (_MOST_THIRD,):
        raise WiringError(f"{where}: block={block}; its third axis is {_MOST_THIRD} at most")
    return threads


def _blocks(
    where: str, grid: object, size: object, block: object, extents: Sequence[str]
) -> tuple[tuple[WorkSize, ...], tuple[int, ...]]:
    """The grid, and the threads of a block."""
    if (grid is None) == (size is None):
        raise WiringError(f"{where}: give grid=, the blocks of each axis, or size=, the threads")
    if size is None:
        blocks = work_sizes(where, "grid", grid, extents)
        return blocks, _block(where, block, len(blocks))
    threads = work_sizes(where, "size", size, extents)
    groups = _block(where, block, len(threads))
    pairs = zip(threads, groups, strict=True)
    return tuple(WorkSize(t.extent, (*t.factors, ("/", g))) for t, g in pairs), groups
