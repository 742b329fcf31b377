"""Reads what a person gave as the source of a body."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from flowos.model import (
    SourceCode,
    WiringError,
    brief_repr,
    included_names,
    is_source_text,
    language_of,
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
    names: Callable[[str], list[str]] = included_names,
    root: Path | None = None,
) -> Iterator[tuple[str, str]]:
    """(name, digest) of the files that code reads, and those that they include.

    names: of what it may read, found in its text; by default what it includes.
    seen: files by one path each, whatever way led to them, and whether as code.
    root: the folder of the source, in which compilers look too; by default `folder`.
    """
    root = root or folder
    included = {*included_names(text)}
    for name in names(text):
        for found in _found(name, dict.fromkeys((folder, root))):
            if (found, name in included) in seen:
                continue
            seen.add((found, name in included))
            try:
                digest, inner = _read(found, is_code=name in included)
            except OSError:
                continue
            yield name, digest
            yield from header_digests(inner, found.parent, seen, names, root)


def _found(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """The files of this name; which one a compiler takes is its own matter."""
    for folder in folders:
        with suppress(OSError, ValueError):  # some words are no names, or too long for one
            found = _file(folder / name)
            if found.is_file():
                yield found


def _read(file: Path, *, is_code: bool) -> tuple[str, str]:
    """Its digest, and its text if it is code. Raises OSError."""
    with file.open("rb") as data:
        if not is_code:
            return file_digest(data, "sha256").hexdigest(), ""
        content = data.read()
    return sha256(content).hexdigest(), content.decode(errors="replace")


def _file(path: Path) -> Path:
    """A link keeps its name: a compiler looks for what it includes in the folder of the link."""
    return Path(os.path.realpath(path.parent), path.name)
