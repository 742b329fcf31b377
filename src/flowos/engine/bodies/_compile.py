"""Libraries of bodies: compiled where they run, and kept by what they depend on.

An entry is a small file, named by source, flags, compiler and processor. It names the headers that
the source included, with their digests, and the library with its own: one that is not whole, or
whose headers changed, is as none. Files appear under their names when they are complete.
"""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from flowos.engine._ask import ask, which
from flowos.engine.launch._init_program import cache_folder
from flowos.model import NoRetry, SourceCode, first_error, headers_of

__flowos_frames__ = True
_FORMAT = "1"
_SECONDS = 600.0
_COMPILERS = {
    "c": ("CC", ("cc", "gcc", "clang"), "gcc"),
    "c++": ("CXX", ("c++", "g++", "clang++"), "g++"),
    "fortran": ("FC", ("gfortran", "flang"), "gfortran"),
}
_SPOKEN = {"c": "C", "c++": "C++", "fortran": "Fortran"}


class CompileFailed(NoRetry):
    """A source does not compile, or its library lacks the function."""


def library_of(code: SourceCode) -> Path:
    """The file of the library. Raises CompileFailed."""
    compiler = _compiler(code.language)
    folder = cache_folder() / "bodies"
    key = _digest("\0".join((_FORMAT, code.content, code.suffix, *code.flags, *compiler, _cpu())))
    entry = folder / f"{key}.json"
    if (library := _whole(entry)) is not None:
        return library
    with _alone(folder, key):
        return _whole(entry) or _compiled(code, compiler[0], entry)


def _compiler(language: str) -> tuple[str, str]:
    """Its path, and what distinguishes it from another one at that path."""
    variable, names, package = _COMPILERS[language]
    given = os.environ.get(variable)
    found = next((path for name in ((given,) if given else names) if (path := which(name))), None)
    if found is None:
        named = f" {given!r}, which {variable} names" if given else ""
        raise CompileFailed(
            f"there is no {_SPOKEN[language]} compiler{named}: install {package}, or name one in "
            f"{variable}"
        )
    real = Path(found).resolve()
    facts = real.stat()
    return found, f"{real} {facts.st_size} {facts.st_mtime_ns}"


@cache
def _cpu() -> str:
    """What -march=native depends on: the lines of the first processor."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        first = file.read(16384).partition("\n\n")[0]
        lines = (line for line in first.splitlines() if re.match(r"(?i)model|flags|features", line))
        return "\n".join(lines)
    return " ".join(os.uname())


def _whole(entry: Path) -> Path | None:
    """The library of an entry, if it is what was compiled and its headers are the same."""
    try:
        kept = json.loads(entry.read_bytes())
        library = entry.with_name(kept["library"])
        same = _digest(library.read_bytes()) == kept["digest"]
        return library if same and all(_file(n) == d for n, d in kept["headers"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _compiled(code: SourceCode, compiler: str, entry: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix=".", dir=entry.parent) as made:
        file, library, headers = (Path(made) / f"body{s}" for s in (code.suffix, ".so", ".d"))
        file.write_text(code.content, encoding="utf-8")
        try:
            argv = code.command(compiler, str(file), str(library), str(headers))
            answer = ask(argv, seconds=_SECONDS, variables={**os.environ, "LC_ALL": "C"})
        except OSError as error:
            raise CompileFailed(f"{compiler} could not be run: {error}") from error
        if answer.code != 0:
            said = answer.says.replace(f"{made}/", "")
            raise CompileFailed(first_error(said))
        rule = headers.read_text(encoding="utf-8") if headers.exists() else ""
        digest = _digest(library.read_bytes())
        named = entry.with_name(f"{digest}.so")
        headers_now = [(name, _file(name)) for name in headers_of(rule)]
        kept = {"library": named.name, "digest": digest, "headers": headers_now}
        (Path(made) / "entry").write_text(json.dumps(kept), encoding="utf-8")
        library.replace(named)
        (Path(made) / "entry").replace(entry)
    return named


@contextmanager
def _alone(folder: Path, key: str) -> Iterator[None]:
    """One process at a time compiles it; where a folder has no locks, several do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / f".{key}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise CompileFailed(
            f"nothing can be written to the cache {folder} ({error.strerror}): name another cache "
            "folder in XDG_CACHE_HOME"
        ) from error
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _file(name: str) -> str:
    return _digest(Path(name).read_bytes())


def _digest(content: str | bytes) -> str:
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:32]
