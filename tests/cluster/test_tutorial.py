"""The tutorial of Slurm, on a Slurm of the test's own."""

from pathlib import Path

from tests.tutorials import DOCS, run_page

from .box import Box


def test_the_tutorial_of_slurm_is_as_it_says(box: Box, tmp_path: Path) -> None:
    page, folder = DOCS / "tutorials/slurm.md", tmp_path / "shared"
    folder.mkdir()
    instead = {"/shared/me": str(folder)}
    assert run_page(page, tmp_path, variables=box.variables, instead=instead) >= 5
