"""Errors in words; how a task's function is called. Each worker is sent this file."""

import types
from collections.abc import Callable, Sequence
from typing import Any

from flowos.model._extents import OUR_FRAMES, Extents, PortIncompatible, with_extents

Calling = tuple[Sequence[str], Extents]
"""Names of the inputs that are given by keyword; the extents that are checked."""


def as_called(fun: Callable[..., Any], calling: Calling) -> Callable[..., Any]:
    """The function for values by position alone, whose named extents are checked."""
    names, extents = calling
    return with_extents(by_keyword(fun, names), extents)


def by_keyword(fun: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The function for values by position alone; the last of them are those of the names."""
    if not names:
        return fun
    count = len(names)

    def call(*values: object) -> Any:
        return fun(*values[:-count], **dict(zip(names, values[-count:])))  # noqa: B905 - as many

    return call


def trace_of_task(error: BaseException) -> types.TracebackType | None:
    """From the task's own first frame on, without those of whatever called it."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    while trace is not None and _is_ours(trace.tb_frame.f_globals):
        trace = trace.tb_next
    return trace


def _is_ours(module: dict[str, Any]) -> bool:
    return module is globals() or OUR_FRAMES in module


def is_incompatible(error: BaseException) -> bool:
    """Whether a port refuses what a task was given or gave."""
    return isinstance(error, PortIncompatible)


def line(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except BaseException:  # its own text fails
        return type(error).__name__


def where(trace: types.TracebackType | None) -> str:
    """As " (FILE:LINE)": the innermost line in the file of the first frame, the task's function.

    Nothing where no Python was run, as by a function in C.
    """
    if trace is None:
        return ""
    file, number = trace.tb_frame.f_code.co_filename, trace.tb_lineno
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            number = trace.tb_lineno
        trace = trace.tb_next
    return f" ({file.rpartition('/')[2]}:{number})"
