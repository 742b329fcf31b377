"""What a task's code is made of, part by part, so that a later program can say which one changed.

The key of a call is one digest (`_call_key`). Its parts are digested once for each code that a task
has, and lie next to the journal:

    PATH/tasks/CODE          JSON: for each part its digest, and what can be shown of it

They decide nothing: without them results are found all the same, and less is said.
"""

import json
import os
import tempfile
import types
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, cast

from flowos.engine.results._packages import package_of
from flowos.engine.results._value_digest import Digester

FORMAT = 1
"""Of the digests: those of another format are not compared."""
OWN = "its code"
_MAX_SHOWN = 1e20


class KeyPart(NamedTuple):
    """digest: of all that is in it. shown: the value itself, where it is short; else ""."""

    digest: str
    shown: str = ""


KeyParts = Mapping[str, KeyPart]
"""By name; within another one by both: "helper/WEIGHT"."""


class PartDigester(Digester):
    """Adds code, and notes the digest of each thing that it reads by name, at any depth.

    Its digests are not those of keys: each part has a hash of its own.
    """

    def __init__(self, *, lenient: bool = False) -> None:
        super().__init__(lenient=lenient)
        self.parts: dict[str, KeyPart] = {}
        self._path: tuple[str, ...] = ()

    def read(self, name: str, value: object, *, lenient: bool = False) -> None:
        outer, self._hash = self._hash, sha256()
        self._path = (*self._path, name)
        try:
            super().read(name, value, lenient=lenient)
            part = KeyPart(self.digest().hex()[:16], _shown(value))
            self.parts["/".join(self._path)] = part
        finally:
            self._path = self._path[:-1]
            self._hash = outer
        self.put(b"part", part.digest.encode())

    def _again(self, code: object) -> bool:
        """By its name: a number would be another one wherever something comes before it."""
        known = id(code) in self._code
        if known:
            self.put(b"again", str(getattr(code, "__qualname__", "")).encode())
        else:
            self._code[id(code)] = len(self._code), code
        return known


def part_of(value: object, shown: str = "") -> KeyPart:
    """Of a value that is no code."""
    whole = Digester()
    whole.add(value)
    return KeyPart(whole.digest().hex()[:16], shown)


def _shown(value: object) -> str:
    """A number, or the package that a name stands for and its version. No text: it may be a
    password."""
    if type(value) in (bool, int, float):
        return repr(value) if abs(cast("float", value)) < _MAX_SHOWN else ""
    of = "__name__" if isinstance(value, types.ModuleType) else "__module__"
    if isinstance(value, (types.ModuleType, types.FunctionType, type)):
        return package_of(getattr(value, of, None))
    return ""


def changes(old: KeyParts, new: KeyParts) -> tuple[str, ...]:
    """What differs: of parts within parts the innermost. A name that only one of them has is no
    change by itself: the code that reads it is another then."""
    differing = [
        name for name in new if name in old and old[name].digest != new[name].digest and name
    ]
    inner = [
        name for name in differing if not any(other.startswith(f"{name}/") for other in differing)
    ]
    return tuple(dict.fromkeys(_change(name, old[name], new[name]) for name in inner)) or (OWN,)


def _change(name: str, old: KeyPart, new: KeyPart) -> str:
    *around, last = name.split("/")
    where = f" in {around[-1]}" if around else ""
    words = {
        "code": f"the code of {around[-1]}" if around else OWN,
        "defaults": f"the defaults of {around[-1]}" if around else "its defaults",
        "imports": f"a module that it imports{where}",
        "values there": f"a value in a module that it imports{where}",
    }.get(last, f"{last}{where}")
    if old.shown and new.shown and old.shown != new.shown:
        return f"{words} (now {new.shown}, before {old.shown})"
    return words


def keep_parts(journal: Path, code: bytes, parts: KeyParts) -> None:
    """Written once for a code; where it cannot be, the reason will not be known."""
    folder = journal / "tasks"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        fd, new = tempfile.mkstemp(prefix=".new-", dir=folder)
        try:
            with os.fdopen(fd, "w") as file:
                json.dump({"format": FORMAT, "parts": parts}, file)
            Path(new).rename(folder / code.hex())
        finally:
            Path(new).unlink(missing_ok=True)


def codes_with_parts(journal: Path) -> set[bytes]:
    """By the names of their files."""
    with suppress(OSError, ValueError):
        names = [file.name for file in (journal / "tasks").iterdir()]
        return {bytes.fromhex(name) for name in names if name[0] != "."}
    return set()


def kept_parts(journal: Path, code: bytes) -> KeyParts:
    """None where they are not known: an older FlowOS kept the results, or they are damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        found = json.loads((journal / "tasks" / code.hex()).read_bytes())
        parts = found["parts"] if found["format"] == FORMAT else {}
        return {name: KeyPart(str(digest), str(shown)) for name, (digest, shown) in parts.items()}
    return {}


def keep_only_parts(journal: Path, codes: set[bytes]) -> None:
    """Remove those of other codes."""
    used = {code.hex() for code in codes}
    with suppress(OSError):
        for file in (journal / "tasks").iterdir():
            if file.name not in used:
                file.unlink(missing_ok=True)
