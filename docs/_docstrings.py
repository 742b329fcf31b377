"""Docstrings as they are written here, to what Sphinx reads.

A paragraph of lines `name: what it is`, with further ones indented, becomes a list; code in single
backticks is code; a name that ends with an underscore is no link. Examples stay as they are.
"""

import re
from collections.abc import Sequence
from itertools import groupby

_ITEM = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


def converted(lines: Sequence[str]) -> list[str]:
    """The same lines as reStructuredText."""
    paragraphs = groupby(lines, lambda line: not line.strip())
    return [line for _, each in paragraphs for line in _paragraph([*each])]


def _paragraph(lines: Sequence[str]) -> list[str]:
    return [*lines] if lines[0].startswith(">>> ") else [*map(_inline, _listed(lines))]


def _listed(lines: Sequence[str]) -> Sequence[str]:
    is_list = _ITEM.match(lines[0]) and all(_ITEM.match(x) or x.startswith(" ") for x in lines)
    return [*map(_item, lines)] if is_list else lines


def _item(line: str) -> str:
    found = _ITEM.match(line)
    return f"- `{found[1]}`: {found[2]}" if found else f"  {line.strip()}"


def _inline(line: str) -> str:
    if line.startswith("    ") or "``" in line:
        return line
    parts = line.split("`")
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"(\w)_(?=\W|$)", r"\1\\_", parts[at]).replace("*", "\\*")
    return "``".join(parts) if len(parts) % 2 else line.replace("`", "\\`")
