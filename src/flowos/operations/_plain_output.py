"""Converts a flow's outputs to JSON values."""

import json
from collections.abc import Iterable
from enum import Enum
from typing import Any

from flowos.operations._whole_numbers import WholeNumber, digits, is_long


def plain_output(value: object) -> Any:
    """Arrays and sets become lists, objects of known fields dicts, files paths, values without a
    JSON type text; numbers stay. A dict with two keys of the same text becomes [key, value] pairs.
    """
    try:
        return _plain(value)
    except RecursionError:  # it contains itself
        return _brief(value)


def field_names(value: object) -> Iterable[str] | None:
    """Of a dataclass or a named tuple; None of anything else."""
    kind = type(value)
    return getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", None))


def _brief(value: object) -> str:
    try:
        return str(value)
    except RecursionError:
        return f"({type(value).__name__}, nested too deeply to be shown)"


def _plain(value: Any) -> Any:
    if is_long(value):
        return WholeNumber(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict):
        return _by_key(value)
    if (fields := field_names(value)) is not None:
        return {name: _plain(getattr(value, name, None)) for name in fields}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.name
    if hasattr(value, "tolist"):
        listed = value.tolist()
        return str(value) if type(listed) is type(value) else _plain(listed)
    return str(value)


def _by_key(value: dict[Any, Any]) -> dict[str, Any] | list[list[Any]]:
    found = {_key(name): _plain(each) for name, each in value.items()}
    if len(found) == len(value):
        return found
    return [[_plain(name), _plain(each)] for name, each in value.items()]


def _key(name: object) -> str:
    if is_long(name):
        return digits(name)  # type: ignore[arg-type]
    plain = name is None or isinstance(name, (bool, int, float))
    return json.dumps(name) if plain else str(name)
