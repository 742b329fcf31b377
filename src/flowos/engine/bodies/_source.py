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

_FOLDERS = ("-I", "-iquote", "-isystem", "-idirafter", "--include-path")


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
    words = tuple(map(str, flags))
    return SourceCode(
        text=text,
        path=path,
        language=found,
        flags=words,
        headers=(*_headers(text, path, found, words), *_digests(flag_files(words))),
    )


def _headers(
    text: str, path: str, language: str, flags: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """R looks for files in the folder that the program was started in."""
    folder = Path(path).parent if path else Path()
    here = (Path(),) if language == "r" else ()
    roots = (folder, *here, *map(Path, _after(flags, _FOLDERS)))
    return header_digests(text, folder, set(), roots=roots)


def flag_files(flags: Sequence[str]) -> list[str]:
    """The files among a compiler's flags: as they are, after @, = or a comma, and libraries."""
    words = [
        word
        for flag in flags
        for word in (flag, flag.removeprefix("@"), flag.rpartition("=")[2], flag.rpartition(",")[2])
    ]
    words += [
        str(Path(folder, library))
        for name in _after(flags, ("-l",))
        for folder in _after(flags, ("-L",))
        for library in (f"lib{name}.so", f"lib{name}.a", name.removeprefix(":"))
    ]
    return [word for word in dict.fromkeys(words) if is_file(Path(word))]


def _after(flags: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """What follows these options, in the same word or as the next one."""
    for flag, following in zip(flags, (*flags[1:], ""), strict=False):
        for option in options:
            if flag.startswith(option):
                yield (flag.removeprefix(option) or following).lstrip("=").strip(' "')


def _digests(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    for file in files:
        with suppress(OSError):
            yield file, _read(Path(file), is_code=False)[0]


def read_source(where: str, source: object, language: Any = None) -> tuple[str, str]:
    """The code, and the path of its file; "" for code."""
    if isinstance(source, str) and is_source_text(source, language):
        return source.replace("\r\n", "\n").replace("\r", "\n"), ""  # as in files
    if not isinstance(source, (str, os.PathLike)) or source == "":
        raise WiringError(f"{where}: source={brief_repr(source)}; expected a path or code")
    path = Path(source).absolute()
    try:
        return path.read_text(encoding="utf-8-sig"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8"
        raise WiringError(f"{where}: cannot read {path} ({why})") from error


def header_digests(
    text: str,
    folder: Path,
    seen: set[tuple[Path, bool]],
    names: Callable[[str], list[str]] = included_names,
    roots: Sequence[Path] = (),
) -> Iterator[tuple[str, str]]:
    """(name, digest) of the files that code reads, and those that they include.

    names: of what it may read, found in its text; by default what it includes.
    seen: files by one path each, whatever way led to them, and whether as code.
    roots: folders in which compilers look too; by default `folder`, that of the source.
    """
    roots = roots or (folder,)
    included = {*included_names(text)}
    for name in names(text):
        for found in _found(name, dict.fromkeys((folder, *roots))):
            if (found, name in included) in seen:
                continue
            seen.add((found, name in included))
            try:
                digest, inner = _read(found, is_code=name in included)
            except OSError:
                continue
            yield name, digest
            yield from header_digests(inner, found.parent, seen, names, roots)


def _found(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """The files of this name; which one a compiler takes is its own matter."""
    for folder in folders:
        if is_file(folder / name):
            yield _file(folder / name)


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # some words are no names, or too long for one
        return False


def _read(file: Path, *, is_code: bool) -> tuple[str, str]:
    """Its digest, and its text if it is code. Raises OSError if it cannot be read."""
    with file.open("rb") as data:
        if not is_code:
            return file_digest(data, "sha256").hexdigest(), ""
        content = data.read()
    return sha256(content).hexdigest(), content.decode(errors="replace")


def _file(path: Path) -> Path:
    """A link keeps its name: a compiler looks for what it includes in the folder of the link."""
    return Path(os.path.realpath(path.parent), path.name)
