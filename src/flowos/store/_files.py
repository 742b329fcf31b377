"""Paths of the user's files, and whether a file is on a network file system."""

from collections.abc import Sequence
from pathlib import Path

from flowos._user_folders import data_folder

_NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "9p",
    "afs",
    "orangefs",
)


def default_file() -> Path:
    """$XDG_DATA_HOME/flowos/flowos.db, or ~/.local/share/flowos/flowos.db."""
    return data_folder() / "flowos.db"


def lies_on_network(file: Path) -> bool:
    """Whether a file of this path would be on a network file system of this machine."""
    return on_network(file, _mounts())


def on_network(file: Path, mounts: Sequence[str]) -> bool:
    """Whether the file is on a network file system, given the lines of /proc/self/mountinfo."""
    at = file.parent.resolve()
    kinds: dict[Path, str] = {}
    for line in mounts:
        left, _, right = line.partition(" - ")
        kinds[Path(left.split()[4].replace("\\040", " "))] = right.split()[0]
    nearest = next((kinds[folder] for folder in (at, *at.parents) if folder in kinds), "")
    return nearest in _NETWORK or nearest.startswith("fuse.")


def _mounts() -> list[str]:
    try:
        return Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return []
