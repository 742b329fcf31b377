"""The pages of Slurm that a newcomer follows, on a Slurm of the test's own and of the page's."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.tutorials import DOCS, run_page
from tests.waiting import comes

from .box import Box, plugins, which


def test_the_tutorial_of_slurm_is_as_it_says(box: Box, tmp_path: Path) -> None:
    page, folder = DOCS / "tutorials/slurm.md", tmp_path / "shared"
    folder.mkdir()
    instead = {"/shared/me": str(folder)}
    assert run_page(page, tmp_path, variables=box.variables, instead=instead) >= 5


def test_a_slurm_of_ones_own_starts_and_ends_as_its_page_says(tmp_path: Path) -> None:
    """Its programs were unpacked here: an installed Slurm knows where they are."""
    commands = Path(which("srun")).parent
    daemons = Path(which("slurmd")).parent
    instead = {
        "PATH=$PATH:/usr/sbin": f"PATH=$PATH:{daemons}",
        "MpiDefault=none": f"MpiDefault=none\nPluginDir={plugins()}",
        "slurmd -N": f"slurmd -d {which('slurmstepd')} -N",
    }
    path = {"PATH": f"{commands}:{os.environ['PATH']}"}

    def running() -> list[int]:
        """Each removes its file when it ends, also while they are read here."""
        found = []
        for file in tmp_path.glob("slurm/*.pid"):
            with suppress(FileNotFoundError):
                found.append(int(file.read_text()))
        return found

    try:
        assert run_page(DOCS / "howto/try-slurm.md", tmp_path, variables=path, instead=instead) == 4
        assert comes(lambda: not running())
    finally:
        for pid in running():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
