"""An mpirun that a test starts itself."""

import os
import subprocess
import tempfile

from flowos.model import Exited, Outcome

_ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def started(argv: tuple[str, ...], **variables: str) -> Outcome:
    """With a session folder of its own: one of Open MPI fails whose folder another one removes."""
    with tempfile.TemporaryDirectory(prefix="mpi-") as folder:
        own = {**_ROOT_MAY, "OMPI_MCA_orte_tmpdir_base": folder, **variables}
        done = subprocess.run(
            argv, capture_output=True, check=False, timeout=300, env={**os.environ, **own}
        )
    return Outcome(end=Exited(done.returncode), stdout=done.stdout, stderr=done.stderr)
