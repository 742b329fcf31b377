"""The tutorials that need no cluster and no image, block by block."""

from pathlib import Path

import pytest

from tests.tutorials import DOCS, run_page


@pytest.mark.parametrize("name", ["feed", "flows", "measure", "paper", "solve"])
def test_a_tutorial_is_as_it_says(name: str, tmp_path: Path) -> None:
    assert run_page(DOCS / f"tutorials/{name}.md", tmp_path) >= 3
