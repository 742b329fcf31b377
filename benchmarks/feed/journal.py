"""What a run has found so far, written down as it is found: one that was stopped goes on there."""

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
    """A line of JSON for each thing found, under its name; the first says of what the run is."""

    def __init__(self, file: Path, run: str, resume: bool) -> None:
        self.file = file
        first = {"run": run}
        lines = list(_read(file)) if resume else []
        lines = lines if lines[:1] == [first] else [first]
        self.known = {line["name"]: line["found"] for line in lines[1:]}
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def once(self, name: str, find: Callable[[], T]) -> T:
        """What was found before, else what `find` finds now."""
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
        """All was found."""
        self.file.unlink()


def _read(file: Path) -> Iterator[dict[str, Any]]:
    """The last line may be cut off."""
    with suppress(OSError, json.JSONDecodeError):
        for line in file.read_text().splitlines():
            yield json.loads(line)


def code_of(*folders: Path) -> str:
    """Another one where something is measured that was changed: figures of both are not mixed."""
    digest = hashlib.sha256()
    for folder in (HERE, *folders):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".cpp", ".h", ".so"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
