"""Folders for the files that commands write, and names for them."""

import re
import shutil
import tempfile
import threading
from pathlib import Path

from flowos.engine._node import Node
from flowos.model import Cancelled, LaunchFailed, TaskFailed


class Folders:
    """Fresh folders for the commands of one slice: in `kept` for good, or until `clear`.

    Any thread may ask; after `clear`, a run that is not over yet is Cancelled. Raises LaunchFailed
    where none can be made.
    """

    def __init__(self, node: Node, kept: Path | None = None) -> None:
        self._node = node
        self._kept = kept
        self._own: Path | None = None
        self._cleared = False
        self._lock = threading.Lock()

    def fresh(self, label: str) -> Path:
        with self._lock:
            self._refuse_cleared()
            return _made_in(self._kept or self._temporary(), label)

    def working(self, label: str) -> Path:
        """For a command that runs: one that its node sees, to be given to `keep` after its end."""
        if self._is_seen:
            return self.fresh(label)
        with self._lock:
            self._refuse_cleared()
            return _made_in(self._temporary(), label)

    def keep(self, folder: Path, label: str) -> Path:
        """The folder of a command that has ended, now where its files are kept.

        Raises TaskFailed if it cannot be copied there.
        """
        if self._is_seen:
            return folder
        try:
            kept = self.fresh(label)
            try:
                return folder.rename(kept)
            except OSError:  # another file system
                shutil.copytree(folder, kept, dirs_exist_ok=True, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise TaskFailed(
                f"its files cannot be copied to {self._kept}: {why_of(error)}"
            ) from error
        shutil.rmtree(folder, ignore_errors=True)
        return kept

    @property
    def _is_seen(self) -> bool:
        """Whether the node of the commands sees where files are kept."""
        return self._kept is None or self._node.is_here

    def _refuse_cleared(self) -> None:
        if self._cleared:
            raise Cancelled("the slice was freed")

    def clear(self) -> None:
        with self._lock:
            self._cleared = True
            if self._own is not None:
                shutil.rmtree(self._own, ignore_errors=True)

    def _temporary(self) -> Path:
        if self._own is None:
            self._own = _made_in(self._node.folder(), "slice")
        return self._own


def _made_in(parent: Path, label: str) -> Path:
    """Raises LaunchFailed if there is no room, or no such folder any more."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{plain_name(label)}-", dir=parent))
    except OSError as error:
        raise LaunchFailed(f"cannot make a folder in {parent}: {why_of(error)}") from error


def why_of(error: OSError) -> str:
    """In a few words. Those of shutil are a list of what failed."""
    return error.strerror or str(error)


def plain_name(words: str) -> str:
    """As a file's name: unchanged where it is one, else made unique by its digest."""
    plain = re.sub(r"[^\w.+-]+", "_", words, flags=re.ASCII).lstrip(".")[:80]
    if plain == words:
        return words
    import hashlib  # 3 ms, and most names are plain

    return f"{plain}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
