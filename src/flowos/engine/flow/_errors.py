"""Errors in words; calls by keyword. Standard library only: each worker is sent this file."""

import types
from collections.abc import Callable, Sequence
from typing import Any


def by_keyword(fun: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The function for values by position alone; the last of them are those of the names."""
    count = len(names)

    def call(*values: object) -> Any:
        return fun(*values[:-count], **dict(zip(names, values[-count:])))  # noqa: B905 - as many

    return call if names else fun


def trace_of_task(error: BaseException) -> types.TracebackType | None:
    """From the task's own first frame on, without those of whatever called it."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    if trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    return trace


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
