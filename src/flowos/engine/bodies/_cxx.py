"""Defines tasks with bodies in C, C++ and Fortran."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from flowos._native import native_call_arguments
from flowos.engine.bodies._native_function import NativeFunction
from flowos.model import (
    NativeCode,
    NativePorts,
    Needs,
    SourceCode,
    Task,
    WiringError,
    brief_repr,
    counted,
    is_source_text,
    language_of,
    native_ports,
    needs_of,
    quoted_includes,
)

_LANGUAGES = ("c", "c++", "fortran")
_MACHINES = ("x86_64", "aarch64")


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
    """
    title = name or str(entry)
    where = f"cxx {title!r}"
    _check_entry(where, entry)
    ports = native_ports(where, inputs, outputs)
    _check_count(where, ports)
    code = _source(where, source, language, flags)
    function = NativeFunction(code, entry, ports)
    return Task(
        name=title,
        inputs=ports.inputs,
        outputs=ports.outputs,
        body=NativeCode(function, limit_seconds=limit_seconds),
        needs=needs_of(title, needs),
        retries=retries,
        requeue=requeue,
        cache=cache,
    )


def _check_entry(where: str, entry: object) -> None:
    if not isinstance(entry, str) or not entry.isidentifier():
        raise WiringError(f"{where}: entry={brief_repr(entry)}; expected the name of a function")


def _check_count(where: str, ports: NativePorts) -> None:
    count = len(ports.inputs) + len(ports.lengths) + len(ports.outputs)
    if count > native_call_arguments:
        raise WiringError(
            f"{where}: {count} arguments, at most {native_call_arguments} can be passed"
        )
    if platform.machine() not in _MACHINES:
        raise WiringError(
            f"{where}: functions are called on {counted(_MACHINES)}, this is {platform.machine()}"
        )


def _source(where: str, source: object, language: object, flags: object) -> SourceCode:
    if isinstance(flags, str) or not isinstance(flags, Sequence):
        raise WiringError(f"{where}: flags={brief_repr(flags)}; expected a list of words")
    if language is not None and language not in _LANGUAGES:
        raise WiringError(
            f"{where}: language={brief_repr(language)}; expected {counted(_LANGUAGES)}"
        )
    text, path = _read(where, source)
    found = language or (language_of(path) if path else "c++")
    if found is None:
        raise WiringError(
            f"{where}: the suffix of {path} says no language; give language='c++' or another"
        )
    headers = tuple(_headers(text, Path(path).parent, set())) if path else ()
    return SourceCode(
        text=text,
        path=path,
        language=found,  # type: ignore[arg-type]
        flags=tuple(map(str, flags)),
        headers=headers,
    )


def _read(where: str, source: object) -> tuple[str, str]:
    """The code, and the path of its file; "" for code."""
    if isinstance(source, str) and is_source_text(source):
        return source, ""
    if not isinstance(source, (str, os.PathLike)):
        raise WiringError(f"{where}: source={brief_repr(source)}; expected a path or code")
    path = Path(source).absolute()
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise WiringError(f"{where}: cannot read {path} ({why})") from error


def _headers(text: str, folder: Path, seen: set[Path]) -> Iterator[tuple[str, str]]:
    """(name, digest) of the files that code includes by quotes, and those that they include."""
    for name in quoted_includes(text):
        file = folder / name
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        content = file.read_bytes()
        yield name, sha256(content).hexdigest()
        yield from _headers(content.decode(errors="replace"), file.parent, seen)
