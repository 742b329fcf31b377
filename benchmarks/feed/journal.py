"""Saves the results of a run as they come, so that a run that was stopped can continue."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from places import HERE

T = TypeVar("T")


class Journal:
    """A file with a line of JSON for each result, by name; the first line describes the run."""

    def __init__(self, file: Path, run: str, resume: bool) -> None:
        self.file = file
        first = {"run": run}
        lines = list(_read(file)) if resume else []
        lines = lines if lines[:1] == [first] else [first]
        self.known = {line["name"]: line["found"] for line in lines[1:]}
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def once(self, name: str, find: Callable[[], T]) -> T:
        """The saved result of this name, else that of `find`, which is saved."""
        if name not in self.known:
            began = time.perf_counter()
            found = find()
            line = {"name": name, "seconds": time.perf_counter() - began, "found": found}
            with self.file.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self.known[name] = json.loads(json.dumps(found))  # the same as from the file
        answer: T = self.known[name]
        return answer

    def end(self) -> None:
        """Remove the file: the run is complete."""
        self.file.unlink()


def _read(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of the file; the last one may be truncated."""
    with suppress(OSError, json.JSONDecodeError):
        for line in file.read_text().splitlines():
            yield json.loads(line)


def code_of(*folders: Path) -> str:
    """A hash of the measured code: results of different code are not mixed."""
    digest = hashlib.sha256()
    for folder in (HERE, *folders):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".cpp", ".h", ".so"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
