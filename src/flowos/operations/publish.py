"""`fo.publish`: writes an output of a flow to a path that others read, whole or not at all."""

import hashlib
import io
import os
import secrets
import shutil
from contextlib import suppress
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from flowos.engine import NoDigest, copy_file, file_digest, masked_words
from flowos.model import (
    Array,
    Complex,
    DictOf,
    Floating,
    Integer,
    ListOf,
    PortType,
    StoreError,
    TupleOf,
    ValueRefused,
    bool_,
    brief_repr,
    bytes_,
    str_,
    to_json,
)
from flowos.operations._files import check_folder, path_complaint
from flowos.operations._plain_output import field_names
from flowos.operations._whole_numbers import dumped

_NUMBERS, _NESTED = (".npy", ".json"), (".json",)
_MAX_OF_A_NAME = 200


def publish(value: object, path: str | PathLike[str]) -> bool:
    """Write an output to a path; whether that was needed: not if the same is there.

    value: a file or folder (a `Path`) is copied with its permissions; a text and bytes are written
    as they are; a NumPy array or a number to NAME.npy; to NAME.json any of text, numbers, lists,
    dictionaries, arrays, and of dataclasses and named tuples by their fields and enums by their
    names, unless they are numbers or texts, where null is a number that is infinite or none.
    Folders are made where they lack. The file gets its name once it is complete, so that a reader
    never sees half of it. Raises ValueRefused for a value that cannot be written to a file of this
    name, StoreError if there is no way to write there.

    >>> fo.publish({"mean": 0.5, "counts": np.array([1, 2])}, "out/result.json")
    True
    >>> fo.publish({"mean": 0.5, "counts": np.array([1, 2])}, "out/result.json")
    False
    """
    if complaint := path_complaint(path):
        raise ValueRefused(f"publish: {complaint}")
    given = Path(value) if isinstance(value, PathLike) else _content(value, Path(path))
    if isinstance(given, Path) and not given.exists():
        raise ValueRefused(f"publish: expected a file, nothing is at {given}")
    target = Path(os.path.realpath(path))  # a link stays, and leads to the new file
    if isinstance(given, Path):
        _check_apart(given, target)
    return _put(target, given)


def _check_apart(source: Path, target: Path) -> None:
    real = Path(os.path.realpath(source))
    if real.is_dir() and real in target.parents:
        raise ValueRefused(
            f"publish: {target} is in the folder {real}, which would be copied into itself"
        )


def place_complaint(kind: PortType, path: Path) -> str:
    """Why no value of this type can be published there, "" if one may be; leaves no file."""
    complaint = path_complaint(path) or _name_complaint(kind, path)
    if complaint:
        return complaint
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir() and (kind in (str_, bytes_) or _suffixes(kind)):
            return "a folder is there, and the output is a file"
        if target.exists() and not target.is_dir() and not target.is_file():
            return "it is no regular file"
        check_folder(target.parent)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _name_complaint(kind: PortType, path: Path) -> str:
    if kind == bytes_:
        return "bytes have no form in JSON: use another name" if path.suffix == ".json" else ""
    suffixes = _suffixes(kind)
    if not suffixes or path.suffix in suffixes:
        return ""
    return f"it is {kind}: use a name that ends in {' or '.join(suffixes)}"


def _suffixes(kind: PortType) -> tuple[str, ...]:
    """None for what a name with any may be of."""
    if isinstance(kind, (ListOf, TupleOf, DictOf)):
        return _NESTED
    if isinstance(kind, Complex) or (isinstance(kind, Array) and "complex" in (kind.dtype or "")):
        return (".npy",)
    numbers = kind == bool_ or isinstance(kind, (Integer, Floating, Array))
    return _NUMBERS if numbers else ()


def _put(target: Path, given: Path | bytes) -> bool:
    aside = _aside(target)
    try:
        if isinstance(given, Path):
            _check_files(given)
        if _is_there(target, given):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(aside, given)
        _replace(target, aside)
    except (OSError, NoDigest) as error:
        why = getattr(error, "strerror", None) or error
        raise StoreError(f"publish: {target} cannot be written: {why}") from error
    finally:
        _remove(aside)
    return True


def _check_files(source: Path) -> None:
    """Raises ValueRefused for a pipe or a device, whose content may have no end."""
    below = (Path(at, name) for at, _, names in os.walk(source) for name in names)
    for each in (source, *(path for path in below if not path.is_symlink())):
        if not each.is_file() and not each.is_dir():
            raise ValueRefused(f"publish: expected files and folders, {each} is neither")


def _aside(target: Path) -> Path:
    """Next to it; its name may be as long as one can be."""
    start = os.fsdecode(os.fsencode(target.name)[:_MAX_OF_A_NAME])
    return target.with_name(f".{start}.{secrets.token_hex(4)}")


def _is_there(target: Path, given: Path | bytes) -> bool:
    if not target.exists():
        return False
    if target.is_dir():
        if isinstance(given, Path) and given.is_dir():
            return file_digest(target) == file_digest(given)
        raise IsADirectoryError(0, "a folder is there, and the output is a file")
    there = file_digest(target)  # refuses a device, which a rename would replace
    if isinstance(given, bytes):
        return there == hashlib.sha256(given).digest()
    return not given.is_dir() and there == file_digest(given)


def _write(aside: Path, given: Path | bytes) -> None:
    if isinstance(given, Path):
        copy_file(given, aside)
        return
    with aside.open("xb") as file:
        file.write(given)


def _replace(target: Path, new: Path) -> None:
    """A folder cannot be replaced at once: the old one steps aside first."""
    if not target.is_dir():
        new.replace(target)
        return
    old = _aside(target)
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _content(value: Any, target: Path) -> bytes:
    if target.suffix == ".json":
        return _json(value, target)
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _utf8(value, target)
    numbers = _is_array(value) or isinstance(value, (int, float, complex))
    if numbers and target.suffix == ".npy":
        return _npy(value, target)
    raise ValueRefused(
        f"publish: {brief_repr(value)} cannot be written to {target.name}: "
        f"{_remedy(value, numbers=numbers)}"
    )


def _remedy(value: Any, *, numbers: bool) -> str:
    try:
        _plain(value)
    except (TypeError, RecursionError):
        if not numbers:
            return "no file has a form for it: make it a text, or bytes"
        return "use a name that ends in .npy"
    return f"use a name that ends in {' or '.join(_NUMBERS if numbers else _NESTED)}"


def _json(value: object, target: Path) -> bytes:
    try:
        text = dumped(to_json(_plain(value)), ensure_ascii=False)
    except TypeError as error:
        raise ValueRefused(f"publish: {target.name}: {error}") from error
    except RecursionError as error:
        raise ValueRefused(
            f"publish: {target.name}: it is nested too deeply, or contains itself"
        ) from error
    return _utf8(f"{text}\n", target)


def _utf8(text: str, target: Path) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueRefused(
            f"publish: {target.name}: a text that is not Unicode: {error}"
        ) from error


def _plain(value: Any) -> Any:
    """Raises TypeError for what JSON has no form for: its text would say nothing."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Enum):
        return value.name
    if (fields := field_names(value)) is not None:
        return {name: _plain(getattr(value, name, None)) for name in fields}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if _is_array(value) and value.dtype.kind in "biufU" and value.dtype.char != "g":
        return _plain(value.tolist())
    raise TypeError(f"{brief_repr(value)} has no form in JSON")


def _is_array(value: object) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "__array__")


def _npy(value: Any, target: Path) -> bytes:
    import numpy as np

    content = io.BytesIO()
    if words := masked_words(value):
        raise ValueRefused(f"publish: {target.name}: {words}")
    try:
        np.save(content, value, allow_pickle=False)
    except ValueError as error:
        raise ValueRefused(
            f"publish: {brief_repr(value)} cannot be written to {target.name}: {error}"
        ) from error
    return content.getvalue()
