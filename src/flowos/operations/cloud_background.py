"""`flowos cloud resume` as Slurm calls it: it starts the work and returns. It loads little."""

import sys
from dataclasses import dataclass
from os import environ
from pathlib import Path

from flowos.drivers.allocators.slurm_power import read_node_names
from flowos.engine import ON_DISK, own_folder, start_detached
from flowos.model import CloudError, SettingsError
from flowos.operations._cloud_tables import by_table


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundWork:
    """The process that goes on, and the file that it writes to."""

    pid: int
    log: Path


def in_background(what: str, hosts: str) -> BackgroundWork:
    """Start `resume` or `suspend` as a process of its own.

    Raises SliceRefused if `hosts` is no list of nodes. Raises SettingsError after the process was
    started, which says the same in Slurm.
    """
    nodes = read_node_names(hosts)
    mistake: SettingsError | None = None
    log = ""
    try:
        shares, _ = by_table(nodes)
        log = next((share.cloud.log for share in shares if share.cloud.log), "")
    except SettingsError as error:
        mistake = error
    path = Path(log) if log else own_folder(ON_DISK, "cloud") / "flowos-cloud.log"
    words = (sys.executable, "-m", "flowos", "cloud", what, "--wait", "--json", hosts)
    try:
        pid = start_detached(words, environ, path)
    except OSError as error:
        raise CloudError(f"{path}: {error.strerror}") from None
    if mistake is not None:
        raise mistake
    return BackgroundWork(pid=pid, log=path)
