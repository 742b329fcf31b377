"""Defines tasks with bodies in R."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from flowos.engine.bodies._native_task import native_task
from flowos.engine.bodies._r_function import PACKAGE, R, RFunction
from flowos.engine.bodies._source import check_entry, source_code
from flowos.model import (
    NATIVE_DTYPES,
    Needs,
    Task,
    native_ports,
)

_OTHERS = (str, list[str], complex)
"""What R has besides numbers and arrays of them."""


def r(  # noqa: PLR0913 - options of a task, all by keyword
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
    """A task whose body is a function in R.

    source: a path, or the code itself, which has a line break, `{`, `<-` or `function(`.
    entry: the function, which is called with the inputs in order, and returns the output, or a list
    of them, by name or in order.
    inputs, outputs: names and types, such as {"b": fo.array(fo.float64, ("n", 3))}: also fo.str_
    and list[str]. An array has the same [i, j] in R, and comes back by columns (order="F").
    int8 to int32, uint8 and uint16 are integers in R; uint32, int64, uint64, float32 and float64
    doubles. A value that would be another one on the way is refused: an int64 beyond 2^53, an
    int32 that is NA in R, an NA or a fraction where the output is an integer. NA_real_ is NaN.
    Others: see `task`. name: the entry by default.
    It runs in a process of R for each worker, which is started at first use, has evaluated the
    source once, and ends with the worker, or in this process with its last slice. What it prints
    goes where a task in Python prints. If it ends, the task fails, and the next call starts
    another.
    Raises WiringError for a port that it cannot have, or a source that cannot be read.

    >>> numbers = fo.array(fo.float64, ("n",))
    >>> code = '''spread <- function(x) {
    ...   sd(x)
    ... }'''
    >>> fo.r(code, "spread", inputs={"x": numbers}, outputs={"y": fo.float64})
    <task spread(x: array(float64, ('n',))) -> y: float64>
    """
    title = name or str(entry)
    where = f"r {title!r}"
    check_entry(where, entry, "entry", ".")
    ports = native_ports(where, inputs, outputs, NATIVE_DTYPES, _OTHERS)
    code = source_code(where, source, "r", ())
    body = RFunction(code, entry, ports)
    return native_task(title, ports, body, "r", (needs, limit_seconds, retries, requeue, cache))


def r_package() -> str:
    """Debian's package that bodies in R need and that is not installed here; "" if none."""
    return "" if R.path else PACKAGE
