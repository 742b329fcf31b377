"""Defines tasks with bodies in OpenCL C."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from flowos.engine.bodies._call_sizes import names_of_sizes
from flowos.engine.bodies._native_task import native_task
from flowos.engine.bodies._opencl_kernel import OPENCL_TYPES, OpenClKernel
from flowos.engine.bodies._source import check_entry, source_code
from flowos.model import (
    Needs,
    Task,
    WiringError,
    WorkSize,
    group_incompatibility,
    group_sizes,
    native_ports,
    work_sizes,
)

_Size = int | str


def opencl(  # noqa: PLR0913 - options of a task, all by keyword
    source: str | os.PathLike[str],
    kernel: str,
    *,
    size: _Size | Sequence[_Size] = ("n",),
    group: int | Sequence[int] | None = None,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    flags: Sequence[str] = (),
    name: str | None = None,
    needs: Needs | Sequence[Needs] | None = None,
    limit_seconds: float | None = None,
    retries: int = 0,
    requeue: bool = True,
    cache: bool | str | None = None,
) -> Task:
    """A task whose body is a kernel in OpenCL C.

    source: a path, or the code itself. kernel: its name. It is called with the inputs in order
    (int64 as long, float32 as float and so on, an array as __global const T *), a long for each
    named extent that is no input itself, by first appearance, and a __global T * for each output,
    also a scalar.
    size: how many work items there are, for one to three axes: integers and names of extents or
    integer inputs, as in ("n", 3), "n*4", or "n/4", which is rounded up. group: how many of
    them are one work group, for each axis; without it the platform chooses.
    inputs, outputs: see `cxx`.
    flags: of the compiler. Others: see `task`. name: the kernel by default.
    It is built where it runs, at first use, by pyopencl, for the first GPU, else the first device,
    or what FLOWOS_OPENCL_DEVICE names as `flowos device list` does. On a CPU kernels work on the
    memory of NumPy's arrays, elsewhere those are copied, but stay on the device from one task of
    OpenCL to the next. A kernel may use all cores of a CPU: needs=fo.Needs(alone=True).
    Raises WiringError for a port or size that it cannot have, or a source that cannot be read.

    >>> vector = fo.array(fo.float32, ("n",))
    >>> code = '''__kernel void twice(__global const float* x, long n, __global float* y) {
    ...   y[get_global_id(0)] = 2 * x[get_global_id(0)]; }'''
    >>> fo.opencl(code, "twice", size="n", inputs={"x": vector}, outputs={"y": vector})
    <task twice(x: array(float32, ('n',))) -> y: array(float32, ('n',))>
    """
    title = name or str(kernel)
    where = f"opencl {title!r}"
    check_entry(where, kernel, "kernel")
    ports = native_ports(where, inputs, outputs, OPENCL_TYPES)
    sizes = work_sizes(where, "size", size, names_of_sizes(ports))
    groups = _groups(where, group, sizes)
    code = source_code(where, source, "opencl", flags)
    body = OpenClKernel(code, kernel, ports, sizes, groups)
    return native_task(
        title, ports, body, "opencl", (needs, limit_seconds, retries, requeue, cache)
    )


def _groups(where: str, group: object, sizes: Sequence[WorkSize]) -> tuple[int, ...]:
    if group is None:
        return ()
    groups = group_sizes(where, "group", group, len(sizes))
    known = [(g, size) for g, size in zip(groups, sizes, strict=True) if not size.extent]
    numbers, fixed = [g for g, _ in known], [size for _, size in known]
    if why := group_incompatibility(numbers, [size.of({}) for size in fixed], fixed):
        raise WiringError(f"{where}: {why}")
    return groups
