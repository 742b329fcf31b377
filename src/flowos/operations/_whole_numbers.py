"""Integers of any length as text: Python refuses those of more digits than a process may have."""

import json
import secrets
from decimal import Decimal
from typing import Any

_SHORT_BITS = 2000
"""One of fewer is below every limit that Python can be given, 640 digits."""


class WholeNumber(int):
    """Shown whole, also within lists."""

    def __repr__(self) -> str:
        return digits(self)

    __str__ = __repr__


def is_long(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > _SHORT_BITS


def digits(number: int) -> str:
    return format(Decimal(int(number)), "f")


def dumped(value: object, *, ensure_ascii: bool = True) -> str:
    """As strict JSON, of plain values, with integers of any length."""
    token, found = secrets.token_hex(16), list[int]()
    marked = _marked(value, token, found)
    text = json.dumps(marked, ensure_ascii=ensure_ascii, indent=1, allow_nan=False)
    for place, number in enumerate(found):
        text = text.replace(f'"{token}-{place}"', digits(number), 1)
    return text


def _marked(value: Any, token: str, found: list[int]) -> Any:
    """With a text for each long integer."""
    if is_long(value):
        found.append(value)
        return f"{token}-{len(found) - 1}"
    if isinstance(value, dict):
        return {name: _marked(each, token, found) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(each, token, found) for each in value]
    return value
