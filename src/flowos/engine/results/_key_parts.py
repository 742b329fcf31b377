"""What a task's code is made of, part by part, so that a later program can say which one changed.

The key of a call is one digest (`_call_key`). Its parts are digested once for each code that a task
has, and lie next to the journal:

    PATH/tasks/CODE          JSON: for each part its digest, and what can be shown of it

Parts are flat: each function or class that the code reaches is one, of its own code alone, and each
value that it reads by name is one. They decide nothing: without them results are found all the
same, and less is said.
"""

import json
import os
import re
import stat
import tempfile
import types
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import cast

from flowos.engine.results._packages import package_of
from flowos.engine.results._value_digest import Digester, NoDigest

FORMAT = 2
"""Of the digests: those of another format are not compared."""
_MAX_SHOWN = 1e20
_MAX_BYTES = 1 << 24
_SECRET = re.compile("pin|token|key|secret|passw", re.IGNORECASE)
_VERSION = re.compile(r"[\w.+!~ -]+")
_FILE = re.compile(r"[0-9a-f]{16}|\.new-.*")
_IN = " in "

KeyParts = Mapping[str, Mapping[str, str]]
"""By what a part is called, which no identifier is: its digest, with the value where that can be
shown. Several where several have the name, as closures of one function. What the task itself reads
is "NAME in "."""


def part_of(value: object, shown: str = "") -> dict[str, str]:
    """Of a value that is no code."""
    whole = Digester()
    whole.add(value)
    return {_short(whole): shown}


def code_parts(funs: Iterable[object]) -> dict[str, dict[str, str]]:
    """Of all code that functions of one task reach."""
    walk = _Walk(funs)
    for code in walk.reached:  # which grows
        walk.visit(code)
    return walk.parts


class _Walk(Digester):
    """Digests code piece by piece: in each one other code counts by its name, and is reached."""

    def __init__(self, funs: Iterable[object]) -> None:
        super().__init__()
        self.parts: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.reached = [*funs]
        self._tasks = frozenset(map(id, self.reached))
        self._seen = set(self._tasks)
        self._at: object = None
        self._members: list[tuple[str, object]] = []
        self._digests: dict[int, tuple[object, str]] = {}

    def visit(self, code: object) -> None:
        self._at, self._members, self._hash = code, [], sha256()
        self.add(code)
        self._at, members = None, self._members
        reader = "" if id(code) in self._tasks else _name(code)
        its, of = ("the", f" of {reader}") if reader else ("its", "")
        if isinstance(code, types.FunctionType) and members:  # by place: names may be the same
            (_, instructions), (_, defaults), *members = members
            self._note(f"{its} code{of}", instructions)
            self._note(f"{its} defaults{of}", defaults)
            if members and members[-1][0] == "values there":
                *members, (_, imports), (_, values) = members
                self._note(f"a module that it imports{_IN}{reader}", imports)
                self._note(f"a value in a module that it imports{_IN}{reader}", values)
        else:
            self.parts[f"{its} code{of}"][_short(self)] = ""
        for name, value in members:
            self._note(f"{name}{_IN}{reader}", value)

    def copy(self) -> "_Walk":
        """All but the hash is shared, as it is of one walk."""
        new = _Walk.__new__(_Walk)
        vars(new).update(vars(self), _hash=self._hash.copy(), _around=dict(self._around))
        return new

    def read(self, name: str, value: object, *, lenient: bool = False) -> None:
        """By what code is visited."""
        del lenient  # what has no digest is no part
        self.put(b"name", name.encode())
        self._members.append((name, value))

    def _again(self, code: object) -> bool:
        if code is self._at:
            return False
        self.put(b"code", _name(code).encode())
        if id(code) not in self._seen:
            self._seen.add(id(code))
            self.reached.append(code)
        return True

    def _note(self, name: str, value: object) -> None:
        """A value is digested once, and held, as another one could have its number."""
        if id(value) not in self._digests:
            self._hash = sha256()
            try:
                self.add(value)
            except NoDigest:  # it is left out of the key of a task with a version
                return
            self._digests[id(value)] = value, _short(self)
        self.parts[name][self._digests[id(value)][1]] = _shown(name, value)


def _name(code: object) -> str:
    return str(getattr(code, "__qualname__", "")).rpartition("<locals>.")[2]


def _short(digester: Digester) -> str:
    return digester.digest().hex()[:16]


def _shown(name: str, value: object) -> str:
    """A number, or the package that a name stands for and its version. Nothing that may be a
    password: no text, and no number with such a name."""
    if type(value) in (bool, int, float):
        small = abs(cast("float", value)) < _MAX_SHOWN
        return repr(value) if small and not _SECRET.search(name.partition(_IN)[0]) else ""
    of = "__name__" if isinstance(value, types.ModuleType) else "__module__"
    if isinstance(value, (types.ModuleType, types.FunctionType, type)):
        version = package_of(getattr(value, of, None))  # or the states of its files
        return " ".join(dict.fromkeys(version.split())) if _VERSION.fullmatch(version) else ""
    return ""


def changes(old: KeyParts, new: KeyParts) -> tuple[str, ...]:
    """What differs; a value that is read at several places once. What only one of them has is no
    change by itself: the code that reads it is another then."""
    found: dict[tuple[str, ...], str] = {}
    for name, now in new.items():
        before = old.get(name, {})
        gone, come = before.keys() - now.keys(), now.keys() - before.keys()
        if gone and come:
            what, within, _ = name.partition(_IN)
            same = what.rpartition(".")[2] if within else what
            words = _change(name.removesuffix(_IN), *map(before.get, gone), *map(now.get, come))
            found.setdefault((same, *sorted(gone), *sorted(come)), words)
    return tuple(found.values())


def _change(words: str, before: str | None, now: str | None, *_more: str | None) -> str:
    if _more or not before or not now or before == now:
        return words
    return f"{words} (now {now}, before {before})"


def keep_parts(journal: Path, code: bytes, parts: KeyParts) -> None:
    """Where they cannot be written, the reason will not be known."""
    folder = journal / "tasks"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        fd, new = tempfile.mkstemp(prefix=".new-", dir=folder)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(json.dumps({"format": FORMAT, "parts": parts}))
            Path(new).rename(folder / code.hex())
        finally:
            Path(new).unlink(missing_ok=True)


def kept_parts(journal: Path, code: bytes) -> KeyParts:
    """None where they are not known: an older FlowOS kept the results, or they are damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        found = json.loads(_content(journal / "tasks" / code.hex()))
        parts = found["parts"] if found["format"] == FORMAT else {}
        return {name: {str(d): str(s) for d, s in each.items()} for name, each in parts.items()}
    return {}


def _content(path: Path) -> bytes:
    """Of a plain file; nothing of one that a reader would wait for."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(fd)
        return os.read(fd, min(about.st_size, _MAX_BYTES)) if stat.S_ISREG(about.st_mode) else b""
    finally:
        os.close(fd)


def keep_only_parts(journal: Path, codes: set[bytes]) -> None:
    """Remove those of other codes."""
    used = {code.hex() for code in codes}
    with suppress(OSError):
        for file in (journal / "tasks").iterdir():
            if _FILE.fullmatch(file.name) and file.name not in used:
                with suppress(OSError):  # a folder
                    file.unlink()
