"""Files that bodies are made of, kept by what they depend on.

An entry is a small file, named by all that is known before. It names what else was read when its
file was made (headers), with digests, and the file with its own: one that is not whole, or whose
headers changed, is as none. Files appear under their names when they are complete.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path

from flowos._user_folders import cache_folder
from flowos.model import NoRetry

__flowos_frames__ = True
_FORMAT = "3"
Made = tuple[Path, Sequence[str]]
"""A new file, and the names of those that were read for it."""


class CompileFailed(NoRetry):
    """A source does not compile, or its library lacks the function."""


def kept_file(words: Sequence[str], make: Callable[[Path], Made]) -> Path:
    """What `make` makes in an empty folder, or made before from the same words.

    Raises CompileFailed if nothing can be kept, and what `make` raises.
    """
    entry = _entry(words)
    if (kept := _whole(entry)) is not None:
        return kept
    try:
        with _alone(entry):
            return _whole(entry) or _made(make, entry)
    except OSError as error:
        raise CompileFailed(
            f"nothing can be written to the cache {entry.parent} ({error.strerror}): name another "
            "cache folder in XDG_CACHE_HOME"
        ) from error


def files_read(words: Sequence[str]) -> list[str]:
    """The names of what was read for a file that is kept by these words."""
    return [name for name, _ in json.loads(_entry(words).read_bytes())["read"]]


def _entry(words: Sequence[str]) -> Path:
    key = _digest("\0".join((_FORMAT, *words)))
    return cache_folder() / "bodies" / f"{key}.json"


def _whole(entry: Path) -> Path | None:
    """The file of an entry, if it is what was made and what was read for it is the same."""
    try:
        kept = json.loads(entry.read_bytes())
        file = entry.with_name(kept["file"])
        same = _digest(file.read_bytes()) == kept["digest"]
        return file if same and all(_file(n) == d for n, d in kept["read"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _made(make: Callable[[Path], Made], entry: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix=".", dir=entry.parent) as folder:
        file, read = make(Path(folder))
        digest = _digest(file.read_bytes())
        named = entry.with_name(f"{digest}{file.suffix}")
        kept = {
            "file": named.name,
            "digest": digest,
            "read": [(name, _file(name)) for name in read],
        }
        whole = Path(folder) / "entry"
        whole.write_text(json.dumps(kept), encoding="utf-8")
        file.replace(named)
        whole.replace(entry)
    return named


@contextmanager
def _alone(entry: Path) -> Iterator[None]:
    """One process at a time compiles it; where a folder has no locks, several do."""
    folder = entry.parent
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / f".{entry.stem}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _file(name: str) -> str:
    with Path(name).open("rb") as data:
        return file_digest(data, "sha256").hexdigest()[:32]


def _digest(content: str | bytes) -> str:
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:32]
