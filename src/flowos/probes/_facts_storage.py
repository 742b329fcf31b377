"""The kind and free space of the storage to be measured."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from flowos.model import FileSystemFacts


def storage_of(raw: object, mounts: str) -> FileSystemFacts:
    """raw: the collector's "storage". mounts: /proc/self/mountinfo, in the order of mounting."""
    storage = raw if isinstance(raw, Mapping) else {}
    folder, free = storage.get("folder"), storage.get("free_bytes")
    return FileSystemFacts(
        file_system=_file_system(folder, mounts) if isinstance(folder, str) else "",
        free_bytes=free if type(free) is int else None,
    )


def _file_system(folder: str, mounts: str) -> str:
    """The type of the folder's mount; of several mounts at one path the last hides the others."""
    path = PurePath(folder)
    above = [each for each in _mounted(mounts) if path.is_relative_to(each[0])]
    deepest = max((len(at.parts) for at, _ in above), default=None)
    return next((kind for at, kind in reversed(above) if len(at.parts) == deepest), "")


def _mounted(mounts: str) -> Iterator[tuple[PurePath, str]]:
    """(where, type) by proc(5): the fifth field with octal escapes, and the first after a dash."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words, kind = before.split(), after.split()
        if len(words) >= 5 and kind:
            yield PurePath(re.sub(r"\\([0-7]{3})", _escaped, words[4])), kind[0]


def _escaped(octal: re.Match[str]) -> str:
    return chr(int(octal[1], 8))
