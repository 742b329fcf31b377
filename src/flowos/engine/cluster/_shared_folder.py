"""The folder that this machine and all nodes see: run folders lie in it.

    SHARED/.flowos-UID/HOST-ID-BOOT/SESSION/NUMBER

ID is of the machine, BOOT of its start: the next program on the same machine removes what an
earlier boot left. Machines may have one name, copies of a virtual machine one machine-id, and no
lock of a folder crosses NFS, so names tell: ID is of the addresses of its network devices, too.
"""

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from flowos.drivers._allocators import KeptNode
from flowos.engine.launch._orphans import boot_id, node_started
from flowos.engine.launch._private_dirs import in_spite_of_removals
from flowos.engine.launch._run_folders import RunFolders, remove_leftovers
from flowos.model import LaunchFailed, Pool, SliceRefused

_BOOT = "[0-9a-f]{8}"
_MACHINE_ID = Path("/etc/machine-id")
_NETWORK = Path("/sys/class/net")
_ADDRESS_CHARACTERS = len("00:00:00:00:00:00")
"""The last of an address: InfiniBand's begins with what each boot gives anew."""


def base_of(pool: Pool) -> Path:
    """Of the sessions of this user and this machine. Raises SliceRefused if it cannot be made.

    Other machines have their own: whose processes are gone, only this one can tell. The shared
    folder itself is not made: where its name is misspelt, nodes would not see the one made here.
    """
    name = "-".join(filter(None, (os.uname().nodename, _machine(), boot_id().decode()[:8])))
    where = pool.shared or "(the current one)"
    try:
        parent = Path(pool.shared) if pool.shared else Path.cwd()
        parent.stat()
        base = made(parent / f".flowos-{os.geteuid()}" / name)
    except (FileNotFoundError, NotADirectoryError) as error:
        mend = f"make it, or {_name_another(pool)}"
        raise SliceRefused(f"shared folder {where}: {error.strerror}; {mend}") from None
    except OSError as error:
        raise SliceRefused(f"shared folder {where}: {error.strerror}") from None
    _remove_earlier_boots(base)
    return base


def _machine() -> str:
    """Of its id, which is to stay on it, and its addresses, a digest; "" where it lacks either."""
    try:
        id = _MACHINE_ID.read_bytes().strip()
        addresses = sorted({_address(each) for each in _NETWORK.glob("*/device")})
    except OSError:
        return ""
    if not re.fullmatch(b"[0-9a-f]{32}", id) or not addresses:
        return ""
    return hashlib.sha256(b"flowos %b %b" % (id, b" ".join(addresses))).hexdigest()[:8]


def _address(device: Path) -> bytes:
    return device.with_name("address").read_bytes().strip()[-_ADDRESS_CHARACTERS:]


def _remove_earlier_boots(base: Path) -> None:
    """What processes of this machine have left that ended with an earlier boot of it."""
    named, _, boot = base.name.rpartition("-")
    if not _machine() or not re.fullmatch(_BOOT, boot):  # it cannot be known whose they are
        return
    with contextlib.suppress(OSError):
        for other in base.parent.iterdir():
            is_ours = re.fullmatch(f"{re.escape(named)}-{_BOOT}", other.name)
            if is_ours and other != base:
                _remove_earlier_boot(other)


def _remove_earlier_boot(base: Path) -> None:
    with contextlib.suppress(OSError):  # another process removes it at the same time
        if _is_unchanged_since_boot(base):
            remove_leftovers(base)
            base.rmdir()


def _is_unchanged_since_boot(base: Path) -> bool:
    """Whether this is a folder of ours in which no process has begun or ended a launch since.

    One that is changed is of a machine that has our id, as copies of a virtual machine may.
    """
    seen = [each.lstat() for each in (base, *base.iterdir())]
    is_ours = stat.S_ISDIR(seen[0].st_mode) and seen[0].st_uid == os.geteuid()
    return is_ours and max(each.st_mtime for each in seen) < node_started()


@contextmanager
def base_while_held(pool: Pool) -> Iterator[Path]:
    """`base_of`; where nothing is held in the end, it is not left there."""
    base = base_of(pool)
    try:
        yield base
    except BaseException:
        remove_if_empty(base)
        raise


def check_shared_folder(pool: Pool) -> None:
    """Raises SliceRefused, as a slice of the pool does, if nothing can be written there."""
    try:
        with base_while_held(pool) as base, shown(base):
            pass
        remove_if_empty(base)
    except SliceRefused as error:
        raise SliceRefused(f"pool {pool.name}: {error}") from None


def _name_another(pool: Pool) -> str:
    return (
        f"in flowos.toml, give [pools.{pool.name}] shared = a folder that this machine and all its "
        "nodes see"
    )


def made(base: Path) -> Path:
    """The same; the last slice that was freed may have removed it. Raises OSError if it fails.

    Where anyone may write, another user may have made it, or the folder above it, or a link to one
    of ours, in which the leftovers of sessions would be looked for.
    """

    def owners() -> set[int]:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        both = (base.parent, base)
        return {about.st_uid for each in both for about in (each.lstat(), each.stat())}

    if in_spite_of_removals(owners) != {os.geteuid()}:
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
