"""Dockerfiles: what can be determined before the build.

Source: docs.docker.com/reference/dockerfile. Variables, patterns and here-documents are left to
the builder.
"""

import re
from collections.abc import Iterator
from posixpath import normpath

_CONTINUED = re.compile(r"\\[ \t]*\n(?:[ \t]*\n)*")
_COMMENT = re.compile(r"^[ \t]*#[^\n]*\n?", re.MULTILINE)
_UNCERTAIN = re.compile(r"[$*?\[\\\"'<]|://|^git@")


def bases(text: str) -> tuple[str, ...]:
    """Images named by FROM, without `scratch`, earlier stages and variables.

    Raises ValueError if there is no FROM.
    """
    stages, named = set(), []
    froms = [words for words in _instructions(text, "FROM") if words]
    if not froms:
        raise ValueError("no FROM in it: say what the image begins with, such as FROM debian:12")
    for name, *rest in froms:
        if name not in stages and name != "scratch" and "$" not in name:
            named.append(name)
        if len(rest) == 2 and rest[0].upper() == "AS":
            stages.add(rest[1])
    return tuple(dict.fromkeys(named))


def copied(text: str) -> tuple[str, ...]:
    """Paths below the context that a build certainly copies from there."""
    if "<<" in text or len(list(_instructions(text, "FROM"))) != 1:
        return ()
    paths = []
    for instruction in ("COPY", "ADD"):
        for words in _instructions(text, instruction, unless="--from"):
            paths += [word for word in words[:-1] if not _UNCERTAIN.search(word)]
    return tuple(normpath("/" + path).lstrip("/") for path in paths)


def _instructions(text: str, instruction: str, unless: str = "--") -> Iterator[list[str]]:
    """Words of each such instruction, without its options."""
    lines = _CONTINUED.sub(" ", _COMMENT.sub("", text)).splitlines()
    for first, *words in filter(None, map(str.split, lines)):
        has_option = unless != "--" and any(word.startswith(unless) for word in words)
        if first.upper() == instruction and not has_option:
            yield [word for word in words if not word.startswith("--")]
