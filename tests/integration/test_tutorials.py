"""The tutorials and how-to pages that need no cluster and no image, block by block."""

import re
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from tests.tutorials import DOCS, run_page

HOW_TO = re.findall(r"^howto/(\S+)$", (DOCS / "index.md").read_text(), re.MULTILINE)
OF_A_RUN = ("how-fast", "trust-a-number", "which-setting", "numbers-out")
"""They go on with what the tutorial of measuring has stored."""
ON_A_CLUSTER = ("try-slurm",)
"""Run by tests/cluster/test_tutorial.py."""
SHORTER = {
    "measure": {
        "--minutes 0.3": "--minutes {}",
        "measure -- sort": "measure --minutes {} -- sort",
        "compare --command": "compare --minutes {} --command",
    },
    "paper": {"--minutes 0.4": "--minutes {}"},
}
MINUTES = {"measure": (0.05, 1), "paper": (0.2, 2)}
"""Less time than the pages give, and on a busy machine, where that does not do, more: what is shown
is the same."""


@pytest.mark.parametrize("name", ["feed", "flows", "measure", "paper", "solve"])
def test_a_tutorial_is_as_it_says(name: str, tmp_path: Path) -> None:
    tries = MINUTES.get(name, (0,))
    for minutes in tries:
        folder = tmp_path / str(minutes)
        folder.mkdir()
        instead = {old: new.format(minutes) for old, new in SHORTER.get(name, {}).items()}
        with suppress(AssertionError) if minutes != tries[-1] else nullcontext():
            run_tutorial(name, folder, instead)
            break


def run_tutorial(name: str, folder: Path, instead: dict[str, str]) -> None:
    kept = {"XDG_DATA_HOME": str(folder / "data")}  # `last` is of this test
    assert run_page(DOCS / f"tutorials/{name}.md", folder, variables=kept, instead=instead) >= 3
    for page in OF_A_RUN if name == "measure" else ():
        assert run_page(DOCS / f"howto/{page}.md", folder, variables=kept) >= 1


def test_how_to_pages_are_as_they_say_one_after_the_other(tmp_path: Path) -> None:
    """In one folder with one store: a page may go on with what an earlier one made."""
    kept = {"XDG_DATA_HOME": str(tmp_path / "data")}
    pages = [page for page in HOW_TO if page not in (*OF_A_RUN, *ON_A_CLUSTER)]
    ran = [run_page(DOCS / f"howto/{page}.md", tmp_path, variables=kept) for page in pages]
    assert {page.stem for page in (DOCS / "howto").glob("*.md")} == {*HOW_TO}
    assert sum(count > 0 for count in ran) >= 11


@pytest.mark.parametrize(
    "line",
    [
        "flowos nosuchcommand",
        "flowos nosuchcommand | cat",
        "flowos compare nosuchrun --axis stores",
        "timeout -s KILL 60 true",
    ],
)
def test_a_page_whose_command_fails_is_not_as_it_says(line: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```console\n$ {line}\n...\n```\n")
    with pytest.raises(AssertionError, match="exit code"):
        run_page(page, tmp_path, variables={"XDG_DATA_HOME": str(tmp_path / "data")})
