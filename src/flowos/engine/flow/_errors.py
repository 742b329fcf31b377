"""Errors in words. Standard library only: each worker is sent this file."""

import types


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
