"""Builds HTML and SVG from calls, so that external text can never become markup."""

import re
from html import escape

_VOID = {"meta", "link", "br", "hr", "img", "input"}
_END_MAY_BE_LEFT_OUT = {"td", "th", "tr", "li", "dt", "dd"}
_NONCHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_UNFIT = re.compile(
    rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff{_NONCHARACTERS}]"
)
"""Control characters, surrogates, noncharacters, and characters that change text direction."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | float | None) -> Markup:
    """One element. Plain strings are escaped; attributes that are None are left out.

    `class_` becomes the attribute `class`, `stroke_width` becomes `stroke-width`.
    """
    words = "".join(
        f' {key.strip("_").replace("_", "-")}="{clean(str(_short(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{words}>")
    end = "" if name in _END_MAY_BE_LEFT_OUT else f"</{name}>"
    return Markup(f"<{name}{words}>{join(*children)}{end}")


def join(*children: str | None) -> Markup:
    """Concatenate children; plain strings are escaped, None is left out."""
    return Markup(
        "".join(c if isinstance(c, Markup) else clean(c) for c in children if c is not None)
    )


def clean(text: str) -> str:
    """Escaped text, with characters that HTML forbids replaced by U+FFFD."""
    return escape(_UNFIT.sub("\ufffd", text))


def _short(value: str | float) -> str | float:
    """Coordinates to a tenth of a pixel."""
    if not isinstance(value, float):
        return value
    return f"{value:.1f}".removesuffix(".0")
