"""`flowos cloud resume` as Slurm calls it: it starts the work and returns. It loads little."""

import sys
from os import environ
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.drivers.allocators.slurm_power import read_node_names
from flowos.engine import ON_DISK, own_folder, start_detached
from flowos.model import CloudError, FlowosError, SettingsError
from flowos.operations._cloud_tables import by_table


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundWork:
    """The process that goes on, and the file that it writes to."""

    pid: int
    log: Path


def in_background(what: str, hosts: str) -> BackgroundWork:
    """Start `resume` or `suspend` as a process of its own.

    Raises SliceRefused if `hosts` is no list of nodes. Raises SettingsError after the process was
    started, which says the same in Slurm, and CloudError if it cannot write to the table's log: it
    was started with the usual one then.
    """
    nodes = read_node_names(hosts)
    mistake: FlowosError | None = None
    logging = None
    try:
        shares, _ = by_table(nodes)
        logging = next((share.cloud for share in shares if share.cloud.log), None)
    except SettingsError as error:
        mistake = error
    words = (sys.executable, "-m", "flowos", "cloud", what, "--wait", "--json", hosts)
    if logging is not None:
        path = Path(logging.log)
        try:
            return BackgroundWork(pid=start_detached(words, environ, path), log=path)
        except OSError as error:
            why = f"{path}: {error.strerror}; name a file that can be written"
            mistake = CloudError(f"cloud.{logging.name}.log: {why}")
    path = own_folder(ON_DISK, "cloud") / "flowos-cloud.log"
    try:
        pid = start_detached(words, environ, path)
    except OSError as error:
        raise CloudError(f"{path}: {error.strerror}") from None
    if mistake is not None:
        raise mistake
    return BackgroundWork(pid=pid, log=path)
