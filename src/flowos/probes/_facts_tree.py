"""Reads the collector's output without trusting it: invalid values are absent, never an error."""

import re
from collections.abc import Iterator, Mapping

from flowos._dataclasses import dataclass

MAX_CPUS = 1 << 16
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Tree:
    """Files of the kernel by path. An absent file and an unreadable value are None or ()."""

    files: Mapping[str, str]

    def text(self, path: str) -> str:
        return self.files.get(path, "").strip()

    def number(self, path: str) -> int | None:
        return number(self.text(path))

    def cpus(self, path: str) -> tuple[int, ...]:
        return cpu_list(self.text(path))

    def matching(self, pattern: str) -> Iterator[tuple[re.Match[str], str]]:
        """(match, text) of each path that fully matches the pattern, sorted by path."""
        compiled = re.compile(pattern)
        for path in sorted(self.files):
            if match := compiled.fullmatch(path):
                yield match, self.files[path].strip()


def number(text: str) -> int | None:
    """A decimal integer of at most 18 digits."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def cpu_list(text: str) -> tuple[int, ...]:
    """The kernel's list format: "0-3,8" is 0, 1, 2, 3, 8."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:-([0-9]{1,6}))?\s*", part)
        if match:
            first, last = int(match[1]), int(match[2] or match[1])
            found.update(range(first, min(last, MAX_CPUS) + 1))
    return tuple(sorted(found))


def size_bytes(text: str) -> int | None:
    """Sysfs sizes of caches: "32768K", "32M"."""
    match = re.fullmatch(r"([0-9]{1,12})([KMG]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else None


def kilobytes(text: str, name: str) -> int | None:
    """The bytes of a line such as "MemTotal:  24684092 kB"."""
    match = re.search(rf"{name}:\s*([0-9]{{1,15}}) kB", text)
    return int(match[1]) * 1024 if match else None


def texts(raw: object) -> dict[str, str]:
    """The text values of an object; other values are left out."""
    if not isinstance(raw, Mapping):
        return {}
    return {str(name): text for name, text in raw.items() if isinstance(text, str)}


def entries(raw: object) -> tuple[dict[str, object], ...]:
    """The objects of a list; other values are left out."""
    if not isinstance(raw, list):
        return ()
    return tuple({str(k): v for k, v in each.items()} for each in raw if isinstance(each, Mapping))


def word(entry: Mapping[str, object], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def renumbered(keys: Mapping[int, object]) -> dict[int, int]:
    """Number equal keys equally from 0, in the order of the mapping's own keys."""
    order = {key: place for place, key in enumerate(dict.fromkeys(keys[n] for n in sorted(keys)))}
    return {n: order[key] for n, key in keys.items()}
