"""What worked when it was tried, as long as nothing is another that it was made of.

Standard library only, Python 3.8 or newer: collect_software.py imports it. Only what worked is
kept, so that what is mended is found at once. A trial names the files and folders that it took;
it counts while all are as they were (time, size, inode), and while the surroundings are: this
machine, its installed packages, what the loader finds, and the environment variables.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable
from typing import Any

MAX_KEPT = 200
"""Some fourteen surroundings: a machine, a container, a project with variables of its own."""
STARTED = ("as", "ld", "cc", "c++", "gcc", "g++", "clang", "clang++", "icx", "icpx", "nvc", "nvc++")
PACKAGES = ("/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/var/lib/rpm/Packages")
LOADER = ("/etc/ld.so.cache", "/etc/ld.so.preload")
OF_NO_COMPILER = re.compile(
    r"(XDG|SSH|PYTEST|PYTHON|DBUS|SLURM|LC|TERM|FLOWOS|GPG|VSCODE|TMUX)_?.*"
    r"|(JPY|PYDEVD|POCL|PYOPENCL|RAY|TF|TPU|COV_CORE|COVERAGE)_.*"
    r"|IPYTHONDIR|MAKEFLAGS|MAKELEVEL|MFLAGS"
    r"|PWD|OLDPWD|SHLVL|_|LANG|PATH|COLUMNS|LINES|DISPLAY|WINDOWID|LS_COLORS|PS1|TMPDIR"
    r"|CLICOLOR|CLICOLOR_FORCE|FORCE_COLOR|NO_COLOR|PAGER|GIT_PAGER|MPLBACKEND"
)
"""Variables that differ between terminals, notebooks, tests and jobs, also those that packages of
Python set when they are imported."""
PATHS = re.compile(r"/[^\s\"':;,=()\\]+")


def stamp(path: str) -> Any:
    """None if it is not there. As JSON gives it back."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - of a thousand files
    except OSError:
        return None
    return [seen.st_mtime_ns, seen.st_size, seen.st_ino]


def surroundings() -> str:
    """A digest. Of PATH it is what compilers and their wrappers start by name that counts."""
    kernel = os.uname()
    variables = sorted(v for v in os.environ.items() if not OF_NO_COMPILER.fullmatch(v[0]))
    files = [stamp(path) for path in (*PACKAGES, *LOADER)]
    started = [shutil.which(name) for name in STARTED]
    known = [kernel.nodename, kernel.release, os.geteuid(), files, started, variables]
    return hashlib.sha256(repr(known).encode(errors="replace")).hexdigest()


def paths_in(text: str) -> list[str]:
    """Absolute paths of a text: of shown commands, of what a compiler says that it read."""
    return [os.path.normpath(path) for path in PATHS.findall(text)]


class KeptTrials:
    """The trials of this call, and those of earlier ones."""

    def __init__(self, before: Any) -> None:
        """before: what `plain` gave; anything else is none."""
        self._surroundings = surroundings()
        self._before: dict[str, Any] = before if isinstance(before, dict) else {}
        self._now: dict[str, Any] = {}

    def answer(self, name: str, attempt: Callable[[], tuple[Any, Iterable[str]]]) -> Any:
        """What it said when it worked; else it is tried. An attempt without files is not kept."""
        key = f"{self._surroundings} {name}"
        known: Any = self._before.get(key)
        if not self._counts(known):
            answer, files = attempt()
            stamps = {path: stamp(path) for path in files}
            known = {"answer": answer, "files": {p: s for p, s in stamps.items() if s}}
        if known["files"]:
            self._now[key] = known
        else:
            self._before.pop(key, None)
        return known["answer"]

    def plain(self) -> dict[str, Any]:
        """As JSON; the newest last, and the oldest of very many forgotten."""
        older = {key: known for key, known in self._before.items() if key not in self._now}
        return dict([*older.items(), *self._now.items()][-MAX_KEPT:])

    @staticmethod
    def _counts(known: Any) -> bool:
        files = known.get("files") if isinstance(known, dict) and "answer" in known else None
        return isinstance(files, dict) and bool(files) and all(stamp(p) == files[p] for p in files)
