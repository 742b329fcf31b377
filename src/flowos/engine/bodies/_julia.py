"""Defines tasks with bodies in Julia."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from flowos.engine.bodies._julia_function import DOWNLOADS, JULIA, JuliaFunction
from flowos.engine.bodies._julia_values import DTYPES
from flowos.engine.bodies._native_task import native_task
from flowos.engine.bodies._source import check_entry, source_code
from flowos.model import Needs, Task, complex64, native_ports

_OTHERS = (str, list[str], complex, complex64)
"""What Julia has besides numbers and arrays of them."""


def julia(  # noqa: PLR0913 - options of a task, all by keyword
    source: str | os.PathLike[str],
    entry: str,
    *,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    name: str | None = None,
    needs: Needs | Sequence[Needs] | None = None,
    limit_seconds: float | None = None,
    retries: int = 0,
    requeue: bool = True,
    cache: bool | str | None = None,
) -> Task:
    """A task whose body is a function in Julia.

    source: a path, or the code itself, which has a line break, `{` or `) =`.
    entry: the function, which is called with the inputs in order, and returns the output, or a
    tuple of them, in order or by name.
    inputs, outputs: names and types, such as {"b": fo.array(fo.float64, ("n", 3))}: also fo.str_
    and list[str]. Each is the type of its name in Julia: Float32, Vector{String}. An array has the
    same [i, j] in Julia, and comes back by columns (order="F"). An output may be of another type
    if its values are the same (3.0 for an int64), and Float64 is rounded for a float32; else the
    task fails.
    Others: see `task`. name: the entry by default.
    It runs in a process of Julia for each worker, which is started at first use, has evaluated the
    source once, and ends with the worker, or in this process with its last slice. What it prints
    goes where a task in Python prints. If it ends, the task fails, and the next call starts
    another.
    Raises WiringError for a port that it cannot have, or a source that cannot be read.

    >>> numbers = fo.array(fo.float64, ("n",))
    >>> code = '''function spread(x)
    ...   maximum(x) - minimum(x)
    ... end'''
    >>> fo.julia(code, "spread", inputs={"x": numbers}, outputs={"y": fo.float64})
    <task spread(x: array(float64, ('n',))) -> y: float64>
    """
    title = name or str(entry)
    where = f"julia {title!r}"
    check_entry(where, entry, "entry", "!")
    ports = native_ports(where, inputs, outputs, DTYPES, _OTHERS)
    code = source_code(where, source, "julia", ())
    body = JuliaFunction(code, entry, ports)
    return native_task(title, ports, body, "julia", (needs, limit_seconds, retries, requeue, cache))


def julia_download() -> str:
    """Where one gets what bodies in Julia need and that is not installed here; "" if nothing."""
    return "" if JULIA.path else DOWNLOADS
