"""Defines tasks with bodies in C, C++ and Fortran."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from flowos._native import native_call_arguments
from flowos.engine.bodies._native_function import NativeFunction
from flowos.engine.bodies._native_task import native_task
from flowos.engine.bodies._source import check_entry, source_code
from flowos.model import (
    Needs,
    Task,
    WiringError,
    alternatives,
    brief_repr,
    native_ports,
)

_LANGUAGES = ("c", "c++", "fortran")


def cxx(  # noqa: PLR0913 - options of a task, all by keyword
    source: str | os.PathLike[str],
    entry: str,
    *,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    flags: Sequence[str] = (),
    language: str | None = None,
    name: str | None = None,
    needs: Needs | Sequence[Needs] | None = None,
    limit_seconds: float | None = None,
    retries: int = 0,
    requeue: bool = True,
    cache: bool | str | None = None,
) -> Task:
    """A task whose body is a function in C, C++ or Fortran, by the C ABI.

    source: a path, or the code itself. entry: the function, in C++ extern "C", in Fortran bind(c).
    It is called with the inputs in order (int64 as int64_t, float64 as double and so on, an array
    as const T *), an int64_t for each named extent that is no input itself, by first appearance,
    and a T * for each output, also a scalar. It returns an int; other than 0 the task fails.
    inputs, outputs: names and types, such as {"b": fo.array(fo.float32, ("n", 3))}. Arrays come
    C-contiguous, others are copied; outputs are new ones. An extent that only outputs have is an
    input of fo.int64 by that name.
    flags: after -O3 -march=native (and -std=c++20). language: "c", "c++" or "fortran"; without it,
    by the suffix of the path, and c++ for code. Others: see `task`. name: the entry by default.
    It is compiled where it runs, at first use, and kept in $XDG_CACHE_HOME/flowos/bodies. Other
    threads run meanwhile. In a slice with workers="process" a crash ends a worker alone.
    Raises WiringError for a port that it cannot have, or a source that cannot be read.

    >>> vector = fo.array(fo.float64, ("n",))
    >>> code = '''extern "C" int twice(const double* x, long n, double* y) {
    ...   for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
    ...   return 0;
    ... }'''
    >>> fo.cxx(code, "twice", inputs={"x": vector}, outputs={"y": vector})
    <task twice(x: array(float64, ('n',))) -> y: array(float64, ('n',))>
    """
    title = name or str(entry)
    where = f"cxx {title!r}"
    check_entry(where, entry, "entry")
    ports = native_ports(where, inputs, outputs)
    check_callable(where, len(ports.inputs) + len(ports.lengths) + len(ports.outputs))
    if language not in (None, *_LANGUAGES):
        raise WiringError(
            f"{where}: language={brief_repr(language)}; expected {alternatives(_LANGUAGES)}"
        )
    code = source_code(where, source, language, flags)
    body = NativeFunction(code, entry, ports)
    return native_task(title, ports, body, "cpu", (needs, limit_seconds, retries, requeue, cache))


def check_callable(where: str, count: int) -> None:
    """Raises WiringError if a function cannot be called with so many arguments."""
    if count > native_call_arguments:
        raise WiringError(
            f"{where}: {count} arguments, at most {native_call_arguments} can be passed"
        )
