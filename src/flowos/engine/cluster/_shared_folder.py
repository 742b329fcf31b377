"""The folder that this machine and all nodes see: run folders lie in it."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flowos.drivers._allocators import KeptNode
from flowos.engine.launch._orphans import boot_id
from flowos.model import Pool, SliceRefused

_REMOVALS = 100  # at once, before it is said that there is no such folder


def base_of(pool: Pool) -> Path:
    """Of the sessions of this user and this machine. Raises SliceRefused if it cannot be made.

    Other machines have their own: whose processes are gone, only this one can tell.
    """
    name = f"{os.uname().nodename}-{boot_id().decode()[:8]}"
    try:
        parent = Path(pool.shared) if pool.shared else Path.cwd()
        return made(parent / f".flowos-{os.geteuid()}" / name)
    except OSError as error:
        where = pool.shared or "(the current one)"
        raise SliceRefused(f"shared folder {where}: {error.strerror}") from None


def made(base: Path) -> Path:
    """The same; the last slice that was freed may have removed it. Raises OSError if it fails."""

    def owner() -> int:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return base.stat().st_uid

    if _in_spite_of_removals(owner) != os.geteuid():
        raise PermissionError(0, "another user made it")
    return base


def _in_spite_of_removals(act: Callable[[], int]) -> int:
    """Other programs of this user remove the folder, and the one above it, when they are empty."""
    for _ in range(_REMOVALS):
        with contextlib.suppress(FileNotFoundError, FileExistsError):  # or it is gone by then
            return act()
    return act()


def remove_if_empty(base: Path) -> None:
    """It is out of the way of the files of its user."""
    with contextlib.suppress(OSError):
        base.rmdir()
        base.parent.rmdir()


@contextmanager
def shown(base: Path) -> Iterator[tuple[Path, str]]:
    """A file in it, and the word that a node reads there if it sees the same folder.

    Raises SliceRefused if it takes no file.
    """
    word = secrets.token_hex(16)
    proof = base / f".proof-{word[:8]}"
    try:
        _write(proof, word)
        yield proof, word
    finally:
        with contextlib.suppress(OSError):
            proof.unlink()


def _write(proof: Path, word: str) -> None:
    try:
        _in_spite_of_removals(lambda: (made(proof.parent) / proof.name).write_text(word))
    except OSError as error:
        raise SliceRefused(f"shared folder {proof.parents[2]}: {error.strerror}") from None


def refuse_blind(pool: Pool, base: Path, word: str, nodes: tuple[KeptNode, ...]) -> None:
    """Raises SliceRefused if one of the nodes did not read the word."""
    blind = [node.name for node in nodes if node.proof != word]
    if blind:
        folder = base.parents[1]
        raise SliceRefused(
            f"node {blind[0]} does not see folder {folder}, in which programs are started; in "
            f"flowos.toml, give [pools.{pool.name}] shared = a folder that this machine and all "
            "its nodes see"
        )
