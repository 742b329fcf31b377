"""The tutorial of containers, in an image that other tests made."""

from pathlib import Path

from tests.tutorials import DOCS, run_page

BUILD = "flowos image build --suite bookworm --include python3,libgomp1 --name mine"


def test_the_tutorial_of_containers_is_as_it_says(debian: Path, tmp_path: Path) -> None:
    imported = f"flowos image import {debian} --name mine"
    instead = {BUILD: imported, "--minutes 10": "--minutes 0.2"}
    assert run_page(DOCS / "tutorials/containers.md", tmp_path, instead=instead) >= 6
