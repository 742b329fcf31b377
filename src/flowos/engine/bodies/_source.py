"""Reads what a person gave as the source of a body."""

import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from flowos.model import (
    SourceCode,
    WiringError,
    brief_repr,
    is_source_text,
    language_of,
    quoted_includes,
)


def check_entry(where: str, entry: object, noun: str, also: str = "") -> None:
    """Raises WiringError if it is not the name of a function. also: a character of names."""
    if not isinstance(entry, str) or not entry.replace(also or "_", "_").isidentifier():
        raise WiringError(f"{where}: {noun}={brief_repr(entry)}; expected the name of a function")


def source_code(where: str, source: object, language: Any, flags: object) -> SourceCode:
    """In this language; for None in that of the path's suffix, or in C++ if it is no path.

    Raises WiringError if it cannot be read, or the suffix says nothing.
    """
    if isinstance(flags, str) or not isinstance(flags, Sequence):
        raise WiringError(f"{where}: flags={brief_repr(flags)}; expected a list of words")
    text, path = read_source(where, source, language)
    found = language or (language_of(path) if path else "c++")
    if found is None:
        raise WiringError(
            f"{where}: the suffix of {path} says no language; give language='c++' or another"
        )
    headers = tuple(header_digests(text, Path(path).parent, set())) if path else ()
    return SourceCode(
        text=text, path=path, language=found, flags=tuple(map(str, flags)), headers=headers
    )


def read_source(where: str, source: object, language: Any = None) -> tuple[str, str]:
    """The code, and the path of its file; "" for code."""
    if isinstance(source, str) and is_source_text(source, language):
        return source.replace("\r\n", "\n").replace("\r", "\n"), ""  # as in files
    if not isinstance(source, (str, os.PathLike)):
        raise WiringError(f"{where}: source={brief_repr(source)}; expected a path or code")
    path = Path(source).absolute()
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise WiringError(f"{where}: cannot read {path} ({why})") from error


def header_digests(
    text: str,
    folder: Path,
    seen: set[tuple[Path, bool]],
    names: Callable[[str], list[str]] = quoted_includes,
) -> Iterator[tuple[str, str]]:
    """(name, digest) of the files that code reads, and those that they include.

    names: of what it may read, found in its text; by default what it includes by quotes.
    seen: files by one path each, whatever way led to them, and whether as code.
    """
    included = {*quoted_includes(text)}
    for name in names(text):
        try:
            found = _file(folder / name)
            if not found.is_file() or (found, name in included) in seen:
                continue
            seen.add((found, name in included))
            if name not in included:
                with found.open("rb") as data:
                    yield name, file_digest(data, "sha256").hexdigest()
                continue
            content = found.read_bytes()
        except (OSError, ValueError):  # some words are no names, or too long for one
            continue
        yield name, sha256(content).hexdigest()
        yield from header_digests(content.decode(errors="replace"), found.parent, seen, names)


def _file(path: Path) -> Path:
    """A link keeps its name: a compiler looks for what it includes in the folder of the link."""
    return Path(os.path.realpath(path.parent), path.name)
