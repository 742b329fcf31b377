"""The folder that this machine and all nodes see: run folders lie in it."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from flowos.drivers._allocators import KeptNode
from flowos.engine.launch._orphans import boot_id
from flowos.engine.launch._private_dirs import in_spite_of_removals
from flowos.engine.launch._run_folders import RunFolders
from flowos.model import LaunchFailed, Pool, SliceRefused


def base_of(pool: Pool) -> Path:
    """Of the sessions of this user and this machine. Raises SliceRefused if it cannot be made.

    Other machines have their own: whose processes are gone, only this one can tell. The shared
    folder itself is not made: where its name is misspelt, nodes would not see the one made here.
    """
    name = f"{os.uname().nodename}-{boot_id().decode()[:8]}"
    where = pool.shared or "(the current one)"
    try:
        parent = Path(pool.shared) if pool.shared else Path.cwd()
        parent.stat()
        return made(parent / f".flowos-{os.geteuid()}" / name)
    except (FileNotFoundError, NotADirectoryError) as error:
        mend = f"make it, or {_name_another(pool)}"
        raise SliceRefused(f"shared folder {where}: {error.strerror}; {mend}") from None
    except OSError as error:
        raise SliceRefused(f"shared folder {where}: {error.strerror}") from None


def check_shared_folder(pool: Pool) -> None:
    """Raises SliceRefused, as a slice of the pool does, if nothing can be written there."""
    try:
        base = base_of(pool)
        try:
            with shown(base):
                pass
        finally:
            remove_if_empty(base)
    except SliceRefused as error:
        raise SliceRefused(f"pool {pool.name}: {error}") from None


def _name_another(pool: Pool) -> str:
    return (
        f"in flowos.toml, give [pools.{pool.name}] shared = a folder that this machine and all its "
        "nodes see"
    )


def made(base: Path) -> Path:
    """The same; the last slice that was freed may have removed it. Raises OSError if it fails."""

    def owner() -> int:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return base.stat().st_uid

    if in_spite_of_removals(owner) != os.geteuid():
        raise PermissionError(0, "another user made it")
    return base


def remove_if_empty(base: Path) -> None:
    """It is out of the way of the files of its user."""
    with contextlib.suppress(OSError):
        base.rmdir()
        base.parent.rmdir()


@contextmanager
def shown(base: Path) -> Iterator[tuple[Path, str]]:
    """A file in it, and the word that a node reads there if it sees the same folder.

    It lies where run folders do: if this process is killed, the next one removes it. Raises
    SliceRefused if it takes no file.
    """
    word = secrets.token_hex(16)
    folders = RunFolders(partial(made, base))
    try:
        yield _written(folders, word, base), word
    finally:
        folders.remove()


def _written(folders: RunFolders, word: str, base: Path) -> Path:
    try:
        proof = folders.make() / "proof"
        proof.write_text(word)
    except LaunchFailed as error:
        why = getattr(error.__cause__, "strerror", None) or error
        raise SliceRefused(f"shared folder {base.parents[1]}: {why}") from None
    except OSError as error:
        raise SliceRefused(f"shared folder {base.parents[1]}: {error.strerror}") from None
    return proof


def refuse_blind(pool: Pool, base: Path, word: str, nodes: tuple[KeptNode, ...]) -> None:
    """Raises SliceRefused if one of the nodes did not read the word."""
    blind = [node.name for node in nodes if node.proof != word]
    if blind:
        folder = base.parents[1]
        raise SliceRefused(
            f"node {blind[0]} does not see folder {folder}, in which programs are started; "
            f"{_name_another(pool)}"
        )
